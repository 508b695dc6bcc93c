"""Take records out of every table that knows of them, in the caller's transaction."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from agent_runtime_ref.recall.analysis import label_terms, record_terms
from agent_runtime_ref.stores.sqlite import rows

# The columns of `Doomed` after the first two.
DOOMED_LIST = (
    "r.status, r.memory_class, r.kind, r.key, t.content, t.summary, t.details, t.dedup, r.subject, t.original"
)
_BY_ID = (
    f"SELECT r.rid, 1, {DOOMED_LIST} FROM records r JOIN contents t ON t.rid=r.rid"
    " WHERE r.tid=? AND r.memory_id=?"
)


class Doomed(NamedTuple):
    """A record that is to go, with what is needed to find its traces."""

    rid: int
    own: int  # meant itself, not only derived from what is meant
    status: str
    memory_class: str
    kind: str
    key: str | None
    content: str
    summary: str | None
    details: str | None
    dedup: bytes | None
    subject: str | None
    original: bytes | None

    def terms(self) -> frozenset[str]:
        """Every term of its postings."""
        return record_terms(self.summary, self.content) | label_terms(self.kind, self.key)


def remove(connection: sqlite3.Connection, tid: int, found: Sequence[Doomed]) -> None:
    """Delete every row of `found`."""
    many = connection.executemany
    terms = sorted((tid, term, one.rid) for one in found for term in one.terms())
    many("DELETE FROM postings WHERE tid=? AND term=? AND rid=?", terms)
    parents = [(tid, parent, one.rid) for one in found for parent in rows.details(one.details)[1]]
    many("DELETE FROM derivations WHERE tid=? AND parent_id=? AND rid=?", parents)
    many("DELETE FROM dedup WHERE tid=? AND digest=? AND rid=?", dedup_rows(tid, found))
    for table in ("quarantine", "contents", "records"):
        many(f"DELETE FROM {table} WHERE rid=?", [(one.rid,) for one in found])


def remove_by_id(connection: sqlite3.Connection, tid: int, memory_id: str) -> None:
    """Delete every row of one record that is there."""
    remove(connection, tid, [Doomed(*row) for row in connection.execute(_BY_ID, (tid, memory_id))])


def mark(connection: sqlite3.Connection, tid: int, digests: Iterable[bytes], now_us: int) -> None:
    """Leave a tombstone for each digest."""
    connection.executemany(
        "INSERT OR REPLACE INTO tombstones(tid, digest, at_us) VALUES(?, ?, ?)",
        [(tid, digest, now_us) for digest in sorted(digests)],
    )


def dedup_rows(tid: int, found: Sequence[Doomed]) -> list[tuple[Any, ...]]:
    """The dedup keys of `found`, with tenant and row."""
    return [(tid, one.dedup, one.rid) for one in found if one.dedup is not None]
