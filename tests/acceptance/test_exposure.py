"""`trace exposure`: what was derived from a record, and which contexts any of it entered."""

from __future__ import annotations

import json
import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import Caller, GovernedMemory, PolicyDeniedError
from agent_runtime_ref.errors import DocumentUnreadableError
from agent_runtime_ref.exposure import contexts_of
from agent_runtime_ref.stores.base import Change, WriteBatch
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.testing import FrozenClock, make_record
from tests.acceptance.addresses import address
from tests.acceptance.command import Command
from tests.fake_log import FakeLog, event_line
from tests.reviewing import OPERATOR, opened
from tests.support import TENANT, caller, candidate, note, query

__all__ = ["address"]
KEYS = ["trace_id", "session_id", "principal_id", "at", "via"]


def _written(memory: GovernedMemory, what: Any) -> str:
    return memory.write(what, caller=caller()).record.memory_id


def _family(memory: GovernedMemory) -> tuple[str, str, str, str]:
    """Write a fact, a note about it, a note about that note, and one that has nothing to do with it."""
    fact = _written(memory, candidate("Orders of the plum department go to Basel"))
    child = _written(memory, note("plum means Basel", derived_from=(fact,)))
    grandchild = _written(memory, note("Basel is fast", derived_from=(child,)))
    return fact, child, grandchild, _written(memory, note("the weather is fine"))


def _read(memory: GovernedMemory, number: int, text: str, **changes: Any) -> None:
    who = {"trace_id": f"trace-{number}", "session_id": f"session-{number}"}
    memory.read(query(**who, **changes), caller=caller(**who), text=text)


def test_lists_every_context_of_a_record_and_its_descendants(address: str, command: Command) -> None:
    """A context is listed once for each of them that entered, by time, in every durable store."""
    with GovernedMemory.open(address) as memory:
        fact, child, grandchild, other = _family(memory)
        _read(memory, 1, "plum")
        _read(memory, 2, "weather")
        _read(memory, 3, "fast")

    answer = command("trace", "exposure", fact, "--store", address)

    assert answer.code == 0
    document = answer.document
    assert list(document) == ["record_id", "descendants", "contexts"]
    assert document["record_id"] == fact
    assert document["descendants"] == [child, grandchild]
    assert all(list(one) == KEYS for one in document["contexts"])
    found = [(one["trace_id"], one["session_id"], one["via"]) for one in document["contexts"]]
    assert set(found) == {
        ("trace-1", "session-1", fact),
        ("trace-1", "session-1", child),
        ("trace-3", "session-3", grandchild),
    }
    assert len(found) == 3
    assert other not in answer.out
    assert {one["principal_id"] for one in document["contexts"]} == {"user-42"}
    assert [one["at"] for one in document["contexts"]] == sorted(one["at"] for one in document["contexts"])


def test_looking_is_decided_and_logged(address: str, command: Command) -> None:
    """Each step of the look is an inspection in the log; who may not inspect is refused, and that is too."""
    with GovernedMemory.open(address) as memory:
        fact, *_ = _family(memory)
    who = ("--tenant", TENANT, "--principal", "ada", "--role", "agent")
    refused = command("trace", "exposure", fact, *who, "--store", address)

    assert refused.code == 1
    assert refused.document["effect"] == "deny"
    assert command("trace", "exposure", fact, "--store", address).code == 0
    with GovernedMemory.open(address) as memory:
        lines = [json.loads(line) for read in (False, True) for line in memory.log_lines(read=read)]
    looks = [one for one in lines if one["type"] == "decision" and one["input"]["operation"] == "inspect"]
    effects = [one["result"]["effect"] for one in looks]
    assert (effects.count("deny"), set(effects)) == (1, {"deny", "allow"})
    assert all(one["input"]["query"]["purpose"] == "inspection" for one in looks)


def test_an_operators_look_is_no_context(memory: GovernedMemory) -> None:
    """What an operator or a compliance review is shown is handed to no agent."""
    fact, *_ = _family(memory)
    memory.read(query(purpose="compliance_review"), caller=caller(roles=("operator",)))
    memory.descent(fact, caller=OPERATOR)

    assert list(contexts_of(memory, [fact], TENANT)) == []


def test_another_tenants_records_and_contexts_are_not_there(memory: GovernedMemory) -> None:
    """Neither a record of the same lineage in another tenant nor a context of that tenant is named."""
    fact, child, _, _ = _family(memory)
    theirs = Caller("tenant-b", "user-7", session_id="theirs", trace_id="theirs")
    memory.write(candidate("plum", tenant_id="tenant-b"), caller=theirs)
    memory.read(query(tenant_id="tenant-b", principal_id="user-7"), caller=theirs)
    _read(memory, 1, "plum")

    foreign = Caller("tenant-b", "oscar", roles=("operator",))
    assert memory.descent(fact, caller=foreign).record is None
    assert memory.descent(fact, caller=foreign).descendants == ()
    assert list(contexts_of(memory, [fact, child], "tenant-b")) == []
    assert {one.session_id for one in contexts_of(memory, [fact, child], TENANT)} == {"session-1"}


def test_a_record_that_is_its_own_ancestor_is_met_once() -> None:
    """No gate admits a circle; where a store has one all the same, the walk ends."""
    store = open_store("memory:")
    circle = [make_record("mem-1", derived_from=("mem-3",)), make_record("mem-2", derived_from=("mem-1",)),
              make_record("mem-3", derived_from=("mem-2", "mem-3"))]  # fmt: skip
    store.commit(WriteBatch([Change(one) for one in circle]))
    with opened(store, FrozenClock()) as memory:
        descent = memory.descent("mem-1", caller=OPERATOR)

    assert descent.record == circle[0]
    assert [one.memory_id for one in descent.descendants] == ["mem-2", "mem-3"]


def test_more_descendants_than_one_look_shows() -> None:
    """A thousand children are asked about in parts, and none is lost."""
    store = open_store("memory:")
    children = [make_record(f"mem-{number:04d}", derived_from=("mem-0",)) for number in range(1, 121)]
    store.commit(WriteBatch([Change(one) for one in (make_record("mem-0"), *children)]))
    with opened(store, FrozenClock()) as memory:
        descent = memory.descent("mem-0", caller=OPERATOR)

    assert list(descent.descendants) == children


def test_of_a_record_that_is_gone_the_log_still_tells(address: str, command: Command) -> None:
    """Once rejected or forgotten it has no tenant to be found in, so that is named."""
    about = caller(subject="person-9")
    with GovernedMemory.open(address) as memory:
        gone = memory.write(note("likes plum", subject="person-9"), caller=about).record.memory_id
        memory.read(query(), caller=about, text="plum")
        memory.forget(subject="person-9", caller=caller(roles=("operator",)))

    unnamed = command("trace", "exposure", gone, "--store", address)
    named = command("trace", "exposure", gone, "--tenant", TENANT, "--store", address)

    assert (unnamed.code, unnamed.out) == (2, "")
    assert "name the tenant with --tenant" in unnamed.err
    assert named.code == 0
    assert [one["via"] for one in named.document["contexts"]] == [gone]
    assert "has no record" in named.err


def test_the_same_id_in_two_tenants_is_not_guessed(tmp_path: Path, command: Command) -> None:
    """A record id is a tenant's own; where two have it, one has to be named."""
    address = f"sqlite:{tmp_path / 'memory.db'}"
    store = open_store(address)
    store.commit(
        WriteBatch([Change(make_record("mem-1", tenant_id=one)) for one in ("tenant-a", "tenant-b")])
    )
    store.close()

    answer = command("trace", "exposure", "mem-1", "--store", address)

    assert (answer.code, answer.out) == (2, "")
    assert "`tenant-a`, `tenant-b`; name one with --tenant" in answer.err


def test_needs_a_store_that_is_named(command: Command) -> None:
    """The default ends with the command, so nothing could have been exposed in it."""
    assert command("trace", "exposure", "mem-1").code == 2


def _built(number: int, record_id: str, second: int) -> bytes:
    layers = {"retrieved": ["mem-9", record_id]}
    at = f"2026-05-01T10:{second // 60:02d}:{second % 60:02d}Z"
    payload = {"tenant_id": TENANT, "record_ids": layers}
    return event_line("context_layers_built", payload, trace_id=f"trace-{number}", at=at)


def test_the_log_is_never_held() -> None:
    """However many lines there are, memory stays where it was after the first ones."""
    log: Any = FakeLog(_built(number, "mem-1", 0) for number in range(30_000))
    tracemalloc.start()
    try:
        count = sum(1 for _ in contexts_of(log, ["mem-1"], TENANT))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert count == 30_000
    assert peak < 1_000_000  # the lines are six megabytes


def test_two_logs_are_told_as_one() -> None:
    """Reads and runs are logged apart; what they exposed is listed by time."""
    log: Any = FakeLog(
        (_built(number, "mem-1", second) for number, second in ((1, 1), (2, 5))),
        (_built(number, "mem-1", second) for number, second in ((3, 2), (4, 9))),
    )

    found = [one.trace_id for one in contexts_of(log, ["mem-1"], TENANT)]
    assert found == ["trace-1", "trace-3", "trace-2", "trace-4"]


@pytest.mark.parametrize(
    "line",
    [b'{"event_type":"context_layers_built"', b'["\\"event_type\\":\\"context_layers_built\\""]'],
    ids=["torn", "of another shape"],
)
def test_a_damaged_line_is_told_with_its_place(line: bytes) -> None:
    """A log that cannot be read all through cannot say that nothing else was exposed."""
    log: Any = FakeLog(iter([_built(1, "mem-1", 1), line.replace(b'\\"', b'"')]))
    with pytest.raises(DocumentUnreadableError) as error:
        list(contexts_of(log, ["mem-1"], TENANT))

    assert (error.value.source, error.value.line) == ("write log", 2)


def test_what_a_line_says_is_harmless_on_a_terminal(tmp_path: Path, command: Command) -> None:
    """Whoever can write the log can put there what a terminal would act on; it is printed as an escape."""
    path = tmp_path / "memory.db"
    with GovernedMemory.open(f"sqlite:{path}") as memory:
        fact = _written(memory, candidate())
        _read(memory, 1, "support")
    with closing(sqlite3.connect(f"{path}.reads")) as log, log:
        log.execute("UPDATE log SET line=replace(line, 'trace-1', ?)", ("\\u001b[2J\\u202e",))
    answer = command("trace", "exposure", fact, "--store", f"sqlite:{path}")

    assert answer.document["contexts"][0]["trace_id"] == "\x1b[2J\u202e"
    assert "\x1b" not in answer.out
    assert "\u202e" not in answer.out


def test_a_stranger_may_not_walk(memory: GovernedMemory) -> None:
    """Whoever is no operator is shown no descendant, whatever the record."""
    fact, *_ = _family(memory)
    with pytest.raises(PolicyDeniedError):
        memory.descent(fact, caller=caller())
