"""N: what a careful user would write himself, with SQLite and its full-text index.

One table with an index on (tenant, class, trust, created_at), FTS5 over the content, filters joined in SQL,
write-ahead log, synchronous=FULL. No decision, no counts of what was kept out, no log. FTS5 does not cut
Chinese into words, so pairs of ideographs go into the index in place of the text.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agent_runtime_ref.stores.sqlite.connection import CACHE_KIB  # as much as the governed store has
from bench.data import NOW_US, Question
from bench.rows import Row, class_limits, limits_sql, terms

_TABLES = """
CREATE TABLE memories(
    id INTEGER PRIMARY KEY, memory_id TEXT NOT NULL UNIQUE, tenant_id TEXT NOT NULL,
    memory_class TEXT NOT NULL, kind TEXT NOT NULL, key TEXT, content TEXT NOT NULL,
    source TEXT NOT NULL, confidence REAL NOT NULL, provenance TEXT NOT NULL,
    trust INTEGER NOT NULL, created_at INTEGER NOT NULL, expires_at INTEGER);
CREATE INDEX memories_by_policy ON memories(tenant_id, memory_class, trust, created_at);
CREATE VIRTUAL TABLE memory_text USING fts5(words);
"""
_COLUMNS = ("m.memory_class", "m.trust", "m.created_at")


class Naive:
    """The baseline of reads."""

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        if not self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            self._connection.executescript(_TABLES)

    def add(self, rows: Iterable[Row]) -> None:
        """Put rows in one transaction."""
        execute = self._connection.execute
        execute("BEGIN")
        for row in rows:
            cursor = execute(f"INSERT INTO memories VALUES(NULL{',?' * len(row)})", row)
            words = " ".join(terms(row.content))
            execute("INSERT INTO memory_text(rowid, words) VALUES(?, ?)", (cursor.lastrowid, words))
        execute("COMMIT")

    def hurry(self) -> None:
        """Do not wait for the disk any more: this connection only fills."""
        self._connection.execute("PRAGMA synchronous=OFF")

    def tidy(self) -> None:
        """Bring the full-text index into one piece, its best state for reads."""
        self._connection.execute("INSERT INTO memory_text(memory_text) VALUES('optimize')")
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def read(self, question: Question, limit: int = 5) -> list[tuple[Any, ...]]:
        """Return whole rows, best match first; the id is the second column."""
        limits = class_limits(question, self._settings)
        where = f"m.tenant_id=? AND {limits_sql(limits, _COLUMNS)}"
        where += " AND (m.expires_at IS NULL OR m.expires_at>?)"
        values = [question.tenant_id, *(value for one in limits for value in one), NOW_US]
        if question.text is None:
            sql = f"SELECT m.* FROM memories m WHERE {where} ORDER BY m.trust DESC, m.created_at DESC LIMIT ?"
            return self._connection.execute(sql, (*values, limit)).fetchall()
        match = " OR ".join(f'"{term}"' for term in terms(question.text))
        sql = (
            "SELECT m.* FROM memory_text JOIN memories m ON m.id=memory_text.rowid"
            f" WHERE memory_text MATCH ? AND {where} ORDER BY bm25(memory_text) LIMIT ?"
        )
        return self._connection.execute(sql, (match, *values, limit)).fetchall()

    def every(self) -> list[tuple[Any, ...]]:
        """Return all rows."""
        return self._connection.execute("SELECT * FROM memories ORDER BY id").fetchall()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
