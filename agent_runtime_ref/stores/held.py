"""Records that are held in memory: what every store that keeps them there answers, and how one is put.

`HeldRecords` knows no file and no log. A store that derives from it says under which lock, and after which
catching up, its records may be looked at, and keeps what `put` and `take_out` did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.errors import DuplicateRecordError, RevisionConflictError
from agent_runtime_ref.stores.base import (
    Change,
    CommitOutcome,
    ForgetCounts,
    Head,
    Match,
    Parent,
    Queued,
    Rejected,
    SearchPage,
    SearchRequest,
    Slot,
)
from agent_runtime_ref.stores.digests import tombstone_digest
from agent_runtime_ref.stores.held_search import Judgement, judged
from agent_runtime_ref.stores.memory_tenant import Entry, Tenant, Undo, parent_of


class HeldRecords:
    """Tenants and their entries, with the reading half of the store protocol."""

    url: str

    def __init__(self) -> None:
        self._tenants: dict[str, Tenant] = {}

    def _opened(self) -> AbstractContextManager[object]:
        """Give the time in which the records are as they should be; a closed store refuses."""
        raise NotImplementedError

    def revision(self) -> int:
        """The number of the last line of the store's own log."""
        raise NotImplementedError

    def _snapshot_revision(self) -> int:
        """The number of a line before which every change is in the records, and after which none is."""
        return self.revision()

    def search(self, request: SearchRequest) -> SearchPage:
        """The best matches and exact counts, from one look under the lock."""
        with self._opened():
            return self._page(request, judged(self._tenants, request, store=self.url))

    @contextmanager
    def examine(
        self, request: SearchRequest, batch: int
    ) -> Iterator[tuple[SearchPage, Iterator[list[Match]]]]:
        """The page, and every admitted match in batches, from one look under the lock."""
        with self._opened():
            found = judged(self._tenants, request, store=self.url)
            page = self._page(request, found)
        admitted = found.admitted_best(None)
        yield page, (admitted[start : start + batch] for start in range(0, len(admitted), batch))

    def _page(self, request: SearchRequest, found: Judgement) -> SearchPage:
        return SearchPage(
            matches=tuple(found.admitted_best(request.take)),
            kept_out=tuple(found.kept_out_best(request.excluded_take)),
            exclusions=found.exclusions(),
            considered=found.considered,
            revision=self._snapshot_revision(),
        )

    def heads(self, tenant_id: str, slots: Sequence[Slot], now_us: int = 0) -> list[Head | None]:
        """What is active in each slot at `now_us`."""
        with self._opened():
            tenant = self._tenants.get(tenant_id)
            return [tenant.head(Slot(*slot), now_us) if tenant else None for slot in slots]

    def lineage(self, tenant_id: str, ids: Sequence[str], now_us: int = 0) -> dict[str, Parent]:
        """Trust rank, subject and status of each id that exists."""
        with self._opened():
            entries = self._entries(tenant_id)
            known = [entries[memory_id].attributes for memory_id in ids if memory_id in entries]
            return {one["record_id"]: parent_of(one, now_us) for one in known}

    def children(self, tenant_id: str, ids: Sequence[str]) -> list[str]:
        """Ids of the records that name one of `ids` as what they were derived from, in order."""
        wanted = frozenset(ids)
        with self._opened():
            entries = self._entries(tenant_id)
            return sorted(
                memory_id
                for memory_id, entry in entries.items()
                if not wanted.isdisjoint(entry.record.derived_from)
            )

    def find_duplicate(self, tenant_id: str, digests: Sequence[bytes], now_us: int = 0) -> dict[bytes, str]:
        """The active record of each digest that is taken."""
        with self._opened():
            tenant = self._tenants.get(tenant_id) or Tenant()
            held = {digest: tenant.holder(digest, now_us) for digest in digests}
            return {digest: memory_id for digest, memory_id in held.items() if memory_id is not None}

    def tombstoned(self, tenant_id: str, digests: Sequence[bytes]) -> set[bytes]:
        """Those digests whose content was forgotten."""
        with self._opened():
            tenant = self._tenants.get(tenant_id)
            return {digest for digest in digests if tenant and digest in tenant.tombstones}

    def fetch(self, tenant_id: str, ids: Sequence[str]) -> list[MemoryRecord]:
        """The records of those ids that exist, in the order of `ids`."""
        with self._opened():
            entries = self._entries(tenant_id)
            return [entries[memory_id].record for memory_id in dict.fromkeys(ids) if memory_id in entries]

    def queued(self, tenant_id: str, memory_id: str, status: str = "quarantined") -> Queued | None:
        """The record of that id, if it has that status, and what is kept for its review."""
        with self._opened():
            entry = self._entries(tenant_id).get(memory_id)
            if entry is None or entry.record.status != status:
                return None
            return Queued(entry.record, entry.waiting, entry.dedup, entry.original)

    def _entries(self, tenant_id: str) -> dict[str, Entry]:
        tenant = self._tenants.get(tenant_id)
        return tenant.entries if tenant else {}

    def _put(self, change: Change, now_us: int, undo: Undo) -> CommitOutcome:
        """Put one record under the conditions of its change.

        Raises:
            RevisionConflictError: its slot is not as the writer saw it, or its id is taken.
            DuplicateRecordError: its dedup key is taken.
        """
        record = change.record
        tenant = self._tenants.setdefault(record.tenant_id, Tenant())
        if change.queued is not None:
            tenant.take_out(tenant.entries[record.memory_id], undo)
        retired = self._superseded(tenant, change, now_us)
        for entry in retired:
            tenant.retire(entry, undo)
        if change.dedup is not None:
            taken = tenant.holder(change.dedup, now_us)
            if taken is not None:
                raise DuplicateRecordError(self.url, taken)
            tenant.release(change.dedup, undo)
        if record.memory_id in tenant.entries:
            raise RevisionConflictError(self.url, "a record of this id exists")
        tenant.add(Entry.of(record, change.dedup, change.original, change.waiting), undo)
        return CommitOutcome(record.memory_id, tuple(entry.record.memory_id for entry in retired))

    def _take_out(self, rejected: Rejected, now_us: int, undo: Undo) -> None:
        """Remove a record that was seen in quarantine, and leave its tombstones."""
        record = rejected.queued.record
        tenant = self._tenants[record.tenant_id]
        tenant.take_out(tenant.entries[record.memory_id], undo)
        tenant.mark(rejected.tombstones, now_us, undo)

    def _superseded(self, tenant: Tenant, change: Change, now_us: int) -> list[Entry]:
        record, expected = change.record, change.supersedes
        slot = Slot(record.subject, record.memory_class, record.kind, record.key)
        if slot.key is None:
            if expected is not None and tenant.head(slot, now_us) != expected:
                raise RevisionConflictError(self.url, f"revision {expected.revision} is no longer the last")
            return []
        replaces = record.status == "active"
        if expected is None and not (replaces and change.exclusive):
            return []
        if tenant.head(slot, now_us) != expected:
            raise RevisionConflictError(self.url, f"another record is active under key `{slot.key}`")
        # What is held in quarantine replaces nothing yet; its expectation was checked all the same.
        return tenant.active(slot, now_us) if replaces else []


def doomed(tenant: Tenant, subject: str) -> list[Entry]:
    """Return what forgetting a subject removes: its entries, and whatever was derived from them."""
    own = [memory_id for memory_id, entry in tenant.entries.items() if entry.record.subject == subject]
    return [tenant.entries[memory_id] for memory_id in [*own, *sorted(tenant.derived_from(own))]]


def forget_counts(
    tenant: Tenant, found: list[Entry], *, tenant_id: str, subject: str, store_key: bytes
) -> ForgetCounts:
    """Return what removing `found` comes to, with the digests of all contents."""
    digests: dict[str, set[str]] = {}
    for entry in found:
        record = entry.record
        mark = tombstone_digest(store_key, tenant_id, record.subject, record.content)
        marks = {one.hex() for one in (mark, entry.original) if one is not None}
        digests.setdefault(record.memory_class, set()).update(marks)
    own = sum(entry.record.subject == subject for entry in found)
    return ForgetCounts(
        records=own,
        derived=len(found) - own,
        superseded=sum(entry.record.status == "superseded" for entry in found),
        postings=sum(len(entry.text_terms) + len(entry.labels) for entry in found),
        dedup_keys=sum(tenant.holds_dedup(entry) for entry in found),
        tombstones=len(set().union(*digests.values())),
        by_class=dict(sorted(Counter(entry.record.memory_class for entry in found).items())),
        digests={name: tuple(sorted(values)) for name, values in sorted(digests.items())},
    )


def digests_of(counts: ForgetCounts) -> set[bytes]:
    """Return the digests of which tombstones are left."""
    return {bytes.fromhex(one) for group in counts.digests.values() for one in group}
