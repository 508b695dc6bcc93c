"""The decision log in a SQLite file: sealed lines without a gap, in the transaction of what they tell of."""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent_runtime_ref.errors import DecisionLogError, StoreDamagedError, StoreError
from agent_runtime_ref.stores.sqlite.connection import ConnectionPool, store_error, translated
from agent_runtime_ref.telemetry import chain

_READ_AT_ONCE = 1000


def append(connection: sqlite3.Connection, lines: Sequence[str], path: Path) -> None:
    """Seal `lines` and add them within the open transaction.

    Raises:
        DecisionLogError: the lines could not be written; the caller's transaction must not be committed.
    """
    if not lines:
        return
    try:
        last = connection.execute("SELECT line FROM log ORDER BY seq DESC LIMIT 1").fetchone()
        seq, prev_hash = (0, chain.GENESIS) if last is None else chain.head(last[0])
        connection.executemany(
            "INSERT INTO log(seq, line) VALUES(?, ?)", chain.seal_after(lines, seq=seq, prev_hash=prev_hash)
        )
    except ValueError as error:
        raise DecisionLogError(str(path), f"its last line is damaged: {error}") from error
    except sqlite3.Error as error:
        raise DecisionLogError(str(path), str(store_error(path, error).values["problem"])) from error


def append_alone(pool: ConnectionPool, lines: Sequence[str]) -> None:
    """Log what is not part of a write, in a transaction of its own.

    Raises:
        DecisionLogError: the lines could not be written or committed.
    """
    if not lines:
        return
    try:
        with pool.transaction() as connection:
            append(connection, lines, pool.path)
    except DecisionLogError:
        raise
    except StoreError as error:
        raise DecisionLogError(str(pool.path), str(error.values["problem"])) from error
    except Exception as error:  # whatever kept the lines from being durable, the operation must not happen
        raise DecisionLogError(str(pool.path), str(error)) from error


def read(pool: ConnectionPool) -> Iterator[str]:
    """The sealed lines, oldest first, in steps that hold no snapshot while the caller works."""
    after = 0
    while True:
        with translated(pool.path):
            rows = (
                pool.get()
                .execute("SELECT seq, line FROM log WHERE seq>? ORDER BY seq LIMIT ?", (after, _READ_AT_ONCE))
                .fetchall()
            )
        if not rows:
            return
        for seq, line in rows:
            if seq != after + 1 and after:
                raise StoreDamagedError(str(pool.path), f"line {after + 1} of its log is missing")
            yield line
            after = seq


def read_raw(pool: ConnectionPool, after: int = 0) -> Iterator[bytes]:
    """The lines as they lie in the file, in the order of their rows, whatever was done to them."""
    after = after or -(2**63)  # a row may have been given any number
    while True:
        with translated(pool.path):
            rows = (
                pool.get()
                .execute(
                    "SELECT seq, CAST(ifnull(line, '') AS BLOB) FROM log WHERE seq>? ORDER BY seq LIMIT ?",
                    (after, _READ_AT_ONCE),
                )
                .fetchall()
            )
        if not rows:
            return
        yield from (bytes(line) for _, line in rows)
        after = rows[-1][0]


def last_number(connection: sqlite3.Connection) -> int:
    """The number of the last line, 0 before the first."""
    return int(connection.execute("SELECT ifnull(max(seq), 0) FROM log").fetchone()[0])
