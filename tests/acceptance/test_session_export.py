"""`session export`: the runs, decisions and events of one session."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import Caller, GovernedMemory, PolicyDeniedError
from agent_runtime_ref.exposure import session_export
from agent_runtime_ref.replay.log import Span, decisions_in
from tests.acceptance.addresses import address
from tests.acceptance.command import Command
from tests.fake_log import FakeLog, event_line
from tests.support import TENANT, caller, candidate, query

__all__ = ["address"]


def _session(memory: GovernedMemory, session_id: str, **changes: Any) -> None:
    """Write a fact and read it, in one session."""
    who = caller(session_id=session_id, trace_id=f"of-{session_id}", **changes)
    memory.write(candidate(f"Fact of {session_id}", tenant_id=who.tenant_id), caller=who)
    asked = query(session_id=session_id, trace_id=f"of-{session_id}", tenant_id=who.tenant_id,
                  principal_id=who.principal_id)  # fmt: skip
    memory.read(asked, caller=who)


def test_holds_the_decisions_and_events_of_one_session(address: str, command: Command) -> None:
    """Those of other sessions are not in it; it says whose the session is."""
    with GovernedMemory.open(address) as memory:
        _session(memory, "session-1")
        _session(memory, "session-2")
    answer = command("session", "export", "session-2", "--store", address)

    assert answer.code == 0
    document = answer.document
    assert list(document) == ["session_id", "tenant_id", "principal_id", "runs", "decisions", "events"]
    assert (document["session_id"], document["tenant_id"]) == ("session-2", TENANT)
    assert document["principal_id"] == "user-42"
    assert [one["input"]["operation"] for one in document["decisions"]] == ["write", "search"]
    assert [one["event_type"] for one in document["events"]] == [
        "memory_write_decision",
        "memory_persisted",
        "retrieval",
        "context_layers_built",
    ]
    assert {one["payload"]["session_id"] for one in document["events"]} == {"session-2"}
    assert {one["session_id"] for one in document["decisions"]} == {"session-2"}
    assert "Fact of" not in answer.out


def test_goes_to_a_file(tmp_path: Path, command: Command) -> None:
    """With -o the same document is in the file, and nothing on standard output."""
    address, target = f"sqlite:{tmp_path / 'memory.db'}", tmp_path / "session.json"
    with GovernedMemory.open(address) as memory:
        _session(memory, "session-1")
    answer = command("session", "export", "session-1", "--store", address, "-o", target)

    assert (answer.code, answer.out) == (0, "")
    assert json.loads(target.read_text())["session_id"] == "session-1"


def test_runs_are_told_with_their_end() -> None:
    """A run is what began; where the log does not say how it ended, it is open."""
    who = {"session_id": "session-1", "tenant_id": TENANT, "principal_id": "user-42"}
    told = [
        ("run_start", "trace-1", {"purpose": "planning"}),
        ("run_complete", "trace-1", {"status": "complete"}),
        ("run_start", "trace-2", {"purpose": "planning"}),
        ("run_start", "trace-3", {"purpose": "planning"}),
        ("run_failed", "trace-2", {"status": "denied"}),
    ]
    log: Any = FakeLog(
        event_line(kind, who | payload, trace_id=trace, at=f"2026-05-01T10:00:0{second}Z")
        for second, (kind, trace, payload) in enumerate(told)
    )

    runs = session_export(log, "session-1", None).runs
    assert [(one["trace_id"], one["status"], one["ended_at"]) for one in runs] == [
        ("trace-1", "complete", "2026-05-01T10:00:01Z"),
        ("trace-2", "denied", "2026-05-01T10:00:04Z"),
        ("trace-3", "open", None),
    ]
    assert {one["purpose"] for one in runs} == {"planning"}


def test_runs_under_one_trace_are_each_told() -> None:
    """A caller may give several turns one trace; an end is that of the latest that is open."""
    who = {"session_id": "session-1", "tenant_id": TENANT, "principal_id": "user-42"}
    kinds = (
        "run_start",
        "run_complete",
        "run_start",
        "run_start",
        "run_failed",
        "run_complete",
        "run_failed",
    )
    log: Any = FakeLog(
        event_line(kind, who, trace_id="trace-1", at=f"2026-05-01T10:00:0{second}Z")
        for second, kind in enumerate(kinds)
    )

    runs = session_export(log, "session-1", None).runs
    assert [(one["started_at"][-3:], one["ended_at"][-3:], one["status"]) for one in runs] == [
        ("00Z", "01Z", "complete"),
        ("02Z", "05Z", "complete"),
        ("03Z", "04Z", "failed"),
    ]


def test_a_session_that_is_called_as_its_subject_is_found(memory: GovernedMemory) -> None:
    """Such a name stands in the log as the subject's pseudonym; the tenant has to be named for it."""
    who = caller(subject="person-9", session_id="person-9")
    for drink in ("tea", "milk"):  # the first of them makes the key
        memory.write(candidate(f"likes {drink}", subject="person-9"), caller=who)

    session = session_export(memory, "person-9", TENANT)
    assert len(session.decisions) == 1
    assert session.events[0]["payload"]["session_id"].startswith("subject:")


def test_a_session_of_two_tenants_is_not_guessed(tmp_path: Path, command: Command) -> None:
    """Session ids are the callers' own; where two tenants use one, one of them has to be named."""
    address = f"sqlite:{tmp_path / 'memory.db'}"
    with GovernedMemory.open(address) as memory:
        _session(memory, "session-1")
        _session(memory, "session-1", tenant_id="tenant-b")

    unnamed = command("session", "export", "session-1", "--store", address)
    named = command("session", "export", "session-1", "--tenant", "tenant-b", "--store", address)
    absent = command("session", "export", "session-9", "--tenant", "tenant-b", "--store", address)

    assert (unnamed.code, unnamed.out) == (2, "")
    assert "`tenant-acme`, `tenant-b`; name one with --tenant" in unnamed.err
    assert {one["payload"]["tenant_id"] for one in named.document["events"]} == {"tenant-b"}
    assert absent.code == 2
    assert "has no session `session-9` in tenant `tenant-b`" in absent.err


def test_looking_is_decided_and_logged(memory: GovernedMemory) -> None:
    """Who may inspect may look; the look is a decision in the log, and so is its refusal."""
    _session(memory, "session-1")
    operator = Caller(TENANT, "oscar", roles=("operator",))
    decision = memory.look_into_log(caller=operator, tenant_id=TENANT)
    with pytest.raises(PolicyDeniedError) as refused:
        memory.look_into_log(caller=caller(), tenant_id=TENANT)

    lines = [json.loads(line) for line in memory.log_lines(read=True)]
    logged = {line["decision_id"]: line["result"]["effect"] for line in lines if line["type"] == "decision"}
    assert logged[decision.decision_id] == "allow"
    assert refused.value.decision is not None
    assert logged[refused.value.decision.decision_id] == "deny"


def test_a_replay_leaves_looks_into_the_log_out(memory: GovernedMemory) -> None:
    """A look into the log showed nobody a record, so no policy could have shown another one."""
    _session(memory, "session-1")
    memory.look_into_log(caller=Caller(TENANT, "oscar", roles=("operator",)), tenant_id=None)

    replayed = decisions_in(memory.log_lines(read=True), "log", Span(), lambda *_: None)
    assert [one.input["operation"] for one in replayed] == ["search"]


def test_only_named_fields_leave(tmp_path: Path, command: Command) -> None:
    """What somebody put into the log, or a newer version did, is left out and named by its place."""
    path = tmp_path / "memory.db"
    with GovernedMemory.open(f"sqlite:{path}") as memory:
        _session(memory, "session-1")
    with closing(sqlite3.connect(path)) as database, database:
        for old, new in (
            ('"input_version":1', '"input_version":1,"a/b":"secret words"'),
            ('"operation":"write","now_ns"', '"operation":"write","content":"secret words","now_ns"'),
            ('"payload":{', '"payload":{"content":"secret words",'),
        ):
            database.execute("UPDATE log SET line=replace(line, ?, ?)", (old, new))
    answer = command("session", "export", "session-1", "--store", f"sqlite:{path}")

    assert "secret words" not in answer.out
    assert answer.document["decisions"][0]["redacted_fields"] == ["/a~1b", "/input/content"]
    assert answer.document["events"][0]["redacted_fields"] == ["/payload/content"]


def test_a_masked_decision_is_known_by_its_events(tmp_path: Path) -> None:
    """Where the mask took the caller out of a line, the events of the decision say whose it is."""
    address = f"sqlite:{tmp_path / 'memory.db'}"
    with GovernedMemory.open(address, log_mask=["/input/caller"]) as memory:
        _session(memory, "session-1")
        session = session_export(memory, "session-1", TENANT)

    assert ["caller" in one["input"] for one in session.decisions] == [False, False]
    assert [one["erased"] for one in session.decisions] == [["/input/caller"]] * 2
