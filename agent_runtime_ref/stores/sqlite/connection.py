"""Connections to one SQLite file: one per thread, one writer at a time, none carried over a fork."""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_runtime_ref.errors import StoreDamagedError, StoreError, StoreForeignError

BUSY_TIMEOUT_SECONDS = 30.0
CACHE_KIB = 8 * 1024
# For who may only read: verifying and tracing writes nothing, what policies decide about is logged.
_REMEDY = "make a copy with all files of the store in a folder where this user may write, and name that"
STATEMENTS_CACHED = 256

# Connections of the parent process, kept for ever: to close one in the child would tamper with the
# parent's WAL.
_inherited: list[object] = []


class _Local(threading.local):
    connection: sqlite3.Connection | None = None


class ConnectionPool:
    """The connections of one process to one file.

    `prepare` is run on each new connection; it is there that the file is migrated or refused.
    """

    def __init__(
        self,
        path: Path,
        *,
        synchronous: str,
        prepare: Callable[[sqlite3.Connection], None],
        create: bool = True,
    ) -> None:
        self.path = path
        self._synchronous = synchronous
        self._prepare = prepare
        self._creates = create
        self._closed = False
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._local = _Local()
        # Strong references: a thread that is gone after a fork must not take its connection along.
        self._open: list[tuple[threading.Thread, sqlite3.Connection]] = []
        self._guard = threading.Lock()
        self.writer = threading.RLock()  # re-entrant: making a log line may make a subject's key

    def get(self) -> sqlite3.Connection:
        """This thread's connection, opened on first use and reopened after a fork."""
        if self._pid != os.getpid():
            # The parent's threads are gone and may have held these locks; nothing of theirs can be used.
            _inherited.append((self._local, self._open))
            self._start()
        connection = self._local.connection
        if connection is None or self._closed:
            if self._closed:
                raise StoreError(str(self.path), "the store is closed")
            connection = self._local.connection = self.open()
            self._keep(connection)
        return connection

    def _keep(self, connection: sqlite3.Connection) -> None:
        with self._guard:
            for thread, old in self._open:
                if not thread.is_alive():
                    old.close()
            living = [(thread, old) for thread, old in self._open if thread.is_alive()]
            self._open = [*living, (threading.current_thread(), connection)]

    def open(self) -> sqlite3.Connection:
        """A new connection, which the caller closes."""
        with translated(self.path):
            if self._creates:
                self._create()
            elif not self.path.exists():
                raise StoreError(str(self.path), "the file is gone")
            how = _read_only(self.path)
            connection = sqlite3.connect(
                self.path if how is None else f"{self.path.as_uri()}?{how}",
                uri=how is not None,
                timeout=BUSY_TIMEOUT_SECONDS,
                isolation_level=None,
                check_same_thread=False,  # close() runs in whatever thread closes the store
                cached_statements=STATEMENTS_CACHED,
            )
            try:
                self._configure(connection)
                self._prepare(connection)  # before the journal mode: a foreign file is left as it is
                if how is None:
                    self._use_wal(connection)
            except BaseException:
                connection.close()
                raise
            return connection

    def _create(self) -> None:
        """Make the file readable by its owner alone before SQLite sees it; its WAL takes the same mode."""
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            return
        except OSError as error:
            reason = f"the file cannot be made: {(error.strerror or str(error)).lower()}; {_REMEDY}"
            raise StoreError(str(self.path), reason) from error

    def _configure(self, connection: sqlite3.Connection) -> None:
        for pragma in (
            "trusted_schema=OFF",
            "cell_size_check=ON",
            "secure_delete=ON",
            f"synchronous={self._synchronous}",
            f"cache_size=-{CACHE_KIB}",
        ):
            connection.execute(f"PRAGMA {pragma}")

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        deadline = time.monotonic() + BUSY_TIMEOUT_SECONDS
        while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            try:
                connection.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError:
                # SQLite does not wait here by itself while another process makes the same change.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A write transaction: committed when the block ends, rolled back when it raises."""
        connection = self.get()
        with self.writer, translated(self.path):
            if connection.in_transaction:  # within a write of this very thread
                yield connection
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                _roll_back(connection)
                raise

    def close(self) -> None:
        """Close every connection of this process."""
        self._closed = True
        if self._pid == os.getpid():
            with self._guard:
                for _, connection in self._open:
                    connection.close()


def _read_only(path: Path) -> str | None:
    """Return how SQLite is told to open a file that this user may only read; None where he may write it.

    SQLite reads a file in this journal mode through two more beside it. Where these are not there and cannot
    be made, nobody has the file open, so it may be taken for one that does not change.
    """
    if not path.exists():
        return None
    beside = [path.with_name(path.name + end) for end in ("-wal", "-shm")]
    may_make = os.access(path.parent, os.W_OK)
    if os.access(path, os.W_OK) and (may_make or all(one.exists() for one in beside)):
        return None
    return "mode=ro" if may_make or any(one.exists() for one in beside) else "mode=ro&immutable=1"


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:  # SQLite itself rolls back on some errors, a full disk among them
        connection.execute("ROLLBACK")


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn what SQLite raises into what the package documents."""
    try:
        yield
    except sqlite3.Error as error:
        raise store_error(path, error) from error


def store_error(path: Path, error: sqlite3.Error) -> StoreError:
    """The documented error for one of SQLite's."""
    code = getattr(error, "sqlite_errorcode", None)
    # Every statement is ours and right: what it misses was taken out of the file.
    missing = str(error).startswith(("no such table", "no such column"))
    base = None if code is None else code & 0xFF
    if base == sqlite3.SQLITE_NOTADB:
        return StoreForeignError(str(path), "is no store: the file is no SQLite database")
    if missing or base == sqlite3.SQLITE_CORRUPT:
        return StoreDamagedError(str(path), str(error))
    if base == sqlite3.SQLITE_READONLY:
        return StoreError(str(path), f"this user may only read it; {_REMEDY}")
    if base == sqlite3.SQLITE_CANTOPEN and _read_only(path) is not None:
        return StoreError(
            str(path), f"this user can make no files beside it, which reading it needs; {_REMEDY}"
        )
    return StoreError(str(path), str(error))
