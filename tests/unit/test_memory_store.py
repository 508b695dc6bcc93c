"""The in-memory store of the seeds: below the gates, small, and exact in what it answers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from agent_runtime_ref.clock import instant
from agent_runtime_ref.config import load_memory_store, load_seed_records
from agent_runtime_ref.memory import MemoryCandidate, MemoryRecord, MemoryStore

NOW_US = 1_775_563_200_000_000


class FrozenClock:
    """A clock that stands still."""

    def now_us(self) -> int:
        """Return the one instant."""
        return NOW_US

    def monotonic_ns(self) -> int:
        """Return the one reading."""
        return 0


class CountedIds:
    """Ids in order."""

    def __init__(self) -> None:
        self.count = 0

    def new(self, kind: str) -> str:
        """Return the next id."""
        self.count += 1
        return f"{kind}-{self.count}"


def store(*records: MemoryRecord) -> MemoryStore:
    """Return a store with a clock and ids that repeat."""
    return MemoryStore(records, clock=FrozenClock(), ids=CountedIds())


def record(memory_id: str, content: str = "x", *, tenant_id: str = "t", **more: Any) -> MemoryRecord:
    """Return a long-term fact."""
    return MemoryRecord(
        memory_id, tenant_id, "long_term", "validated_fact", content, "s", 0.5, "p", 1, **more
    )


def candidate(content: str = "new", **more: Any) -> MemoryCandidate:
    """Return a candidate that may take the place of a record."""
    return MemoryCandidate("t", "long_term", "validated_fact", content, "s", 0.5, "p", **more)


def test_store_without_records_holds_the_bundled_seeds() -> None:
    """`MemoryStore()` and the loader agree; `MemoryStore([])` holds nothing."""
    seeds = [(seed.memory_id, seed.memory_class, seed.kind, seed.source) for seed in MemoryStore().all()]

    assert seeds == [
        ("mem-001", "profile", "language_preference", "trusted_profile"),
        ("mem-002", "long_term", "validated_fact", "trusted_service"),
        ("mem-003", "short_term", "working_note", "session_state"),
    ]
    assert list(MemoryStore().all()) == load_seed_records() == list(load_memory_store().all())
    assert MemoryStore([]).all() == ()


def test_retrieve_puts_the_best_first() -> None:
    """A record is found by its text, and where that shares no term, by the words of kind and key."""
    found = MemoryStore().retrieve("which queue for support tickets", "tenant-acme")
    by_label = MemoryStore().retrieve("language preference", "tenant-acme", limit=1)

    assert found[0].memory_id == "mem-002"
    assert [entry.memory_id for entry in by_label] == ["mem-001"]


@pytest.mark.parametrize("query", ["zebra", "!!!", "\U0001f984"])
def test_retrieve_without_a_shared_term_gives_the_tenants_records(query: str) -> None:
    """Nothing shared is no reason for an empty answer; the newer come first."""
    older = record("a", created_at=instant(NOW_US - 5))
    newer = record("b", created_at=instant(NOW_US - 4))

    assert store(older, newer, record("c", tenant_id="u")).retrieve(query, "t") == [newer, older]


@pytest.mark.parametrize("limit", [0, 1, 2, 99])
def test_retrieve_keeps_to_its_limit(limit: int) -> None:
    """Zero is a limit like any other."""
    assert len(MemoryStore().retrieve("support", "tenant-acme", limit=limit)) == min(limit, 3)


def test_retrieve_keeps_tenants_apart() -> None:
    """A tenant is compared whole: neither a prefix nor another case is the same."""
    kept = store(record("a", tenant_id="acme"), record("b", tenant_id="acme-corp"))

    assert [entry.memory_id for entry in kept.retrieve("x", "acme")] == ["a"]
    assert kept.retrieve("x", "ACME") == []


def test_retrieve_leaves_out_what_no_longer_counts() -> None:
    """Superseded, quarantined and expired records are not retrieved."""
    gone = instant(NOW_US)
    kept = store(
        record("a", status="superseded"),
        record("b", status="quarantined"),
        record("c", expires_at=gone),
        record("d", expires_at=gone + timedelta(microseconds=1)),
    )

    assert [entry.memory_id for entry in kept.retrieve("x", "t")] == ["d"]


def test_persist_appends_with_revision_one() -> None:
    """An append is a record of its own, made now, with no trust that anybody claimed."""
    made = store().persist(candidate())

    assert (made.memory_id, made.revision, made.trust_level, made.created_at) == (
        "mem-1",
        1,
        "low",
        instant(NOW_US),
    )


def test_replace_supersedes_the_active_record_of_its_key() -> None:
    """A to B to A leaves exactly one active record, and the revisions count on."""
    kept = store()
    for content in ("A", "B", "A"):
        kept.persist(candidate(content, key="k", subject="u", revision_mode="replace"))
    other = kept.persist(candidate("C", key="k", subject="v", revision_mode="replace"))

    assert [(entry.content, entry.revision, entry.status) for entry in kept.all()] == [
        ("A", 1, "superseded"),
        ("B", 2, "superseded"),
        ("A", 3, "active"),
        ("C", 1, "active"),
    ]
    assert other.revision == 1


def test_replace_without_a_key_supersedes_nothing() -> None:
    """Without a key the revision count of tenant, class and kind is continued."""
    kept = store(record("a"))

    made = kept.persist(candidate(revision_mode="replace"))

    assert (made.revision, [entry.status for entry in kept.all()]) == (2, ["active", "active"])


def test_compact_removes_what_no_longer_counts() -> None:
    """Superseded, expired and repeated records of one tenant go; quarantined ones wait for their review."""
    kept = store(
        record("a", status="superseded"),
        record("b", "Same  Text"),
        record("c", "same text"),
        record("d", expires_at=instant(NOW_US)),
        record("e", status="quarantined"),
        record("f", "same text", tenant_id="u"),
        record("g", "same text", subject="s"),
    )

    assert (kept.compact("t"), kept.compact("t")) == (3, 0)
    assert [entry.memory_id for entry in kept.all()] == ["b", "e", "f", "g"]
