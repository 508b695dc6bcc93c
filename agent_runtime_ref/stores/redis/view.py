"""One moment of the server, loaded: the records that a question is about, with all rules of held records.

The server keeps records and indexes of ids and knows no rule. What a write or a search needs is loaded in
one script, judged here by the code that every other store in memory uses, and, for a write, sent back as a
change that counts only if nothing of it has moved meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import orjson

from agent_runtime_ref.contracts import MemoryRecord, Plan
from agent_runtime_ref.errors import StoreCapabilityError, StoreDamagedError
from agent_runtime_ref.stores import relied
from agent_runtime_ref.stores.base import CommitOutcome, WriteBatch
from agent_runtime_ref.stores.entries import NOT_OURS, entry_of
from agent_runtime_ref.stores.held import HeldRecords
from agent_runtime_ref.stores.memory_tenant import Entry, Tenant
from agent_runtime_ref.stores.redis import names
from agent_runtime_ref.stores.redis.connection import Server
from agent_runtime_ref.stores.redis.scripts import LOAD
from agent_runtime_ref.telemetry.chain import GENESIS

# A server does nothing else while it answers; more records than these are no session's.
RECORDS_MAX = 100_000


@dataclass(slots=True)
class Wanted:
    """What to load of one tenant; a dict keeps the order, and each thing once."""

    ids: dict[str, None] = field(default_factory=dict)
    digests: dict[bytes, None] = field(default_factory=dict)
    indexes: dict[str, None] = field(default_factory=dict)
    slots: dict[tuple[str, str], None] = field(default_factory=dict)
    marks: dict[bytes, None] = field(default_factory=dict)

    def request(self, tenant_id: str | None) -> dict[str, Any]:
        """What the script is asked."""
        return {
            "name": names.encoded(tenant_id),
            "ids": [names.encoded(one) for one in self.ids],
            "digests": [one.hex() for one in self.digests],
            "indexes": list(self.indexes),
            "slots": [names.of_slot(*one) for one in self.slots],
            "marks": [one.hex() for one in self.marks],
        }


@dataclass(frozen=True, slots=True)
class Standing:
    """How often a tenant was changed, and where its chain of writes stands."""

    changes: int
    seq: int
    hash: str


class View(HeldRecords):
    """What was loaded; a change of it is nobody else's until it is sent."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.lines = 0
        self.standings: dict[str | None, Standing] = {}
        self.gone: dict[str, set[str]] = {}  # ids that an index still named, by tenant
        # Whom each record was derived from in the end, over however many steps, by tenant and id.
        self.roots: dict[tuple[str, str], frozenset[str]] = {}

    def _opened(self) -> AbstractContextManager[object]:
        return nullcontext()

    def revision(self) -> int:
        """How many lines the logs of writes held."""
        return self.lines

    def tenant(self, tenant_id: str) -> Tenant:
        """The loaded part of a tenant."""
        return self._tenants.setdefault(tenant_id, Tenant())

    def apply(self, batch: WriteBatch) -> list[CommitOutcome]:
        """What becomes of each change of a batch, done here.

        Raises:
            RevisionConflictError, DuplicateRecordError: as `Store.commit` does.
        """
        relied.check(self, batch)
        outcomes = []
        for change in batch.changes:
            record = change.record
            self.roots[record.tenant_id, record.memory_id] = self._roots_of(record)
            outcomes.append(self._put(change, batch.now_us, []))
        for one in batch.rejected:
            self._take_out(one, batch.now_us, [])
        return outcomes

    def _roots_of(self, record: MemoryRecord) -> frozenset[str]:
        found: set[str] = set()
        entries = self.tenant(record.tenant_id).entries
        for memory_id in record.derived_from:
            parent = entries.get(memory_id)
            if parent is not None and parent.record.subject is not None:
                found.add(parent.record.subject)
            found |= self.roots.get((record.tenant_id, memory_id), frozenset())
        return frozenset(found)


def load(server: Server, wanted: Mapping[str | None, Wanted] | None, view: View | None = None) -> View:
    """What the server holds of it at one moment, added to `view` where one is given; None: of every tenant.

    Raises:
        StoreCapabilityError: it is more than a server should be asked for.
        StoreDamagedError: something that this package never wrote stands where a record should.
    """
    request = {
        "all": wanted is None,
        "tenants": [one.request(tenant_id) for tenant_id, one in (wanted or {}).items()],
        "most": RECORDS_MAX,
    }
    reply = server.run(LOAD, orjson.dumps(request))
    if reply[0] == b"many":
        problem = f"more than {RECORDS_MAX:,} records in one look; name a subject, or use a store on disk"
        raise StoreCapabilityError(server.place, problem)
    view = View(server.place) if view is None else view
    view.lines = int(reply[1] or 0)
    by_name = {names.encoded(tenant_id): tenant_id for tenant_id in wanted or ()}
    for name, *part in reply[2]:
        text = name.decode("ascii", "replace")
        tenant_id = by_name[text] if text in by_name else names.decoded(text, server.place)
        _take(view, tenant_id, (wanted or {}).get(tenant_id) or Wanted(), part)
    return view


def _take(view: View, tenant_id: str | None, wanted: Wanted, part: list[Any]) -> None:
    (changes, seq, digest), ids, docs, holders, revisions, marks = part
    view.standings[tenant_id] = Standing(
        int(changes or 0), int(seq or 0), (digest or GENESIS.encode()).decode()
    )
    if tenant_id is None:
        return
    tenant = view.tenant(tenant_id)
    for name, document in zip(ids, docs, strict=True):
        memory_id = names.decoded(name.decode("ascii", "replace"), view.url)
        if document is None:
            view.gone.setdefault(tenant_id, set()).add(memory_id)
        elif memory_id not in tenant.entries:
            entry, roots = _entry(document, tenant_id, memory_id, view.url)
            tenant.add(entry, [])
            view.roots[tenant_id, memory_id] = roots
    for digest_, holder in zip(wanted.digests, holders, strict=True):
        tenant.dedup.pop(digest_, None)
        held = None if holder is None else names.decoded(holder.decode("ascii", "replace"), view.url)
        if held is not None and held in tenant.entries:
            tenant.dedup[digest_] = held
    for (memory_class, kind), revision in zip(wanted.slots, revisions, strict=True):
        if revision is not None:
            tenant.count_from(memory_class, kind, int(revision))
    tenant.tombstones.update(
        {mark: int(at_us) for mark, at_us in zip(wanted.marks, marks, strict=True) if at_us is not None}
    )


def _entry(document: bytes, tenant_id: str, memory_id: str, place: str) -> tuple[Entry, frozenset[str]]:
    """The entry of a document, and its roots; one that stands under another record's name is none."""
    try:
        parsed = orjson.loads(document)
        entry = entry_of(parsed)
        roots = frozenset(map(str, parsed.get("roots", ())))
    except NOT_OURS as error:
        # Without the cause: it may quote the content.
        problem = f"record {memory_id!r} cannot be read ({type(error).__name__})"
        raise StoreDamagedError(place, problem) from None
    if (entry.record.tenant_id, entry.record.memory_id) != (tenant_id, memory_id):
        raise StoreDamagedError(place, f"another record stands under the name of {memory_id!r}")
    return entry, roots


def wanted_by(batch: WriteBatch) -> dict[str, Wanted]:
    """What a batch has to look at, by tenant."""
    found: dict[str, Wanted] = {}
    for change in batch.changes:
        record = change.record
        one = found.setdefault(record.tenant_id, Wanted())
        for memory_id in (record.memory_id, *record.derived_from, *change.parents):
            one.ids[memory_id] = None
        one.slots[record.memory_class, record.kind] = None
        if record.key is not None:
            one.indexes[names.of_key(record.subject, record.key)] = None
        for slot in change.vacant:
            one.indexes[names.of_key(slot.subject, slot.key or "")] = None
        if change.dedup is not None:
            one.digests[change.dedup] = None
        if change.unforgotten is not None:
            one.marks[change.unforgotten] = None
    for held in batch.held:
        found.setdefault(held.tenant_id, Wanted()).digests[held.digest] = None
    for rejected in batch.rejected:
        record = rejected.queued.record
        found.setdefault(record.tenant_id, Wanted()).ids[record.memory_id] = None
    return found


def indexes_for(plan: Plan) -> dict[str, None]:
    """The indexes in which every record is that the walls and selectors of a plan let through.

    A record has one subject: what each wall says of it narrows what has to be looked at, and nothing else
    does, since whether a record is outranked depends on others about the same subject.
    """
    allowed: set[str | None] | None = None
    for clause in plan.clauses:
        if clause.role == "filter" or clause.classes is not None:
            continue
        subjects = _subjects(clause.any_of)
        if subjects is not None:
            allowed = subjects if allowed is None else allowed & subjects
    if allowed is None:
        return {names.EVERYTHING: None}
    return {
        names.of_subject(one): None for one in sorted(allowed, key=lambda one: (one is not None, one or ""))
    }


def _subjects(atoms: Iterable[Any]) -> set[str | None] | None:
    """The subjects for which one of `atoms` can hold; None where that is not a matter of the subject."""
    found: set[str | None] = set()
    for atom in atoms:
        if atom.attribute != "subject":
            return None
        if atom.operator == "is_null":
            found.add(None)
        elif atom.operator == "eq" and atom.value is not None:
            found.add(atom.value)
        elif atom.operator == "in":
            found.update(atom.value)
        elif atom.operator != "eq":
            return None
    return found
