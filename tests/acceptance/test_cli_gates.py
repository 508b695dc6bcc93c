"""`read`, `write`, `forget` and `quarantine`: the gates from the command line, and their exit codes."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.resources import policies_path
from agent_runtime_ref.validation import check
from tests.acceptance.command import WHO, Answer, Command, fact, file_of, order, question


@pytest.fixture
def store(tmp_path: Path) -> str:
    """The address of a SQLite store that is not there yet."""
    return f"sqlite:{tmp_path / 'memory.db'}"


def _write(command: Command, folder: Path, store: str, document: dict[str, Any], *words: str) -> Answer:
    return command(
        "write", "--candidate", file_of(folder / "c.yaml", document), *WHO, "--store", store, *words
    )


def test_write_then_read(command: Command, tmp_path: Path, store: str) -> None:
    """A write prints its receipt; a read of the same store prints a valid retrieval_result that names it."""
    receipt = _write(command, tmp_path, store, fact())
    query = file_of(tmp_path / "q.yaml", question())
    answer = command("read", "--query", query, "--text", "invoices", *WHO, "--store", store)

    assert (receipt.code, receipt.err, receipt.document["effect"]) == (0, "", "allow")
    assert (answer.code, answer.err) == (0, "")
    check("retrieval_result", answer.document)
    written = receipt.document["record"]["record_id"]
    assert [row["record_id"] for row in answer.document["selected_records"]] == [written]


def test_documents_come_from_stdin_too(command: Command, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads standard input, JSON or YAML."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(fact())))
    assert command("write", "--candidate", "-", *WHO, "--store", store).code == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO("kind: retrieval_query\nlimit: many\n"))
    answer = command("read", "--query", "-", *WHO, "--store", store)

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("<stdin>:")


def test_read_explains_each_record(command: Command, tmp_path: Path, store: str) -> None:
    """With --explain the result comes with a decision for every record of the tenant, without content."""
    _write(command, tmp_path, store, fact())
    _write(command, tmp_path, store, order())
    query = file_of(tmp_path / "q.json", question())
    document = command("read", "--query", query, *WHO, "--store", store, "--explain").document

    check("retrieval_result", document["result"])
    outcome = {one["kind"]: (one["selected"], one["decision"]["reasons"]) for one in document["explanation"]}
    assert outcome == {"validated_fact": (True, []), "working_note": (False, ["status_not_active"])}
    assert "Invoices" not in json.dumps(document)


def test_a_refused_read_ends_in_1(command: Command, tmp_path: Path) -> None:
    """Out of another tenant the query is refused: the decision on stdout, one sentence on stderr."""
    query = file_of(tmp_path / "q.yaml", question())
    answer = command("read", "--query", query, "--tenant", "tenant-b", "--principal", "user-42")

    assert answer.code == 1
    check("decision", answer.document)
    assert answer.document["rule_ids"] == ["MEM-R-101"]
    assert answer.err == "agent-runtime-ref: `search` refused by policy: tenant_mismatch (MEM-R-101)\n"


def test_a_refused_write_ends_in_1_and_writes_nothing(command: Command, tmp_path: Path, store: str) -> None:
    """The decision is printed as JSON; the store holds no record."""
    answer = _write(command, tmp_path, store, fact(source="rumour"))

    assert (answer.code, answer.document["reasons"][0]) == (1, "source_not_registered")
    assert command("inspect-memory", "--store", store).document["count"] == 0


def test_quarantine_is_taken_in_and_said(command: Command, tmp_path: Path, store: str) -> None:
    """A quarantined write ends in 0 with a note; the queue shows it, and why it is there."""
    answer = _write(command, tmp_path, store, order())
    record_id = answer.document["record"]["record_id"]
    queue = command("quarantine", "list", "--store", store).document
    shown = command("quarantine", "show", record_id, "--store", store).document

    assert (answer.code, answer.document["effect"]) == (0, "quarantine")
    assert answer.err.startswith("note: quarantined")
    assert [record["memory_id"] for record in queue["records"]] == [record_id]
    assert shown == queue["records"][0]
    assert "instruction_like" in shown["quarantined"]["reasons"]
    assert shown["quarantined"]["decision_id"] == answer.document["decision"]["decision_id"]
    assert "instruction_like" in command("quarantine", "list", "--store", store, "--format", "table").out


def test_quarantine_shows_only_what_is_in_it(command: Command, tmp_path: Path, store: str) -> None:
    """The id of a record that is not in quarantine is an error that says where to look."""
    record_id = _write(command, tmp_path, store, fact()).document["record"]["record_id"]
    answer = command("quarantine", "show", record_id, "--store", store)

    assert (answer.code, answer.out) == (2, "")
    assert "quarantine list" in answer.err


def test_a_volatile_store_is_said_to_be_one(command: Command, tmp_path: Path) -> None:
    """A write into a store that ends with the command says so."""
    assert "ends with this command" in _write(command, tmp_path, "memory:", fact()).err


def test_forget_counts_first_then_removes(command: Command, tmp_path: Path, store: str) -> None:
    """A dry run removes nothing; the receipt of the real one says what it does not cover."""
    _write(command, tmp_path, store, fact(subject="person-7"), "--subject", "person-7")
    words = [
        "forget",
        "--subject",
        "person-7",
        "--tenant",
        "tenant-acme",
        "--principal",
        "dpo",
        "--store",
        store,
    ]
    dry = command(*words, "--dry-run").document
    left = command("inspect-memory", "--store", store).document["count"]
    receipt = command(*words)

    assert (dry["dry_run"], dry["records"], left) == (True, 1, 1)
    assert (receipt.code, receipt.document["by_class"]) == (0, {"long_term": 1})
    assert receipt.document["not_covered"]
    assert command("inspect-memory", "--store", store).document["count"] == 0


def test_forget_is_refused_to_another_role(command: Command, tmp_path: Path, store: str) -> None:
    """A role that is named takes the place of the operator's, and may not be enough."""
    _write(command, tmp_path, store, fact(subject="person-7"), "--subject", "person-7")
    answer = command("forget", "--subject", "person-7", *WHO, "--role", "reader", "--store", store)

    assert (answer.code, answer.document["reasons"]) == (1, ["erasure_not_permitted"])


def test_documents_that_lie_are_placed(command: Command, tmp_path: Path) -> None:
    """An unreadable or wrong document is told as file, line, column and sentence, and ends in 2."""
    path = tmp_path / "query.yaml"
    path.write_text("kind: retrieval_query\ntrace_id: 1\nkind: again\n", encoding="utf-8")
    doubled = command("read", "--query", path, *WHO)
    path.write_text("memory:\n  seed_records:\n    - 1\n", encoding="utf-8")
    seeds = command("inspect-memory", "--config", path)

    assert (doubled.code, doubled.out) == (2, "")
    assert doubled.err == f"{path}:3:1: retrieval_query $: is not readable: duplicate key `kind`\n"
    assert (seeds.code, seeds.err) == (2, f"{path}:3:7: Memory record #1 must be a mapping\n")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["read", "--query", "missing.yaml", *WHO], 2),
        (["inspect-memory", "--store", "carrier:pigeon"], 2),
        (["inspect-memory", "--store", "sqlite:"], 2),
        (["inspect-memory", "--engine", "oracle"], 2),
        (["inspect-memory", "--policies", "no-such-folder"], 2),
        (["inspect-memory", "--settings", "no-such-file.yaml"], 2),
        (["inspect-memory", "--config", "no-such-file.yaml"], 2),
        (["trace", "inspect", "--log", "no-such-file.jsonl"], 2),
        (["policy", "decide", "read", "--input", "no-such-file.json"], 2),
        (["policy"], 2),
        (["nonsense"], 2),
        ([], 2),
        (["--version"], 0),
        (["--help"], 0),
    ],
)
def test_exit_codes(command: Command, words: list[str], code: int) -> None:
    """Usage, configuration and unreadable input end in 2, in one line on stderr."""
    answer = command(*words)

    assert answer.code == code
    if code:
        assert answer.out == ""
        assert answer.err.count("\n") == 1


def test_a_refused_seed_ends_in_1(command: Command, tmp_path: Path) -> None:
    """A seed file that the write policy refuses is named with record, reason and rule."""
    seeds = file_of(tmp_path / "memory.yaml", {"memory": {"seed_records": [fact(source="rumour")]}})
    answer = command("inspect-memory", "--config", seeds)

    assert answer.code == 1
    assert "#1 `mem-001` source_not_registered" in answer.err


def test_policies_that_are_none_are_configuration(command: Command, tmp_path: Path) -> None:
    """A folder without policies ends in 2."""
    answer = command("inspect-memory", "--policies", tmp_path)

    assert (answer.code, answer.out) == (2, "")
    assert "bundle_missing" in answer.err


def test_an_engine_without_a_clear_answer_ends_in_3(command: Command, tmp_path: Path) -> None:
    """A policy that answers half is an engine failure: a refusal with its decision, and code 3."""
    policies = tmp_path / "policies"
    shutil.copytree(policies_path(), policies)
    shutil.rmtree(policies / "memory" / "read")
    (policies / "memory" / "read.rego").write_text(
        'package memory.read\n\ndecision := {"allow": false, "deny": []}\n', encoding="utf-8"
    )
    answer = command("inspect-memory", "--policies", policies)

    assert answer.code == 3
    assert answer.document["reasons"] == ["engine_wrong_type"]
    assert "refused because the policy engine failed: engine_wrong_type" in answer.err
    assert "\x1b" not in answer.err


def test_an_internal_error_ends_in_3_without_a_traceback(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nobody foresaw is one line; --debug shows where it happened."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the floor gave way")

    monkeypatch.setattr("agent_runtime_ref.runtime.GovernedMemory.open", broken)
    plain, debugged = command("inspect-memory"), command("--debug", "inspect-memory")

    assert (plain.code, debugged.code) == (3, 3)
    assert "internal error: RuntimeError: the floor gave way" in plain.err
    assert "Traceback" in debugged.err


def test_an_interrupt_ends_in_130(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control-C is an answer of the user's and no error."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("agent_runtime_ref.runtime.GovernedMemory.open", interrupted)

    answer = command("inspect-memory")
    assert (answer.code, answer.err) == (130, "")


def test_an_option_wins_over_the_environment_and_that_over_the_file(
    command: Command, tmp_path: Path, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Option, then environment, then runtime.yaml, then the default."""
    _write(command, tmp_path, store, fact())
    settings = file_of(tmp_path / "runtime.yaml", {"store": "memory:"})
    assert command("--settings", settings, "inspect-memory").document["source"] == "memory:"
    assert command("inspect-memory", "--settings", settings).document["source"] == "memory:"
    monkeypatch.setenv("AGENT_RUNTIME_STORE", store)
    assert command("--settings", settings, "inspect-memory").document["source"] == store
    assert command("inspect-memory", "--store", "seeds:").document["source"] == "seeds:"


def test_what_a_receipt_leaves_out_stands_at_its_default(command: Command, tmp_path: Path) -> None:
    """Confidence 0.5 and the status active are not printed, and a record read back has them."""
    offered = file_of(
        tmp_path / "fact.yaml", fact(memory_class="short_term", kind="working_note", confidence=0.5)
    )
    document = command("write", "--candidate", offered, *WHO, "--store", "memory:").document["record"]

    assert not {"confidence", "status"} & set(document)
    record = MemoryRecord.from_document(document)
    assert (record.confidence, record.status) == (0.5, "active")
