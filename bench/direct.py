"""A large store, filled without asking the gate about every record.

The gate is asked once about each shape of record; what it assigned (trust, retention, expiry) is then given
to all records of that shape, and they are put by the store's own code. Tables hold what they would hold, but
for the log lines of writes, which no read looks at.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from agent_runtime_ref.clock import RandomIds, instant
from agent_runtime_ref.contracts import MemoryCandidate, MemoryRecord
from agent_runtime_ref.enforcement.prepared import dedup_digest
from agent_runtime_ref.stores.base import Change, Store, WriteBatch
from agent_runtime_ref.stores.registry import open_store
from bench.data import NOW_US, SHAPES, Slice, candidates
from bench.governed import admitted, listening

_Kind = tuple[str, str, str]


class DirectWriter:
    """Puts slices into a store."""

    def __init__(self, address: str) -> None:
        self._store: Store = open_store(address)
        self._key = self._store.store_key()
        self._ids = RandomIds()
        self._models = models()

    def put(self, part: Slice) -> list[MemoryRecord]:
        """Keep a slice at its instant, and return its records."""
        changes = [self._change(one, part.at_us) for one in candidates(part)]
        self._store.commit(WriteBatch(changes=changes))
        return [change.record for change in changes]

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def _change(self, candidate: MemoryCandidate, at_us: int) -> Change:
        model, lives = self._models[_kind(candidate)]
        created = instant(at_us)
        record = replace(
            model,
            memory_id=self._ids.new("mem"),
            tenant_id=candidate.tenant_id,
            content=candidate.content,
            key=candidate.key,
            created_at=created,
            expires_at=None if lives is None else created + lives,
        )
        return Change(record=record, dedup=dedup_digest(self._key, candidate), exclusive=False)


def models() -> dict[_Kind, tuple[MemoryRecord, timedelta | None]]:
    """Return for each shape the record that the gate makes of one, and how long it lives."""
    wanted = {(shape.memory_class, shape.kind, shape.source) for shape in SHAPES}
    samples: dict[_Kind, MemoryCandidate] = {}
    for one in candidates(Slice("tenant-model", 0, 1_000, NOW_US)):
        samples.setdefault(_kind(one), one)
    if set(samples) != wanted:
        raise SystemExit("a thousand records do not show every shape")
    memory, _ = listening("memory:")
    with memory:
        kept = admitted(memory, samples.values(), "tenant-model")
    return {_kind(record): (record, _lives(record)) for record in kept}


def _lives(record: MemoryRecord) -> timedelta | None:
    if record.expires_at is None or record.created_at is None:
        return None
    return record.expires_at - record.created_at


def _kind(one: MemoryCandidate | MemoryRecord) -> _Kind:
    return one.memory_class, one.kind, one.source
