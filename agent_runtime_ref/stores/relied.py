"""Whether what a write was decided on still holds when it is committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Protocol, TypeVar

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.errors import RevisionConflictError
from agent_runtime_ref.stores.base import Head, Parent, Queued, Slot, WriteBatch

T = TypeVar("T")


class Relied(Protocol):
    """What has to be asked again; a store, or what one has loaded."""

    @property
    def url(self) -> str:
        """The address of the store."""

    def tombstoned(self, tenant_id: str, digests: Sequence[bytes]) -> set[bytes]:
        """As of a store."""

    def lineage(self, tenant_id: str, ids: Sequence[str], now_us: int = 0) -> dict[str, Parent]:
        """As of a store."""

    def find_duplicate(self, tenant_id: str, digests: Sequence[bytes], now_us: int = 0) -> dict[bytes, str]:
        """As of a store."""

    def heads(self, tenant_id: str, slots: Sequence[Slot], now_us: int = 0) -> list[Head | None]:
        """As of a store."""

    def fetch(self, tenant_id: str, ids: Sequence[str]) -> list[MemoryRecord]:
        """As of a store."""

    def queued(self, tenant_id: str, memory_id: str) -> Queued | None:
        """As of a store."""


def check(store: Relied, batch: WriteBatch) -> None:
    """Ask the store again about tombstones, parents, slots, duplicates and removals, in its transaction.

    Between the decision and the commit somebody may have been forgotten, or another reviewer been faster:
    without this, a write in flight would bring back what was just removed.

    Raises:
        RevisionConflictError: something changed, so that the decision has to be made again.
    """
    digests = [
        (one.record.tenant_id, one.unforgotten) for one in batch.changes if one.unforgotten is not None
    ]
    for tenant_id, wanted in _grouped(digests):
        if store.tombstoned(tenant_id, wanted):
            raise RevisionConflictError(store.url, "the memory was forgotten meanwhile")
    parents = [(one.record.tenant_id, parent) for one in batch.changes for parent in one.parents.items()]
    for tenant_id, expected in _grouped(parents):
        if not _as_seen(store.lineage(tenant_id, list(dict(expected)), batch.now_us), expected):
            raise RevisionConflictError(store.url, "a record it is derived from changed meanwhile")
    _check_vacant(store, batch)
    held = [(one.tenant_id, (one.digest, one.memory_id)) for one in batch.held]
    for tenant_id, holders in _grouped(held):
        found = store.find_duplicate(tenant_id, list(dict(holders)), batch.now_us)
        if any(found.get(digest) != memory_id for digest, memory_id in holders):
            raise RevisionConflictError(store.url, "the record it repeats went meanwhile")
    reviewed = [one.queued for one in batch.changes if one.queued is not None]
    for queued in (*reviewed, *(one.queued for one in batch.rejected)):
        record = queued.record
        if record.status != "quarantined":
            if store.fetch(record.tenant_id, [record.memory_id]) != [record]:
                raise RevisionConflictError(store.url, "the record is no longer as it was")
        elif store.queued(record.tenant_id, record.memory_id) != queued:
            raise RevisionConflictError(store.url, "the record is no longer in quarantine as it was")


def _check_vacant(store: Relied, batch: WriteBatch) -> None:
    vacant = [(one.record.tenant_id, slot) for one in batch.changes for slot in one.vacant]
    for tenant_id, slots in _grouped(vacant):
        if any(map(_is_active, store.heads(tenant_id, slots, batch.now_us))):
            raise RevisionConflictError(store.url, "what it contradicts came meanwhile")


def _grouped(pairs: Iterable[tuple[str, T]]) -> Iterator[tuple[str, list[T]]]:
    ordered = sorted(pairs, key=lambda pair: pair[0])
    for tenant_id, group in groupby(ordered, key=lambda pair: pair[0]):
        yield tenant_id, [value for _, value in group]


def _is_active(head: Head | None) -> bool:
    return head is not None and head.memory_id is not None and head.status == "active"


def _as_seen(found: dict[str, Parent], expected: list[tuple[str, Parent]]) -> bool:
    return all(found.get(memory_id) == parent for memory_id, parent in expected)
