"""What to send so that the server holds what a view has become."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from agent_runtime_ref.clock import microseconds
from agent_runtime_ref.stores.entries import entry_document
from agent_runtime_ref.stores.memory_tenant import Entry, Tenant
from agent_runtime_ref.stores.redis import names
from agent_runtime_ref.stores.redis.names import STORE, TENANTS, Names
from agent_runtime_ref.stores.redis.view import Standing, View
from agent_runtime_ref.telemetry import chain

Step = tuple[str | bytes, ...]
NEVER = ""  # the time to live of what does not expire


@dataclass(frozen=True, slots=True)
class Before:
    """A tenant as it was loaded."""

    entries: Mapping[str, Entry]
    dedup: Mapping[bytes, str]
    tombstones: Mapping[bytes, int]
    revisions: Mapping[tuple[str, str], int]

    @classmethod
    def of(cls, tenant: Tenant) -> Before:
        """A picture of a tenant that later changes leave alone; entries themselves never change."""
        revisions = {(memory_class, kind): number for memory_class, kind, number in tenant.revisions()}
        return cls(dict(tenant.entries), dict(tenant.dedup), dict(tenant.tombstones), revisions)


def time_to_live(entry: Entry, now_us: int) -> str:
    """How long the server keeps a record, in whole milliseconds from the moment of the change.

    Counted from the instant of the decision, not from the server's: where two clocks differ, a record would
    else go too early. What is left of a millisecond is added, and the gate looks at the very instant.
    """
    expires_at = entry.record.expires_at
    if expires_at is None:
        return NEVER
    return str(max(1, -((now_us - microseconds(expires_at)) // 1000)))


def steps_of(view: View, tenant_id: str, before: Before, now_us: int) -> Iterator[Step]:
    """The steps from what was loaded of a tenant to what the view holds of it now."""
    named, tenant = Names.of(tenant_id), view.tenant(tenant_id)
    for memory_id in dict.fromkeys((*before.entries, *tenant.entries)):
        old, new = before.entries.get(memory_id), tenant.entries.get(memory_id)
        if old is new:
            continue
        if old is not None and new is not None and _is_retired(old, new):
            yield from _retired(named, old, new, view)
            continue
        if old is not None:
            yield from removed(named, old, view)
        if new is not None:
            yield from _added(named, new, view, now_us)
    yield from _dedup_steps(named, tenant, before, view, now_us)
    for digest, at_us in tenant.tombstones.items():
        if digest not in before.tombstones:
            yield "set", named.tombstones, digest.hex(), str(at_us)
    for memory_class, kind, number in tenant.revisions():
        if number != before.revisions.get((memory_class, kind)):
            yield "set", named.revisions, names.of_slot(memory_class, kind), str(number)
    yield "name", TENANTS, names.encoded(tenant_id)


def _indexes(entry: Entry, view: View) -> Iterator[str]:
    """The indexes in which the server finds a record, apart from the one of its key."""
    record = entry.record
    yield names.EVERYTHING
    yield names.of_subject(record.subject)
    for parent in dict.fromkeys(record.derived_from):
        yield names.from_record(parent)
    for subject in sorted(view.roots.get((record.tenant_id, record.memory_id), ())):
        yield names.from_subject(subject)


def _key_index(entry: Entry) -> Iterator[str]:
    record = entry.record
    if record.key is not None and record.status == "active":
        yield names.of_key(record.subject, record.key)


def _document(entry: Entry, view: View, *, dedup: bytes | None) -> bytes:
    record = entry.record
    document = entry_document(record, dedup, entry.original, entry.waiting)
    roots = view.roots.get((record.tenant_id, record.memory_id))
    if roots:
        document["roots"] = sorted(roots)
    return orjson.dumps(document)


def _added(named: Names, entry: Entry, view: View, now_us: int) -> Iterator[Step]:
    memory_id, ttl = entry.record.memory_id, time_to_live(entry, now_us)
    yield "put", named.record(memory_id), _document(entry, view, dedup=entry.dedup), ttl
    for index in (*_indexes(entry, view), *_key_index(entry)):
        yield "join", named.index(index), names.encoded(memory_id), ttl


def removed(named: Names, entry: Entry, view: View) -> Iterator[Step]:
    """The steps that leave nothing of a record but its dedup key."""
    memory_id = entry.record.memory_id
    yield "drop", named.record(memory_id)
    for index in (*_indexes(entry, view), *_key_index(entry)):
        yield "part", named.index(index), names.encoded(memory_id)


def _is_retired(old: Entry, new: Entry) -> bool:
    return (old.record.status, new.record.status) == ("active", "superseded")


def _retired(named: Names, old: Entry, new: Entry, view: View) -> Iterator[Step]:
    """A record that was replaced: it keeps its time, and one that has just gone does not come back."""
    memory_id = old.record.memory_id
    yield "swap", named.record(memory_id), _document(new, view, dedup=new.dedup)
    for index in _key_index(old):
        yield "part", named.index(index), names.encoded(memory_id)


def _dedup_steps(named: Names, tenant: Tenant, before: Before, view: View, now_us: int) -> Iterator[Step]:
    for digest in dict.fromkeys((*before.dedup, *tenant.dedup)):
        old, new = before.dedup.get(digest), tenant.dedup.get(digest)
        if old == new:
            continue
        left = None if old is None else tenant.entries.get(old)
        if left is not None and left.record.status == "active":
            # Its key went to another, and must not be taken for its own when it is loaded again.
            yield "swap", named.record(left.record.memory_id), _document(left, view, dedup=None)
        if new is None:
            yield "drop", named.dedup(digest)
        else:
            ttl = time_to_live(tenant.entries[new], now_us)
            yield "put", named.dedup(digest), names.encoded(new), ttl


def line_steps(tenant_id: str | None, standing: Standing, lines: Sequence[str]) -> Iterator[Step]:
    """The steps that add lines to a tenant's chain of writes; they stand behind the ones that were seen."""
    if not lines:
        return
    named = Names.of(tenant_id)
    sealed = chain.seal_after(lines, seq=standing.seq, prev_hash=standing.hash)
    yield from chained(named, sealed, standing.seq, read=False)
    yield "count", STORE, "lines", str(len(sealed))


def chained(named: Names, sealed: Sequence[tuple[int, str]], seq: int, *, read: bool) -> Iterator[Step]:
    """The steps that put sealed lines behind line `seq`."""
    letter = "r" if read else "w"
    yield "tail", named.lines(read=read), str(seq)
    for _, line in sealed:
        yield "line", named.lines(read=read), line
    last_seq, last_hash = chain.head(sealed[-1][1])
    yield "set", named.standing, f"{letter}s", str(last_seq)
    yield "set", named.standing, f"{letter}h", last_hash


def change_steps(standings: Mapping[str | None, Standing]) -> Iterator[Step]:
    """What must still be so when the change happens, and that it is one more."""
    for tenant_id, standing in standings.items():
        named = Names.of(tenant_id)
        yield "is", named.standing, "n", str(standing.changes)
        yield "set", named.standing, "n", str(standing.changes + 1)
