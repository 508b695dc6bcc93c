"""The store of one process: for seeds, tests and trials; the same answers as a durable one."""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.errors import DuplicateRecordError, RevisionConflictError, StoreError
from agent_runtime_ref.recall.rank import RankKey, ranked
from agent_runtime_ref.recall.score import age_us, score_millionths
from agent_runtime_ref.stores import relied
from agent_runtime_ref.stores.attributes import check_plan
from agent_runtime_ref.stores.base import (
    CAPABILITIES,
    Change,
    CommitOutcome,
    ForgetCounts,
    Head,
    LogMode,
    Match,
    Parent,
    Queued,
    SearchPage,
    SearchRequest,
    Slot,
    WriteBatch,
    match_key,
)
from agent_runtime_ref.stores.digests import tombstone_digest
from agent_runtime_ref.stores.memory_log import FileLog, MemoryLog
from agent_runtime_ref.stores.memory_tenant import Entry, Tenant, Undo
from agent_runtime_ref.stores.plan_eval import exclusion, is_considered
from agent_runtime_ref.telemetry.logfile import Rotation


class InMemoryStore:
    """Keeps everything in this process; its log too, unless a file is named for it."""

    durable = False
    capabilities = CAPABILITIES

    def __init__(self, *, log: Path | None = None, rotation: Rotation | None = None) -> None:
        self.url = "memory:"
        self.log_mode: LogMode = "volatile" if log is None else "file"
        self._log: MemoryLog | FileLog = MemoryLog() if log is None else FileLog(log, rotation)
        self._lock = threading.RLock()
        self._tenants: dict[str, Tenant] = {}
        self._store_key = secrets.token_bytes(32)
        self._closed = False
        self._forgets = 0

    def search(self, request: SearchRequest) -> SearchPage:
        """The best matches and exact counts, from one look under the lock."""
        with self._opened():
            return self._page(request, self._judged(request))

    @contextmanager
    def examine(
        self, request: SearchRequest, batch: int
    ) -> Iterator[tuple[SearchPage, Iterator[list[Match]]]]:
        """The page, and every admitted match in batches, from one look under the lock."""
        with self._opened():
            found = self._judged(request)
            page = self._page(request, found)
        admitted = [match for match, reason in found if reason is None]
        yield page, (admitted[start : start + batch] for start in range(0, len(admitted), batch))

    def _page(self, request: SearchRequest, found: list[tuple[Match, str | None]]) -> SearchPage:
        admitted = [match for match, reason in found if reason is None]
        kept_out = [(match, reason) for match, reason in found if reason is not None]
        return SearchPage(
            matches=tuple(admitted[: request.take]),
            kept_out=tuple(kept_out[: request.excluded_take]),
            exclusions=dict(Counter(reason for _, reason in kept_out)),
            considered=len(found),
            revision=self._log.last_number(),
        )

    def _judged(self, request: SearchRequest) -> list[tuple[Match, str | None]]:
        """Every considered record with the reason that keeps it out, in rank order."""
        check_plan(request.plan, store=self.url)
        names = self._tenants if request.tenant_ids is None else dict.fromkeys(request.tenant_ids)
        verdicts: dict[int, str | None] = {}
        matches: list[Match] = []
        for name in names:
            tenant = self._tenants.get(name)
            for entry in tenant.found(request.terms, labels=request.labels) if tenant else ():
                assert tenant is not None
                attributes = tenant.attributes(entry, request.now_us)
                if is_considered(request.plan, attributes):
                    match = _match(entry, attributes, request)
                    matches.append(match)
                    verdicts[id(match)] = exclusion(request.plan, attributes)
        return [(match, verdicts[id(match)]) for match in ranked(matches)]

    def heads(self, tenant_id: str, slots: Sequence[Slot], now_us: int = 0) -> list[Head | None]:
        """What is active in each slot at `now_us`."""
        with self._opened():
            tenant = self._tenants.get(tenant_id)
            return [tenant.head(Slot(*slot), now_us) if tenant else None for slot in slots]

    def lineage(self, tenant_id: str, ids: Sequence[str]) -> dict[str, Parent]:
        """Trust rank, subject and status of each id that exists."""
        with self._opened():
            entries = self._entries(tenant_id)
            known = [entries[memory_id].attributes for memory_id in ids if memory_id in entries]
            return {
                one["record_id"]: Parent(one["trust_rank"], one["subject"], one["status"]) for one in known
            }

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

    def queued(self, tenant_id: str, memory_id: str) -> Queued | None:
        """The record of that id, if it is in quarantine, and what is kept for its review."""
        with self._opened():
            entry = self._entries(tenant_id).get(memory_id)
            if entry is None or entry.record.status != "quarantined":
                return None
            return Queued(entry.record, entry.waiting, entry.dedup, entry.original)

    def commit(self, batch: WriteBatch) -> list[CommitOutcome]:
        """Put a batch and its log lines, or nothing."""
        undo: Undo = []
        with self._opened():
            relied.check(self, batch)
            try:
                outcomes = [self._put(change, batch.now_us, undo) for change in batch.changes]
                for one in batch.rejected:
                    tenant = self._tenants[one.queued.record.tenant_id]
                    tenant.take_out(tenant.entries[one.queued.record.memory_id], undo)
                    tenant.mark(one.tombstones, batch.now_us, undo)
                self._log.append(batch.lines, read=False)
            except BaseException:
                for step in reversed(undo):
                    step()
                raise
        return outcomes

    def _put(self, change: Change, now_us: int, undo: Undo) -> CommitOutcome:
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

    def append_lines(self, lines: Sequence[str], *, read: bool) -> None:
        """Log what is not part of a write."""
        with self._opened():
            self._log.append(lines, read=read)

    def log(self, read: bool) -> Iterator[str]:
        """The sealed lines; a log file holds both kinds and gives all of them as the write log."""
        return self._log.lines(read=read)

    def raw_log(self, read: bool) -> Iterator[bytes]:
        """The same lines as bytes; those of a file as they are in it."""
        return self._log.raw_lines(read=read)

    @property
    def log_lines_dropped(self) -> int:
        """How many of the oldest lines the log in memory no longer holds."""
        return self._log.dropped

    def subject_key(self, tenant_id: str, subject: str, create: bool) -> bytes | None:
        """The key under which a subject's ids stand in log lines."""
        with self._opened():
            if create:
                keys = self._tenants.setdefault(tenant_id, Tenant()).subject_keys
                return keys.setdefault(subject, secrets.token_bytes(32))
            tenant = self._tenants.get(tenant_id)
            return tenant.subject_keys.get(subject) if tenant else None

    def store_key(self) -> bytes:
        """The store's own key."""
        return self._store_key

    def forget(
        self,
        tenant_id: str,
        subject: str,
        *,
        now_us: int,
        dry_run: bool,
        lines_for: Callable[[ForgetCounts], Sequence[str]],
    ) -> ForgetCounts:
        """Remove a subject from a tenant."""
        with self._opened():
            tenant = self._tenants.get(tenant_id) or Tenant()
            found = _doomed(tenant, subject)
            counts = replace(
                self._counts(tenant, found, tenant_id, subject),
                dry_run=dry_run,
                log_key_destroyed=not dry_run and subject in tenant.subject_keys,
            )
            # Logged first: a log that cannot be written must leave everything in place.
            self._log.append(lines_for(counts), read=False)
            if not dry_run:
                for entry in found:
                    tenant.remove(entry)
                digests = {bytes.fromhex(one) for group in counts.digests.values() for one in group}
                tenant.tombstones.update(dict.fromkeys(digests, now_us))
                tenant.subject_keys.pop(subject, None)
                self._forgets += 1
            return counts

    def _counts(self, tenant: Tenant, found: list[Entry], tenant_id: str, subject: str) -> ForgetCounts:
        digests: dict[str, set[str]] = {}
        for entry in found:
            record = entry.record
            mark = tombstone_digest(self._store_key, tenant_id, record.subject, record.content)
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

    def forgets(self) -> int:
        """How often somebody was forgotten."""
        with self._opened():
            return self._forgets

    def revision(self) -> int:
        """The number of the last line of the store's own log."""
        with self._opened():
            return self._log.last_number()

    def close(self) -> None:
        """Refuse every further call."""
        self._closed = True

    def _opened(self) -> threading.RLock:
        if self._closed:
            raise StoreError(self.url, "the store is closed")
        return self._lock

    def _entries(self, tenant_id: str) -> dict[str, Entry]:
        tenant = self._tenants.get(tenant_id)
        return tenant.entries if tenant else {}


class _Found(NamedTuple):
    """What a match of this store is made of; attributes and record are immutable or copied."""

    entry: Entry
    attributes: dict[str, Any]
    matched: tuple[str, ...]
    total: int | None


class _Source:
    """Takes a match apart."""

    def rank_key(self, row: _Found) -> RankKey:
        return match_key(row.attributes, row.total)

    def matched_terms(self, row: _Found) -> tuple[str, ...]:
        return row.matched

    def attributes(self, row: _Found) -> dict[str, Any]:
        return dict(row.attributes)

    def record(self, row: _Found) -> MemoryRecord:
        return row.entry.record


_SOURCE = _Source()


def _match(entry: Entry, attributes: dict[str, Any], request: SearchRequest) -> Match:
    terms = request.terms
    matched = () if terms is None else entry.matched(terms)
    total = None
    if terms is not None:
        age = age_us(now_us=request.now_us, created_us=attributes["created_ns"] // 1000)
        total = score_millionths(len(matched), len(terms), age)
    return Match(_SOURCE, _Found(entry, attributes, matched, total))


def _doomed(tenant: Tenant, subject: str) -> list[Entry]:
    own = [memory_id for memory_id, entry in tenant.entries.items() if entry.record.subject == subject]
    return [tenant.entries[memory_id] for memory_id in [*own, *sorted(tenant.derived_from(own))]]
