"""L: the least that an exact, filtered search by words costs in SQLite.

A postings table per tenant that carries what is filtered by, ranked by how many terms match. It decides
nothing, checks nothing, counts nothing and tells nobody: what governing costs is measured from here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agent_runtime_ref.stores.sqlite.connection import CACHE_KIB
from bench.data import Question
from bench.rows import Row, class_limits, limits_sql, terms

_TABLES = """
CREATE TABLE tenants(tid INTEGER PRIMARY KEY, tenant_id TEXT NOT NULL UNIQUE);
CREATE TABLE memories(
    id INTEGER PRIMARY KEY, memory_id TEXT NOT NULL, tenant_id TEXT NOT NULL, memory_class TEXT NOT NULL,
    kind TEXT NOT NULL, key TEXT, content TEXT NOT NULL, source TEXT NOT NULL, confidence REAL NOT NULL,
    provenance TEXT NOT NULL, trust INTEGER NOT NULL, created_at INTEGER NOT NULL, expires_at INTEGER);
CREATE TABLE postings(
    tid INTEGER NOT NULL, term TEXT NOT NULL, id INTEGER NOT NULL, memory_class TEXT NOT NULL,
    trust INTEGER NOT NULL, created_at INTEGER NOT NULL, PRIMARY KEY(tid, term, id)) WITHOUT ROWID;
"""
_COLUMNS = ("p.memory_class", "p.trust", "p.created_at")


class Limit:
    """The floor under reads by words."""

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        if not self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            self._connection.executescript(_TABLES)
        self._tenants: dict[str, int] = dict(self._connection.execute("SELECT tenant_id, tid FROM tenants"))

    def add(self, rows: Iterable[Row]) -> None:
        """Put rows of one batch in one transaction."""
        execute = self._connection.execute
        execute("BEGIN")
        postings = []
        for row in rows:
            tid = self._tenant(row.tenant_id)
            number = execute(f"INSERT INTO memories VALUES(NULL{',?' * len(row)})", row).lastrowid
            filtered = (row.memory_class, row.trust_rank, row.created_us)
            postings += [(tid, term, number, *filtered) for term in terms(row.content)]
        postings.sort()
        self._connection.executemany("INSERT INTO postings VALUES(?,?,?,?,?,?)", postings)
        execute("COMMIT")

    def hurry(self) -> None:
        """Do not wait for the disk any more: this connection only fills."""
        self._connection.execute("PRAGMA synchronous=OFF")

    def tidy(self) -> None:
        """Bring everything into the file itself."""
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def read(self, question: Question, limit: int = 5) -> list[tuple[Any, ...]]:
        """Return whole rows, most matching terms first; the id is the second column."""
        assert question.text is not None
        found = terms(question.text)
        limits = class_limits(question, self._settings)
        sql = (
            "SELECT m.* FROM (SELECT p.id AS id, count(*) AS matched, p.created_at AS created_at"
            " FROM postings p"
            f" WHERE p.tid=? AND p.term IN ({','.join('?' * len(found))}) AND {limits_sql(limits, _COLUMNS)}"
            " GROUP BY p.id ORDER BY matched DESC, created_at DESC LIMIT ?) b"
            " CROSS JOIN memories m ON m.id=b.id"
        )
        values = [value for one in limits for value in one]
        return self._connection.execute(
            sql, (self._tenants[question.tenant_id], *found, *values, limit)
        ).fetchall()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _tenant(self, tenant_id: str) -> int:
        if tenant_id not in self._tenants:
            number = len(self._tenants) + 1
            self._connection.execute("INSERT INTO tenants VALUES(?, ?)", (number, tenant_id))
            self._tenants[tenant_id] = number
        return self._tenants[tenant_id]
