"""Put records: rows, terms, supersession, dedup keys and log lines in the caller's transaction."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.errors import DuplicateRecordError, RevisionConflictError
from agent_runtime_ref.recall.analysis import label_terms, record_terms
from agent_runtime_ref.stores.base import Change, CommitOutcome, Head, Slot
from agent_runtime_ref.stores.sqlite import removal, rows
from agent_runtime_ref.stores.sqlite.schema import CONTENT_COLUMNS, POLICY_COLUMNS, TENANT_SHIFT

_INSERT_RECORD = f"INSERT INTO records(rid,{','.join(POLICY_COLUMNS)}) VALUES(?{',?' * len(POLICY_COLUMNS)})"
_INSERT_CONTENT = (
    f"INSERT INTO contents(rid,{','.join(CONTENT_COLUMNS)}) VALUES(?{',?' * len(CONTENT_COLUMNS)})"
)
_INSERT_POSTING = "INSERT INTO postings(tid,term,rid,label) VALUES(?,?,?,?)"
_INSERT_DEDUP = "INSERT INTO dedup(tid,digest,rid) VALUES(?,?,?)"
_KEYS_AT_ONCE = 400  # of dedup keys looked up in one statement
# CROSS JOIN keeps SQLite from walking the whole table instead.
_TAKEN = "SELECT d.tid,d.digest FROM wanted w CROSS JOIN dedup d ON d.tid=w.tid AND d.digest=w.digest"
_INSERT_DERIVATION = "INSERT OR IGNORE INTO derivations(tid,parent_id,rid) VALUES(?,?,?)"
_INSERT_QUARANTINE = "INSERT INTO quarantine(rid,principal,agent,replaces) VALUES(?,?,?,?)"
_RAISE_REVISION = (
    "INSERT INTO revisions(tid,memory_class,kind,revision) VALUES(?,?,?,?)"
    " ON CONFLICT DO UPDATE SET revision=excluded.revision WHERE excluded.revision>revision"
)
_ACTIVE = (
    "SELECT rid,memory_id,trust_rank,revision,expires_us IS NOT NULL AND expires_us<=? AS expired"
    " FROM records WHERE tid=? AND key=? AND subject IS ?"
    " AND status='active' AND memory_class=? AND kind=?"
    " ORDER BY expired,revision DESC,trust_rank DESC,created_us DESC,memory_id"
)


class _Active(NamedTuple):
    """An active record of a slot."""

    rid: int
    memory_id: str
    trust_rank: int
    revision: int
    expired: int


def postings(record: MemoryRecord, tid: int, rid: int) -> Iterator[tuple[int, str, int, int]]:
    """The postings of a record; a word in both text and labels counts as text."""
    text = record_terms(record.summary, record.content)
    for term in text:
        yield tid, term, rid, 0
    for term in label_terms(record.kind, record.key) - text:
        yield tid, term, rid, 1


def head_of(connection: sqlite3.Connection, tid: int, slot: Slot, now_us: int) -> Head | None:
    """What is active in a slot at `now_us`, or the highest revision where the slot has no key."""
    if slot.key is None:
        row = connection.execute(
            "SELECT revision FROM revisions WHERE tid=? AND memory_class=? AND kind=?",
            (tid, slot.memory_class, slot.kind),
        ).fetchone()
        return None if row is None else Head(None, 0, row[0], "active")
    return _head(_active(connection, tid, slot, now_us))


class Writer:
    """Collects the rows of a batch and inserts them table by table.

    A change that could depend on one before it in the same batch makes the collected rows be inserted first.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path, now_us: int) -> None:
        self._connection = connection
        self._now_us = now_us
        self._path = str(path)
        self._next: dict[int, int] = {}
        self._pending: list[tuple[int, int, Change]] = []
        self._touched: set[object] = set()
        self._taken: set[tuple[int, bytes]] = set()

    def expect(self, keys: Iterable[tuple[int, bytes]]) -> None:
        """Look up at once which dedup keys of the changes to come are taken: one by one costs more."""
        wanted = list(keys)
        for first in range(0, len(wanted), _KEYS_AT_ONCE):
            some = wanted[first : first + _KEYS_AT_ONCE]
            values = ",".join(["(?,?)"] * len(some))
            sql = f"WITH wanted(tid,digest) AS (VALUES {values}) {_TAKEN}"
            self._taken.update(self._connection.execute(sql, [part for key in some for part in key]))

    def put(self, tid: int, change: Change) -> CommitOutcome:
        """Check one change, whose dedup key was expected, against the store as it is now, and collect it.

        Raises:
            RevisionConflictError: its slot is not as the writer saw it.
            DuplicateRecordError: its dedup key is taken.
        """
        record = change.record
        slot = Slot(record.subject, record.memory_class, record.kind, record.key)
        marks = {(tid, slot)} if change.dedup is None else {(tid, slot), (tid, change.dedup)}
        if slot.key is None and change.supersedes is None:
            marks.discard((tid, slot))  # an append without a key depends on nothing
        if marks & self._touched:
            self.flush()
        if change.queued is not None:
            removal.remove_by_id(self._connection, tid, record.memory_id)
        superseded = self._supersede(tid, slot, change)
        if change.dedup is not None and (tid, change.dedup) in self._taken:
            self._refuse_duplicate(tid, change.dedup)
        # A keyless append is no dependency of its own, but it moves the count that a keyless replace checks.
        self._touched |= {*marks, (tid, slot)}
        self._pending.append((self._new_rid(tid), tid, change))
        return CommitOutcome(record.memory_id, superseded)

    def flush(self) -> None:
        """Insert what was collected."""
        pending, self._pending = self._pending, []
        self._touched.clear()
        insert = self._connection.executemany
        try:
            insert(_INSERT_RECORD, [(rid, *rows.policy_row(one.record, tid)) for rid, tid, one in pending])
        except sqlite3.IntegrityError as error:
            raise RevisionConflictError(self._path, "a record of this id exists") from error
        contents = [(rid, *rows.content_row(one.record, one.dedup, one.original)) for rid, _, one in pending]
        insert(_INSERT_CONTENT, contents)
        terms = [posting for rid, tid, one in pending for posting in postings(one.record, tid, rid)]
        terms.sort()  # in key order the tree is walked once and pages fill evenly
        insert(_INSERT_POSTING, terms)
        insert(_RAISE_REVISION, {_revision(tid, one.record) for _, tid, one in pending})
        insert(_INSERT_DERIVATION, _derivations(pending))
        keyed = [
            (tid, one.dedup, rid)
            for rid, tid, one in pending
            if one.dedup is not None and one.record.status == "active"
        ]
        insert(_INSERT_DEDUP, keyed)
        self._taken.update((tid, digest) for tid, digest, _ in keyed)
        insert(_INSERT_QUARANTINE, _waiting(pending))

    def _supersede(self, tid: int, slot: Slot, change: Change) -> tuple[str, ...]:
        expected = change.supersedes
        if slot.key is None:
            if expected is not None and head_of(self._connection, tid, slot, self._now_us) != expected:
                raise RevisionConflictError(self._path, f"revision {expected.revision} is no longer the last")
            return ()
        replaces = change.record.status == "active"
        if expected is None and not (replaces and change.exclusive):
            return ()
        found = _active(self._connection, tid, slot, self._now_us)
        if _head(found) != expected:
            raise RevisionConflictError(self._path, f"another record is active under key `{slot.key}`")
        # What is held in quarantine replaces nothing yet; its expectation was checked all the same.
        if not replaces:
            return ()
        for row in found:
            self._retire(tid, row.rid)
        return tuple(row.memory_id for row in found)

    def _retire(self, tid: int, rid: int) -> None:
        execute = self._connection.execute
        execute("UPDATE records SET status='superseded' WHERE rid=?", (rid,))
        digest = execute("SELECT dedup FROM contents WHERE rid=?", (rid,)).fetchone()[0]
        if digest is not None:
            # The same memory may come back later: A, then B, then A again.
            execute("DELETE FROM dedup WHERE tid=? AND digest=? AND rid=?", (tid, digest, rid))

    def _refuse_duplicate(self, tid: int, digest: bytes) -> None:
        row = self._connection.execute(
            "SELECT r.memory_id,r.expires_us FROM dedup d JOIN records r ON r.rid=d.rid"
            " WHERE d.tid=? AND d.digest=?",
            (tid, digest),
        ).fetchone()
        if row is None:
            return
        if row[1] is None or row[1] > self._now_us:
            raise DuplicateRecordError(self._path, row[0])
        # What has expired is shown to nobody, so it must not stand for what is written now.
        self._connection.execute("DELETE FROM dedup WHERE tid=? AND digest=?", (tid, digest))

    def _new_rid(self, tid: int) -> int:
        last = self._next.get(tid)
        if last is None:
            first = tid << TENANT_SHIFT
            last = self._connection.execute(
                "SELECT ifnull(max(rid), ?) FROM records WHERE rid BETWEEN ? AND ?",
                (first, first, first + (1 << TENANT_SHIFT) - 1),
            ).fetchone()[0]
        self._next[tid] = last + 1
        return int(last) + 1


def _active(connection: sqlite3.Connection, tid: int, slot: Slot, now_us: int) -> list[_Active]:
    values = (now_us, tid, slot.key, slot.subject, slot.memory_class, slot.kind)
    return [_Active(*row) for row in connection.execute(_ACTIVE, values)]


def _head(active: Sequence[_Active]) -> Head | None:
    if not active:
        return None
    # Whoever replaces several records at once must be trusted as much as the most trusted of them.
    ranks = [row.trust_rank for row in active if not row.expired]
    revision = max(row.revision for row in active)
    return Head(active[0].memory_id, max(ranks, default=0), revision, "active" if ranks else "expired")


def _waiting(pending: Sequence[tuple[int, int, Change]]) -> list[tuple[Any, ...]]:
    return [
        (rid, *one.waiting)
        for rid, _, one in pending
        if one.waiting is not None and one.record.status == "quarantined"
    ]


def _revision(tid: int, record: MemoryRecord) -> tuple[int, str, str, int]:
    return tid, record.memory_class, record.kind, record.revision


def _derivations(pending: Sequence[tuple[int, int, Change]]) -> list[tuple[Any, ...]]:
    return [(tid, parent, rid) for rid, tid, one in pending for parent in one.record.derived_from]
