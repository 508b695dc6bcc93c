"""Put records: rows, terms, supersession and dedup keys in the caller's transaction.

INVARIANT: the session holds the lock of the tenant's chain of writes, so nobody else changes the tenant
meanwhile; keys and unique indexes of the database refuse whatever would slip through all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.errors import DuplicateRecordError, RevisionConflictError
from agent_runtime_ref.recall.analysis import label_terms, record_terms
from agent_runtime_ref.stores.base import Change, CommitOutcome, Head, Slot
from agent_runtime_ref.stores.postgres import records, removal
from agent_runtime_ref.stores.postgres.records import Insert
from agent_runtime_ref.stores.postgres.session import Row, Session
from agent_runtime_ref.stores.rows import CONTENT_COLUMNS

_RECORDS = Insert.of("records", ("rid", *records.POLICY_COLUMNS[1:]), ("bigint", *records.POLICY_TYPES[1:]))
_CONTENTS = Insert.of("contents", ("rid", *CONTENT_COLUMNS), ("bigint", *["text"] * 5, "bytea", "bytea"))
_POSTINGS = Insert.of("postings", ("term", "rid", "label"), ("text", "bigint", "boolean"))
_DEDUP = Insert.of("dedup", ("digest", "rid"), ("bytea", "bigint"))
_DERIVATIONS = Insert.of(
    "derivations", ("parent_id", "rid"), ("text", "bigint"), conflict="ON CONFLICT DO NOTHING"
)
_QUARANTINE = Insert.of(
    "quarantine", ("rid", "principal", "agent", "replaces"), ("bigint", "bytea", "bytea", "boolean")
)
_REVISIONS = Insert.of(
    "revisions",
    ("memory_class", "kind", "revision"),
    ("text", "text", "bigint"),
    conflict="ON CONFLICT (tenant_id,memory_class,kind) DO UPDATE SET revision=excluded.revision"
    " WHERE excluded.revision>revisions.revision",
)
# What is active in each of many slots, the place of the slot first.
_ACTIVE = (
    "SELECT s.place,r.rid,r.memory_id,r.trust_rank,r.revision,"
    "r.expires_us IS NOT NULL AND r.expires_us<=$2 AS expired"
    " FROM unnest($3::text[],$4::text[],$5::text[],$6::text[]) WITH ORDINALITY"
    " s(subject,memory_class,kind,key,place)"
    " JOIN records r ON r.tenant_id=$1 AND r.key=s.key AND r.status='active'"
    " AND r.subject IS NOT DISTINCT FROM s.subject AND r.memory_class=s.memory_class AND r.kind=s.kind"
    " WHERE s.key IS NOT NULL"
    " ORDER BY s.place,expired,r.revision DESC,r.trust_rank DESC,r.created_us DESC,r.memory_id"
)
_COUNTED = (
    "SELECT s.place,v.revision"
    " FROM unnest($2::text[],$3::text[]) WITH ORDINALITY s(memory_class,kind,place)"
    " JOIN revisions v ON v.tenant_id=$1 AND v.memory_class=s.memory_class AND v.kind=s.kind"
)
_HOLDERS = (
    "SELECT d.digest,d.rid,r.memory_id,r.expires_us IS NOT NULL AND r.expires_us<=$3"
    " FROM dedup d JOIN records r ON r.tenant_id=d.tenant_id AND r.rid=d.rid"
    " WHERE d.tenant_id=$1 AND d.digest=ANY($2)"
)


class _Active(NamedTuple):
    """An active record of a slot."""

    rid: int
    memory_id: str
    trust_rank: int
    revision: int
    expired: bool


class _Holder(NamedTuple):
    """The record that holds a dedup key."""

    rid: int
    memory_id: str
    expired: bool


def heads(tenant_id: str, slots: Sequence[Slot], now_us: int, ask: Any) -> list[Head | None]:
    """What is active in each slot at `now_us`, or its highest revision where it has no key.

    `ask` runs one statement about the tenant.
    """
    found = _active(tenant_id, slots, now_us, ask)
    made = [_head(found.get(place, ())) for place in range(1, len(slots) + 1)]
    keyless = [(place, slot) for place, slot in enumerate(slots) if slot.key is None]
    if keyless:
        names = ([slot.memory_class for _, slot in keyless], [slot.kind for _, slot in keyless])
        for number, revision in ask(_COUNTED, (tenant_id, *names)):
            made[keyless[number - 1][0]] = Head(None, 0, revision, "active")
    return made


def _active(tenant_id: str, slots: Sequence[Slot], now_us: int, ask: Any) -> dict[int, list[_Active]]:
    """The active records of slots that have a key, by the place of the slot, counted from 1."""
    found: dict[int, list[_Active]] = {}
    if any(slot.key is not None for slot in slots):
        lists = [[slot[part] for slot in slots] for part in range(4)]
        for place, *row in ask(_ACTIVE, (tenant_id, now_us, *lists)):
            found.setdefault(place, []).append(_Active(*row))
    return found


def _head(active: Sequence[_Active]) -> Head | None:
    if not active:
        return None
    # Whoever replaces several records at once must be trusted as much as the most trusted of them.
    ranks = [row.trust_rank for row in active if not row.expired]
    revision = max(row.revision for row in active)
    return Head(active[0].memory_id, max(ranks, default=0), revision, "active" if ranks else "expired")


def put(
    session: Session, tenant_id: str, changes: Sequence[Change], *, now_us: int, last_rid: int, place: str
) -> tuple[list[CommitOutcome], int]:
    """Put the changes of one tenant; what became of each, and the last number that a record has now.

    Raises:
        RevisionConflictError: a slot is not as its writer saw it, or an id is taken.
        DuplicateRecordError: a dedup key is taken.
    """
    outcomes: list[CommitOutcome] = []
    for group in _groups(changes):
        writer = _Group(session, tenant_id, group, now_us, place)
        outcomes += [writer.check(number, change) for number, change in enumerate(group, 1)]
        writer.apply(last_rid + 1)
        last_rid += len(group)
    return outcomes, last_rid


def _groups(changes: Sequence[Change]) -> Iterator[list[Change]]:
    """Cut into runs in which no change could depend on one before it."""
    group: list[Change] = []
    touched: set[object] = set()
    for change in changes:
        slot = _slot(change)
        marks: set[object] = {slot} if change.dedup is None else {slot, change.dedup}
        needed = marks - {slot} if slot.key is None and change.supersedes is None else marks
        if needed & touched:
            yield group
            group, touched = [], set()
        group.append(change)
        touched |= marks
    if group:
        yield group


def _slot(change: Change) -> Slot:
    record = change.record
    return Slot(record.subject, record.memory_class, record.kind, record.key)


class _Group:
    """Changes that do not depend on each other: looked up together, checked one by one, put together."""

    def __init__(
        self, session: Session, tenant_id: str, group: Sequence[Change], now_us: int, place: str
    ) -> None:
        self._session, self._tenant, self._changes, self._place = session, tenant_id, group, place
        reviewed = [change.record.memory_id for change in group if change.queued is not None]
        if reviewed:
            removal.remove_by_id(session, tenant_id, reviewed)
        slots = [_slot(change) for change in group]
        self._found = _active(tenant_id, slots, now_us, session.rows)
        self._heads = self._counted(slots, now_us)
        digests = [change.dedup for change in group if change.dedup is not None]
        held = session.rows(_HOLDERS, (tenant_id, digests, now_us)) if digests else []
        self._holders = {row[0]: _Holder(*row[1:]) for row in held}
        self._retired: set[int] = set()
        self._released: list[bytes] = []

    def _counted(self, slots: Sequence[Slot], now_us: int) -> dict[Slot, Head | None]:
        asked = [
            slot
            for slot, change in zip(slots, self._changes, strict=True)
            if slot.key is None and change.supersedes is not None
        ]
        found = heads(self._tenant, asked, now_us, self._session.rows) if asked else []
        return dict(zip(asked, found, strict=True))

    def check(self, number: int, change: Change) -> CommitOutcome:
        """Hold a change to the store as it is, and note what it retires."""
        retired = self._superseded(number, change)
        self._retired |= {row.rid for row in retired}
        holder = None if change.dedup is None else self._holders.get(change.dedup)
        if holder is not None and change.dedup is not None and holder.rid not in self._retired:
            if not holder.expired:
                raise DuplicateRecordError(self._place, holder.memory_id)
            # What has expired is shown to nobody, so it must not stand for what is written now.
            self._released.append(change.dedup)
        return CommitOutcome(change.record.memory_id, tuple(row.memory_id for row in retired))

    def _superseded(self, number: int, change: Change) -> Sequence[_Active]:
        expected, slot = change.supersedes, _slot(change)
        if slot.key is None:
            if expected is not None and self._heads[slot] != expected:
                raise RevisionConflictError(
                    self._place, f"revision {expected.revision} is no longer the last"
                )
            return ()
        replaces = change.record.status == "active"
        if expected is None and not (replaces and change.exclusive):
            return ()
        found = self._found.get(number, [])
        if _head(found) != expected:
            raise RevisionConflictError(self._place, f"another record is active under key `{slot.key}`")
        # What is held in quarantine replaces nothing yet; its expectation was checked all the same.
        return found if replaces else ()

    def apply(self, first_rid: int) -> None:
        """Retire what is replaced and insert what is new, table by table, in one round trip."""
        pending = list(enumerate(self._changes, first_rid))
        with self._session.connection.pipeline():
            self._retire()
            for insert, rows in (
                (_RECORDS, [(rid, *records.policy_row(one.record)) for rid, one in pending]),
                (
                    _CONTENTS,
                    [
                        (rid, *records.content_row(one.record, one.dedup, one.original))
                        for rid, one in pending
                    ],
                ),
                (_POSTINGS, sorted(row for rid, one in pending for row in _postings(one.record, rid))),
                (_REVISIONS, _revisions(one.record for _, one in pending)),
                (_DERIVATIONS, [(parent, rid) for rid, one in pending for parent in one.record.derived_from]),
                (_DEDUP, [(one.dedup, rid) for rid, one in pending if _holds_dedup(one)]),
                (_QUARANTINE, _waiting(pending)),
            ):
                self._insert(insert, rows)

    def _retire(self) -> None:
        run, tenant, retired = self._session.send, self._tenant, sorted(self._retired)
        if retired:
            run(
                "UPDATE records SET status='superseded' WHERE tenant_id=$1 AND rid=ANY($2)", (tenant, retired)
            )
            # The same memory may come back later: A, then B, then A again.
            run("DELETE FROM dedup WHERE tenant_id=$1 AND rid=ANY($2)", (tenant, retired))
        if self._released:
            run("DELETE FROM dedup WHERE tenant_id=$1 AND digest=ANY($2)", (tenant, self._released))

    def _insert(self, insert: Insert, rows: Sequence[Row]) -> None:
        if rows:
            self._session.send(insert.sql, (self._tenant, *map(list, zip(*rows, strict=True))))


def _postings(record: MemoryRecord, rid: int) -> Iterator[tuple[str, int, bool]]:
    """The postings of a record; a word in both text and labels counts as text."""
    text = record_terms(record.summary, record.content)
    for term in text:
        yield term, rid, False
    for term in label_terms(record.kind, record.key) - text:
        yield term, rid, True


def _holds_dedup(change: Change) -> bool:
    return change.dedup is not None and change.record.status == "active"


def _revisions(made: Iterable[MemoryRecord]) -> list[Row]:
    """The highest revision of each class and kind."""
    highest: dict[tuple[str, str], int] = {}
    for record in made:
        name = record.memory_class, record.kind
        highest[name] = max(record.revision, highest.get(name, record.revision))
    return [(*name, revision) for name, revision in sorted(highest.items())]


def _waiting(pending: Sequence[tuple[int, Change]]) -> list[Row]:
    return [
        (rid, *one.waiting)
        for rid, one in pending
        if one.waiting is not None and one.record.status == "quarantined"
    ]
