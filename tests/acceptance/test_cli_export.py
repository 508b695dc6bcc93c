"""`trace export` as a command: where events go, what it reports, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import GovernedMemory
from tests.acceptance.command import Answer, Command, as_process
from tests.exporting import ids, log_of
from tests.otlp_receiver import Receiver, event_id, records_of
from tests.support import caller, candidate, query


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of three events."""
    return log_of(tmp_path / "decisions.jsonl", 3)


def ids_in(text: str) -> list[str]:
    """The ids of the events in JSON lines."""
    return [json.loads(line)["payload"]["event_id"] for line in text.splitlines()]


def test_json_lines_go_to_standard_output_and_the_report_beside_it(log: Path, command: Command) -> None:
    """A second call prints nothing: what was printed is delivered."""
    told = command("trace", "export", "--log", log, "--format", "jsonl")
    again = command("trace", "export", "--log", log, "--format", "jsonl")

    assert (told.code, ids_in(told.out)) == (0, ids(1, 2, 3))
    assert json.loads(told.err) == {"sent": 3, "pending": 0, "failed": 0, "cut": 0}
    assert (again.code, again.out) == (0, "")


def test_json_lines_in_a_file_vouch_for_the_log(log: Path, tmp_path: Path, command: Command) -> None:
    """They carry the places of their lines, so `trace verify` takes them as anchors."""
    out = tmp_path / "events.jsonl"
    told = command("trace", "export", "--log", log, "--format", "jsonl", "-o", out)
    verified = command("trace", "verify", log, "--anchors", out)

    assert (told.document["sent"], ids_in(out.read_text())) == (3, ids(1, 2, 3))
    assert (verified.document["ok"], verified.document["tail"]) == (True, "verified")


def test_half_a_line_that_a_killed_export_left_is_taken_away(
    log: Path, tmp_path: Path, command: Command
) -> None:
    """The event is written again, whole; a file that ends otherwise is somebody else's and stays."""
    out, other = tmp_path / "events.jsonl", tmp_path / "notes.txt"
    out.write_text('{"schema_version":"1.0","event_ty')
    other.write_text("half a sent")

    told = command("trace", "export", "--log", log, "--format", "jsonl", "-o", out)
    refused = command("trace", "export", "--log", log, "--format", "jsonl", "-o", other)

    assert (told.code, ids_in(out.read_text())) == (0, ids(1, 2, 3))
    assert (refused.code, other.read_text()) == (2, "half a sent")


def test_every_way_to_deliver_has_a_cursor_of_its_own(log: Path, tmp_path: Path, command: Command) -> None:
    """What was printed has not reached the collector, and another collector may have another cursor."""
    with Receiver() as receiver:
        command("trace", "export", "--log", log, "--format", "jsonl")
        first = command("trace", "export", "--log", log, "--endpoint", receiver.url)
        more = ("--cursor", tmp_path / "second.cursor")
        second = command("trace", "export", "--log", log, "--endpoint", receiver.url, *more)

    assert (first.document["sent"], second.document["sent"]) == (3, 3)
    assert [event_id(record) for record in records_of(receiver.lines)] == ids(1, 2, 3) * 2
    assert {path.name for path in tmp_path.iterdir()} == {
        "decisions.jsonl", "decisions.jsonl.export", "decisions.jsonl.export-jsonl", "second.cursor",
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_a_store_is_exported_while_it_is_in_use(kind: str, tmp_path: Path, command: Command) -> None:
    """Events of writes and of reads; the export opens the log beside whoever writes to it."""
    url = f"{kind}:{tmp_path / 'memory'}"
    with Receiver() as receiver, GovernedMemory.open(url) as memory:
        memory.write(candidate(), caller=caller())
        first = command("trace", "export", "--store", url, "--endpoint", receiver.url)
        memory.read(query(), caller=caller(), text="queue")
        second = command("trace", "export", "--store", url, "--endpoint", receiver.url)

    assert (first.document["sent"], second.document["sent"]) == (2, 2)
    names = [record["eventName"].partition(".")[2] for record in records_of(receiver.lines)]
    assert names == ["memory_write_decision", "memory_persisted", "retrieval", "context_layers_built"]


@pytest.mark.parametrize("name", ["OTEL_SDK_DISABLED=true", "OTEL_LOGS_EXPORTER=none"])
def test_nothing_is_sent_where_a_variable_says_so(
    log: Path, command: Command, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The events stay pending, as was asked for, which is no failure; the command names the variable."""
    variable, _, value = name.partition("=")
    monkeypatch.setenv(variable, value)
    with Receiver() as receiver:
        told = command("trace", "export", "--log", log, "--endpoint", receiver.url)

    assert (told.code, told.document) == (0, {"sent": 0, "pending": 3, "failed": 0, "cut": 0})
    assert f"{variable} says so, and what is pending stays so" in told.err
    assert receiver.batches == []


def test_fields_that_may_leave_are_named(log: Path, command: Command) -> None:
    """All others are left out of the payload and listed in `redacted_fields`."""
    told = command("trace", "export", "--log", log, "--format", "jsonl", "--only", "kind,memory_class")
    wrong = command("trace", "export", "--log", log, "--format", "jsonl", "--only", "kinds")

    event = json.loads(told.out.splitlines()[0])
    assert event["redacted_fields"] == ["tenant_id"]
    assert "tenant_id" not in event["payload"]
    assert (wrong.code, "no event has a field `kinds`" in wrong.err) == (2, True)


def refusal(command: Command, *words: Any) -> Answer:
    """The answer to a call that cannot be carried out: a sentence, and code 2."""
    told = command("trace", "export", *words)
    assert (told.code, told.out) == (2, "")
    return told


def test_a_call_that_cannot_be_carried_out_says_what_to_do(
    log: Path, tmp_path: Path, command: Command
) -> None:
    """Place and remedy, and no traceback."""
    (tmp_path / "broken.export").write_text("rubbish")

    assert "not both" in refusal(command, "--store", "sqlite:x.db", "--log", log).err
    assert "name --log FILE" in refusal(command, "--store", "seeds:").err
    assert "no store at" in refusal(command, "--store", f"sqlite:{tmp_path / 'none.db'}").err
    assert "there is no folder" in refusal(command, "--log", tmp_path / "no" / "log.jsonl").err
    assert "not readable" in refusal(command, "--log", tmp_path / "none.jsonl", "--format", "jsonl").err
    assert "is for --format jsonl" in refusal(command, "--log", log, "-o", "x").err
    assert (
        "is for --format otlp" in refusal(command, "--log", log, "--format", "jsonl", "--endpoint", "x").err
    )
    assert "is no address" in refusal(command, "--log", log, "--endpoint", "localhost").err
    hidden = refusal(command, "--log", log, "--endpoint", "grpc://user:hidden@localhost/hidden").err
    assert "--endpoint is no address" in hidden
    assert "hidden" not in hidden
    broken = refusal(command, "--log", log, "--cursor", tmp_path / "broken.export", "--format", "jsonl")
    assert "is no cursor of an export" in broken.err


def test_a_log_that_was_cut_at_its_end_is_not_exported_from(log: Path, command: Command) -> None:
    """The sentence names the line, the cursor and how to look at the log."""
    command("trace", "export", "--log", log, "--format", "jsonl")
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:2]))

    told = refusal(command, "--log", log, "--format", "jsonl")

    assert "does not go on from line 6" in told.err
    assert "trace verify" in told.err


def test_help_does_not_import_opentelemetry_and_neither_do_json_lines(log: Path) -> None:
    """It is an extra: whoever does not send by it need not have it."""
    code = (
        "import sys; from agent_runtime_ref.__main__ import main;"
        f"main(['trace', 'export', '--log', {str(log)!r}, '--format', 'jsonl']);"
        "heavy = ('opentelemetry', 'google.protobuf', 'requests');"
        "sys.exit(any(name.startswith(heavy) for name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    told = as_process("trace", "export", "--help")

    assert (done.returncode, len(done.stdout.splitlines())) == (0, 3)
    assert (told.code, "--follow" in told.out) == (0, True)


def test_reconcile_names_what_is_missing_and_what_was_altered(
    log: Path, tmp_path: Path, command: Command
) -> None:
    """Code 1 for either; the report has ids and names of fields, and no value that somebody put there."""
    collected = tmp_path / "collected.jsonl"
    with Receiver() as receiver:
        command("trace", "export", "--log", log, "--endpoint", receiver.url)
    (line,) = receiver.lines
    collected.write_text(f"{line}\n")
    whole = command("trace", "reconcile", "--log", log, "--collector", collected)
    collected.write_text(line.replace("tenant-acme", "planted", 1) + "\n")
    altered = command("trace", "reconcile", "--log", log, "--collector", collected)
    log_of(log, 1, begin=4)
    missing = command("trace", "reconcile", "--log", log, "--collector", collected)

    assert (whole.code, whole.document["completeness"], whole.document["received"]) == (0, 1.0, 3)
    assert (altered.code, altered.document["altered"]) == (1, ids(1))
    assert altered.document["altered_fields"] == {"evt-001": ["agent_memory.tenant_id"]}
    assert "planted" not in altered.out + altered.err
    assert (missing.code, missing.document["missing"]) == (1, ids(4))
    assert missing.document["hours"] == [
        {"hour": "2026-11-30T09:00:00Z", "expected": 4, "received": 3, "completeness": 0.75}
    ]


def test_reconcile_needs_a_file_of_a_collector(log: Path, tmp_path: Path, command: Command) -> None:
    """Another file is told with its place, and a missing one by its name."""
    none = command("trace", "reconcile", "--log", log, "--collector", tmp_path / "none.jsonl")
    other = command("trace", "reconcile", "--log", log, "--collector", log)

    assert (none.code, "none.jsonl" in none.err, none.out) == (2, True, "")
    assert (other.code, f"{log}:1" in other.err, other.out) == (2, True, "")


def test_a_store_in_one_file_has_its_cursor_beside_it(tmp_path: Path, command: Command) -> None:
    """Nobody has to say where: what is a file has a place beside it."""
    store = f"file:{tmp_path / 'memory.json'}"
    with GovernedMemory.open(store) as memory:
        memory.write(candidate(), caller=caller())

    told = command("trace", "export", "--store", store, "--format", "jsonl", "-o", tmp_path / "events.jsonl")

    assert (told.code, told.document["pending"]) == (0, 0)
    assert (tmp_path / "memory.json.export-jsonl").is_file()
