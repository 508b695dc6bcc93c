"""Every statement of a governed call finds its rows by an index, and not by walking a table."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from agent_runtime_ref import Caller, GovernedMemory, MemoryCandidate
from agent_runtime_ref.runtime import Inspection
from agent_runtime_ref.stores.sqlite import SqliteStore
from tests.support import query

# What grows with the store; the others have a row for a tenant, a setting or nothing.
LAST_LINE = "ORDER BY seq DESC LIMIT 1"  # a walk by the key, from the end, that ends with its first row
BIG = ("records", "contents", "postings", "derivations", "dedup", "tombstones", "quarantine", "log")
_NAMED = re.compile(rf"\b(?:FROM|JOIN) ({'|'.join(BIG)})(?: (?:AS )?([a-z]))?\b")
ASKER = Caller(
    tenant_id="tenant-acme", principal_id="user-42", session_id="session-001", trace_id="trace-001"
)
OPERATOR = Caller(tenant_id="tenant-acme", principal_id="op", roles=("operator",), trace_id="trace-002")


def candidate(number: int, *, content: str = "", mode: str = "append") -> MemoryCandidate:
    """A fact with words of its own, under a key that every tenth shares."""
    text = content or f"support queue number {number} keeps its letters"
    return MemoryCandidate(
        "tenant-acme",
        "long_term",
        "validated_fact",
        text,
        "trusted_service",
        0.9,
        "service:facts",
        mode,
        key=f"queue_{number % 10}",
    )


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GovernedMemory]:
    """A store of two hundred records and more, which the calls share."""
    path = tmp_path_factory.mktemp("plans") / "m.db"
    with GovernedMemory.open(f"sqlite:{path}") as opened:
        opened.write_many([candidate(number) for number in range(200)], caller=ASKER)
        yield opened


@contextmanager
def statements(memory: GovernedMemory) -> Iterator[list[str]]:
    """The statements that the store's connections carry out meanwhile, with their values in place."""
    store = memory._store
    assert isinstance(store, SqliteStore)
    found: list[str] = []
    connections = [pool.get() for pool in (store._pool, store._reads)]
    for one in connections:
        one.set_trace_callback(found.append)
    try:
        yield found
    finally:
        for one in connections:
            one.set_trace_callback(None)


def walked(connection: sqlite3.Connection, statement: str) -> list[str]:
    """The steps of a statement's plan that walk over a big table."""
    if not statement.lstrip().upper().startswith(("SELECT", "WITH", "UPDATE", "DELETE", "INSERT")):
        return []
    if statement.endswith(LAST_LINE):
        return []
    big = {alias or table for table, alias in _NAMED.findall(statement)}
    plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
    return [f"{step}: {statement}" for *_, step in plan if step in {f"SCAN {one}" for one in big}]


CALLS: dict[str, Callable[[GovernedMemory], object]] = {
    "a write": lambda memory: memory.write(candidate(500), caller=ASKER),
    "a write of what is there": lambda memory: memory.write(candidate(3), caller=ASKER),
    "a replacement": lambda memory: memory.write(candidate(7, content="other", mode="replace"), caller=ASKER),
    "many writes": lambda memory: memory.write_many(map(candidate, range(190, 260)), caller=ASKER),
    "a read by words": lambda memory: memory.read(query(), caller=ASKER, text="support queue 17"),
    "a recall": lambda memory: memory.recall("support queue", caller=ASKER),
    "the latest profile": lambda memory: memory.latest_profile(caller=ASKER),
    "a look at one record": lambda memory: memory.inspect(
        Inspection("op", tenant_id="tenant-acme", record_ids=("mem-001",), limit=5), caller=OPERATOR
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_statement_walks_over_a_big_table(memory: GovernedMemory, name: str) -> None:
    """What a call asks of the file is found by keys and indexes, however much else is in it."""
    with statements(memory) as found:
        CALLS[name](memory)
    store = memory._store
    assert isinstance(store, SqliteStore)
    assert any("records" in one or "revisions" in one for one in found), "the call asked nothing of the store"
    for one in dict.fromkeys(found):
        connection = store._reads.get() if "INSERT INTO log" in one else store._pool.get()
        assert walked(connection, one) == []


def test_a_walk_would_be_seen(memory: GovernedMemory) -> None:
    """The check itself finds a statement that looks at every record."""
    store = memory._store
    assert isinstance(store, SqliteStore)
    assert walked(store._pool.get(), "SELECT memory_id FROM records WHERE revision=7")
    assert walked(store._pool.get(), "SELECT r.memory_id FROM records r WHERE r.revision=7")
