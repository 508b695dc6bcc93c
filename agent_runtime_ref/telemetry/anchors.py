"""Anchors: hashes of log lines that are known from elsewhere, by chain and number of the line.

They lie in a private temporary database on disk, because a trace may hold a million of them; a chain is
walked in the order of its numbers, so that only the next anchor is in memory.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self

from agent_runtime_ref.telemetry.chain import Position
from agent_runtime_ref.telemetry.places import position_of
from agent_runtime_ref.telemetry.segments import raw_lines


class Anchors:
    """Positions of lines that are known to have been in a log; to be closed."""

    def __init__(self, positions: Iterable[Position] = ()) -> None:
        # An empty name is a database on disk that is nobody else's and ends with the connection.
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.execute(
            "CREATE TABLE anchors(chain TEXT, seq INTEGER, hash TEXT, PRIMARY KEY(chain, seq, hash))"
            " WITHOUT ROWID"
        )
        self.add(positions)

    def add(self, positions: Iterable[Position]) -> None:
        """Take in positions, each as often as it comes."""
        with closing(self._database.cursor()) as cursor:
            cursor.execute("BEGIN")
            cursor.executemany("INSERT OR IGNORE INTO anchors VALUES(?,?,?)", positions)
            cursor.execute("COMMIT")

    def chains(self) -> list[str]:
        """The names of the chains that anchors are about."""
        rows = self._database.execute("SELECT DISTINCT chain FROM anchors ORDER BY chain")
        return [str(row[0]) for row in rows]

    def of(self, chain: str) -> ChainAnchors:
        """The anchors of one chain."""
        return ChainAnchors(self._database, chain)

    def close(self) -> None:
        """Give up the temporary file."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class ChainAnchors:
    """The anchors of one chain, to be asked in ascending order of the lines."""

    def __init__(self, database: sqlite3.Connection, chain: str) -> None:
        self._database = database
        self._chain = chain
        self._rows = database.execute(
            "SELECT seq, hash FROM anchors WHERE chain=? AND seq>0 ORDER BY seq", (chain,)
        )
        self._held: str | None = None  # the hash of the next anchor
        self.next_seq: float = 0  # its line; infinity behind the last one
        self._advance()

    def at(self, seq: int) -> set[str]:
        """The hashes that anchors know of line `seq`; none of most lines."""
        known: set[str] = set()
        while self.next_seq <= seq and self._held is not None:
            if self.next_seq == seq:
                known.add(self._held)
            self._advance()
        return known

    def _advance(self) -> None:
        row = self._rows.fetchone()
        self.next_seq, self._held = (float("inf"), None) if row is None else row

    def has(self, seq: int, hash_: str) -> bool:
        """Whether an anchor knows that line `seq` has this hash."""
        sql = "SELECT 1 FROM anchors WHERE chain=? AND seq=? AND hash=?"
        return self._database.execute(sql, (self._chain, seq, hash_)).fetchone() is not None

    def last(self) -> int:
        """The highest number that an anchor knows, 0 without one."""
        sql = "SELECT ifnull(max(seq), 0) FROM anchors WHERE chain=?"
        return int(self._database.execute(sql, (self._chain,)).fetchone()[0])


def exported_positions(path: Path) -> Iterable[Position]:
    """Yield the positions that the events of a JSONL trace carry; lines that carry none are passed over.

    Raises:
        DocumentUnreadableError: the file cannot be read.
    """
    for raw in raw_lines(path):
        try:
            event = json.loads(raw.data)
        except (ValueError, RecursionError):
            continue  # a trace is a convenience; a damaged line of it is no anchor
        payload = event.get("payload") if isinstance(event, dict) else None
        position = None if not isinstance(payload, dict) else position_of(payload)
        if position is not None:
            yield position
