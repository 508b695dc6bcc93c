"""`trace inspect` and `demo`."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from agent_runtime_ref.telemetry.logfile import LogFile, Rotation
from agent_runtime_ref.telemetry.segments import closed_segments
from tests.acceptance.command import WHO, Command, fact, file_of, order, question


@pytest.fixture
def store(command: Command, tmp_path: Path) -> str:
    """A store with a fact, an order in quarantine, and one read that keeps the order out."""
    address = f"sqlite:{tmp_path / 'memory.db'}"
    for number, document in enumerate((fact(), order())):
        path = file_of(tmp_path / f"{number}.yaml", document)
        command("write", "--candidate", path, *WHO, "--store", address)
    command("read", "--query", file_of(tmp_path / "q.yaml", question()), *WHO, "--store", address)
    return address


def _id_of(command: Command, store: str, status: str) -> str:
    # Looked up in the log and not by an inspection, which would add lines to it.
    event = {"active": "memory_persisted", "quarantined": "memory_quarantined"}[status]
    traces = command("trace", "inspect", "--store", store, "--format", "json").document
    lines = [line for trace in traces for line in trace["lines"] if line.get("event_type") == event]
    return str(lines[0]["payload"]["record_id"])


def test_shows_every_trace_as_a_tree(command: Command, store: str) -> None:
    """A trace is a line; below it its decisions and events, oldest first."""
    answer = command("trace", "inspect", "--store", store)

    assert (answer.code, answer.err) == (0, "")
    assert sum(not line.startswith((" ", "├", "└", "│")) for line in answer.out.splitlines()) == 3
    assert "trace-001  session session-001" in answer.out
    assert "quarantine: instruction_like (MEM-W-201)" in answer.out


def test_json_holds_the_lines_as_they_are(command: Command, store: str) -> None:
    """JSON is a list of traces with the sealed lines of both logs."""
    traces = command("trace", "inspect", "trace-001", "--store", store, "--format", "json").document

    assert [trace["trace_id"] for trace in traces] == ["trace-001"]
    assert [line["type"] for line in traces[0]["lines"]] == ["decision", "event", "event"]
    assert all(re.fullmatch("[0-9a-f]{64}", line["hash"]) for line in traces[0]["lines"])


def test_says_why_a_record_entered_or_did_not(command: Command, store: str) -> None:
    """Returned with its rank, or kept out with the reason: each is said of the read."""
    expected = {
        _id_of(command, store, "active"): {"outcome": "returned", "rank": 1},
        _id_of(command, store, "quarantined"): {"outcome": "kept_out", "reason": "status_not_active"},
    }
    for record_id, outcome in expected.items():
        words = ["trace", "inspect", "trace-001", "--store", store, "--record", record_id]
        (decision,) = command(*words, "--format", "json").document[0]["decisions"]
        assert {name: decision[name] for name in outcome} == outcome
        assert record_id in command(*words).out


def test_says_how_a_record_came_in(command: Command, store: str) -> None:
    """Over all traces the write of a record is part of its story."""
    record_id = _id_of(command, store, "quarantined")
    traces = command("trace", "inspect", "--store", store, "--record", record_id, "--format", "json").document

    outcomes = [one["outcome"] for trace in traces for one in trace["decisions"]]
    assert outcomes == ["quarantined", "kept_out"]


def test_reads_a_log_file_and_a_trace_file(command: Command, tmp_path: Path) -> None:
    """A decision log and a trace in files are shown the same way."""
    log, trace = tmp_path / "log.jsonl", tmp_path / "trace.jsonl"
    query = file_of(tmp_path / "q.yaml", question(filters={"trust_min": "medium"}))
    command("read", "--query", query, *WHO, "--log", log, "--trace", trace)

    said = command("trace", "inspect", "trace-001", "--log", log, "--record", "mem-003").out
    assert "`mem-003` was kept out: trust_below_minimum" in said
    assert "`mem-001` was returned" in command("trace", "inspect", "--log", trace, "--record", "mem-001").out
    assert (
        "`mem-003` was not returned" in command("trace", "inspect", "--log", trace, "--record", "mem-003").out
    )


def test_an_unknown_trace_is_an_error(command: Command, store: str) -> None:
    """An id that the log does not hold ends in 2."""
    answer = command("trace", "inspect", "trace-999", "--store", store)

    assert (answer.code, answer.out) == (2, "")
    assert "no trace `trace-999` in the log; without an id all of them are listed" in answer.err


def test_a_trace_that_is_looked_for_in_no_named_log(command: Command) -> None:
    """The seeds begin their log with the command, so what was meant is another one."""
    answer = command("trace", "inspect", "trace-999")

    assert (answer.code, answer.out) == (2, "")
    assert "in the log of the bundled seeds" in answer.err
    assert "name yours with --store or --log" in answer.err


def test_a_line_that_is_none_is_placed(command: Command, tmp_path: Path) -> None:
    """A file that is no log is told with its line."""
    log = tmp_path / "log.jsonl"
    log.write_text('\n{"trace_id": "t"}\n', encoding="utf-8")
    answer = command("trace", "inspect", "--log", log)

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"{log}:2: ")


def test_a_changed_line_of_a_log_file_is_told(command: Command, tmp_path: Path) -> None:
    """Changed or removed, the first line that does not fit is named, and the exit code is 1."""
    log, trace = tmp_path / "log.jsonl", tmp_path / "trace.jsonl"
    command("read", "--query", file_of(tmp_path / "q.yaml", question()), *WHO, "--log", log, "--trace", trace)
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    whole = command("trace", "inspect", "--log", log)
    log.write_text("".join([lines[0].replace("seed", "sEed"), *lines[1:]]), encoding="utf-8")
    changed = command("trace", "inspect", "--log", log)
    log.write_text("".join([lines[0], *lines[2:]]), encoding="utf-8")
    removed = command("trace", "inspect", "--log", log)

    assert (whole.code, whole.err) == (0, "")
    assert changed.code == removed.code == 1
    assert f"warning: {log}:1: the chain of the log does not hold: hash" in changed.err
    assert f"{log}:2: the chain of the log does not hold: sequence number 3" in removed.err
    assert removed.out
    assert (
        command("trace", "inspect", "--log", trace).code,
        command("trace", "inspect", "trace-001", "--log", trace).err,
    ) == (0, "")


def test_a_changed_line_in_a_store_is_told(command: Command, store: str) -> None:
    """The log of writes and that of reads are two chains, and both are verified."""
    reads = store.removeprefix("sqlite:") + ".reads"
    with closing(sqlite3.connect(reads)) as connection, connection:
        connection.execute("UPDATE log SET line = replace(line, 'user-42', 'user-43')")
    answer = command("trace", "inspect", "--store", store)

    assert answer.code == 1
    assert "read log:1: the chain of the log does not hold" in answer.err


def test_a_missing_log_of_reads_is_said(command: Command, store: str) -> None:
    """Each time it is looked at, and looking makes no new one."""
    reads = Path(store.removeprefix("sqlite:") + ".reads")
    reads.unlink()
    for _ in range(2):
        answer = command("trace", "inspect", "--store", store)
        assert answer.code == 0
        assert f"no `{reads}` beside the store" in answer.err
    assert not reads.exists()


def test_a_store_or_a_file_and_not_both(command: Command, store: str) -> None:
    """Two logs at once would be one ignored."""
    assert command("trace", "inspect", "--store", store, "--log", "x.jsonl").code == 2


def test_the_tour_is_real_and_leaves_nothing(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guided example reads, refuses, quarantines, redacts, forgets, verifies, and removes its store."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    answer = command("demo")

    assert (answer.code, answer.err) == (0, "")
    assert 45 <= len(answer.out.splitlines()) <= 90
    for said in (
        "mem-003 is kept out: trust_below_minimum (MEM-R-204); let in if trust_level were `medium`",
        "tenant_mismatch (MEM-R-101)",
        "quarantine: instruction_like (MEM-W-201)",
        "secret_in_durable_class (MEM-W-112)",
        "[redacted:secret.aws_key]",
        "Removed: 8 long_term, 2 profile",
        "each hash fits",
    ):
        assert said in answer.out
    assert "AKIA" not in answer.out
    assert list(tmp_path.iterdir()) == []


def test_the_tour_as_json(command: Command) -> None:
    """With --format json the steps are data."""
    steps = json.loads(command("demo", "--format", "json").out)["steps"]

    assert [step["step"] for step in steps] == list(range(1, len(steps) + 1))
    result = steps[1]["data"]["result"]
    assert len(result["selected_records"]) == 2
    assert result["exclusions"] == {"trust_below_minimum": 1}
    assert steps[-1]["data"]["chain_ok"] is True


def test_a_pipe_or_a_device_is_no_log(command: Command, tmp_path: Path) -> None:
    """It is refused and never waited for, and nothing of it counts as a log that holds."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for name in (pipe, "/dev/null"):
        for words in (("verify", name), ("inspect", "--log", name)):
            answer = command("trace", *words)
            assert (answer.code, answer.out) == (2, "")
            assert "is a pipe or a device" in answer.err


def test_a_closed_segment_alone_is_no_broken_chain(command: Command, tmp_path: Path) -> None:
    """Its first line follows one that is elsewhere; what is changed in it is still told."""
    file = LogFile(tmp_path / "log.jsonl", rotation=Rotation(max_bytes=10))
    event = {"type": "event", "event_type": "x", "trace_id": "t", "timestamp": "2026-06-01T12:00:00Z"}
    for number in range(3):
        file.append([json.dumps(event | {"payload": {"number": number}})])
    second = closed_segments(file.path)[1]
    whole = command("trace", "inspect", "--log", second)
    second.write_text(second.read_text().replace('"number": 1', '"number": 7'))
    changed = command("trace", "inspect", "--log", second)

    assert (whole.code, whole.err) == (0, "")
    assert changed.code == 1
    assert f"{second}:1: the chain of the log does not hold: hash" in changed.err
