"""The rows that a governed write made, and the bare transaction that inserts the same ones once more."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.recall.analysis import label_terms, record_terms
from agent_runtime_ref.stores.sqlite.connection import ConnectionPool

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Written:
    """What one governed write left in the tables."""

    records: Rows
    contents: Rows
    postings: Rows
    lines: Rows


class Source:
    """Looks into a governed store for what was written last."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._last = self._last_line()

    def written(self, kept: Sequence[MemoryRecord]) -> Written:
        """Return the rows of records, and every log line since the last call."""
        execute = self._connection.execute
        records: Rows = []
        contents: Rows = []
        postings: Rows = []
        for record in kept:
            row = execute(
                "SELECT r.* FROM records r JOIN tenants t ON t.tid=r.tid"
                " WHERE t.tenant_id=? AND r.memory_id=?",
                (record.tenant_id, record.memory_id),
            ).fetchone()
            records.append(row)
            contents += execute("SELECT * FROM contents WHERE rid=?", (row[0],)).fetchall()
            postings += self._postings(record, row[1], row[0])
        postings.sort()  # the order of the key, as the store inserts them
        after, self._last = self._last, self._last_line()
        lines = execute("SELECT * FROM log WHERE seq>? ORDER BY seq", (after,)).fetchall()
        return Written(records, contents, postings, lines)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _postings(self, record: MemoryRecord, tid: int, rid: int) -> Rows:
        terms = record_terms(record.summary, record.content) | label_terms(record.kind, record.key)
        marks = ",".join("?" * len(terms))
        sql = f"SELECT * FROM postings WHERE tid=? AND rid=? AND term IN ({marks})"
        found = self._connection.execute(sql, (tid, rid, *terms)).fetchall()
        if len(found) != len(terms):
            raise SystemExit(f"a record has {len(found)} postings, its analyser finds {len(terms)} terms")
        return found

    def _last_line(self) -> int:
        return int(self._connection.execute("SELECT ifnull(max(seq), 0) FROM log").fetchone()[0])


class Bare:
    """Inserts ready rows into a copy of the store, over a connection set up as the store's own."""

    def __init__(self, path: Path) -> None:
        self._connection = ConnectionPool(path, synchronous="FULL", prepare=lambda _: None).open()
        self._statements = {name: self._insert(name) for name in ("records", "contents", "postings", "log")}

    def insert(self, written: Written | None) -> None:
        """Insert all rows in one durable transaction; nothing was written before the first round."""
        if written is None:
            return
        self._transaction(
            ("records", written.records),
            ("contents", written.contents),
            ("postings", written.postings),
            ("log", written.lines),
        )

    def insert_record_and_lines(self, written: Written | None) -> None:
        """Insert the record and its log lines only: nothing by which it could be found."""
        if written is None:
            return
        self._transaction(
            ("records", written.records), ("contents", written.contents), ("log", written.lines)
        )

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _transaction(self, *tables: tuple[str, Rows]) -> None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        for name, rows in tables:
            connection.executemany(self._statements[name], rows)
        connection.execute("COMMIT")

    def _insert(self, table: str) -> str:
        width = len(self._connection.execute(f"SELECT * FROM pragma_table_info('{table}')").fetchall())
        return f"INSERT INTO {table} VALUES({','.join('?' * width)})"
