"""Connections to one database: borrowed for a transaction each, replaced when lost, reopened after a fork.

The tenant is set inside the transaction (`set_config(..., true)`) and ends with it, so whoever borrows the
connection next sees nothing until it has said whose rows it is about.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from agent_runtime_ref.errors import (
    RevisionConflictError,
    StoreCapabilityError,
    StoreDamagedError,
    StoreError,
)
from agent_runtime_ref.stores.postgres.session import ACROSS, Across, Row, Session

if TYPE_CHECKING:
    import psycopg
    from psycopg_pool import ConnectionPool

CONNECT_SECONDS = 10
POOL_MAX = 16
# A transaction that lost its connection or its race is tried this often, with these pauses between.
PAUSES_SECONDS = (0.05, 0.2, 0.8)
# Objects of this package only, then those of the system; temporary ones last, so that they shadow nothing.
SETTINGS = "-c search_path=agent_memory,pg_catalog,pg_temp"
_SESSION_SETTINGS = {
    # What is looked up is small and by key. A plan for any value, made once, is right for all of them: making
    # one for each call would cost more than running it.
    "plan_cache_mode": "force_generic_plan",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    "row_security": "on",
    "lock_timeout": "30s",
    # Whoever stops in the middle of a write must not keep the others of its tenant waiting for ever.
    "idle_in_transaction_session_timeout": "60s",
}
# A role or a database may have been told not to wait for the disk: what is acknowledged here is on it. Every
# other value (`local`, `remote_write`, `remote_apply`) waits, and is the choice of whoever runs the server.
_WAITING = (
    "SELECT set_config(name,'on',false) FROM pg_settings WHERE name='synchronous_commit' AND setting='off'"
)

T = TypeVar("T")

# Pools of the parent process, kept for ever: to close one in the child would end the parent's connections.
_inherited: list[object] = []


class _Local(threading.local):
    session: Session | None = None


class Pool:
    """The connections of one process to one database, all in the application's role."""

    def __init__(self, url: str, place: str, *, application: str, inspection: str) -> None:
        self.place = place
        self.inspection = inspection
        self._url = url
        self._application = application
        self._closed = False
        self._guard = threading.Lock()
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._local = _Local()
        self._pool: ConnectionPool[psycopg.Connection] | None = None

    def _opened(self) -> ConnectionPool[psycopg.Connection]:
        if self._closed:
            raise StoreError(self.place, "the store is closed")
        if self._pid != os.getpid():
            _inherited.append(self._pool)
            self._guard = threading.Lock()
            self._start()
        with self._guard:
            if self._pool is None:
                self._pool = self._made()
            return self._pool

    def _made(self) -> ConnectionPool[psycopg.Connection]:
        from psycopg import RawCursor
        from psycopg_pool import ConnectionPool

        return ConnectionPool(
            self._url,
            kwargs={
                "autocommit": True,
                "connect_timeout": CONNECT_SECONDS,
                "options": SETTINGS,
                "application_name": "agent-runtime-ref",
                "cursor_factory": RawCursor,
                # At once: a plan for any value is dear to make, and is made once for a connection.
                "prepare_threshold": 0,
            },
            configure=self._configure,
            min_size=1,
            max_size=POOL_MAX,
            timeout=CONNECT_SECONDS,
            num_workers=1,
            open=True,
        )

    def _configure(self, connection: psycopg.Connection) -> None:
        """Put a new connection into the application's role, whoever logged in, and have its commits wait."""
        settings = {**_SESSION_SETTINGS, "role": self._application}
        calls = ",".join(f"set_config(${2 * n + 1},${2 * n + 2},false)" for n in range(len(settings)))
        connection.execute(f"SELECT {calls}", [part for pair in settings.items() for part in pair])
        connection.execute(_WAITING)

    def ask(self, tenant: str | Across, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """The rows of one statement about one tenant; asked again where the connection was lost."""
        session = self._local.session
        if session is not None and session.pid == os.getpid():
            with translated(self.place), session.staying():
                session.become(tenant)
                return session.rows(sql, parameters)
        return self.tried(lambda: self.ask_once(tenant, sql, parameters))

    def ask_once(
        self, tenant: str | Across, sql: str, parameters: Sequence[Any], *, durable: bool = True
    ) -> list[Row]:
        """The rows of one statement in a transaction of its own; where the connection is lost, an error.

        What is not `durable` is committed, and outlives this process, before it is on the disk of the server.
        """
        with translated(self.place), self._borrowed() as connection:
            session = Session(connection, self.inspection)
            return session.alone(tenant, sql, parameters, durable=durable)

    def common(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """The rows of one statement about what belongs to no tenant."""

        def asked() -> list[Row]:
            with self._borrowed() as connection:
                return connection.execute(sql.encode(), parameters).fetchall()

        return self.tried(asked)

    def write(self, work: Callable[[Session], T]) -> T:
        """What `work` returns, committed; begun anew where the connection or a race was lost.

        A connection that is lost while it commits leaves open whether it did: the database is asked, by the
        number of the transaction, so that nothing is done twice. `work` takes its locks first, so that
        whatever was on its way before has ended when it looks.

        Raises:
            StoreError: the database could not be reached again, or others kept winning.
        """
        session = self._local.session
        if session is not None and session.pid == os.getpid():
            with translated(self.place), session.staying():
                return work(session)
        uncertain: list[tuple[str, T]] = []
        return self.tried(lambda: self._written(work, uncertain), uncertain=uncertain)

    def _written(self, work: Callable[[Session], T], uncertain: list[tuple[str, T]]) -> T:
        with self._borrowed() as connection:
            for number, result in uncertain:
                if self._was_committed(connection, number):
                    return result
            uncertain.clear()
            session = self._local.session = Session(connection, self.inspection)
            try:
                session.begin()
                result = work(session)
                own = session.number()
            except BaseException:
                if not _is_lost(connection):
                    session.roll_back()
                raise
            finally:
                self._local.session = None
            if own is not None:
                uncertain.append((own, result))
            session.commit()  # from here on only the database knows whether it has happened
            return result

    def _was_committed(self, connection: psycopg.Connection, number: str) -> bool:
        """Whether an earlier attempt took effect; one that is still on its way is waited for."""
        for pause in (*PAUSES_SECONDS, 3.0, None):
            row = connection.execute(b"SELECT pg_xact_status($1::text::xid8)", (number,)).fetchone()
            if row != ("in progress",):
                return row == ("committed",)
            if pause is not None:
                time.sleep(pause)
        raise StoreError(self.place, "an earlier attempt does not end; look before you repeat it")

    @contextmanager
    def snapshot(self, tenant: str | Across) -> Iterator[Session]:
        """A session that sees one moment of a tenant until the block ends."""
        with translated(self.place), self._borrowed() as connection:
            session = Session(connection, self.inspection)
            session.begin("ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            try:
                session.become(tenant)
                yield session
            finally:
                if not _is_lost(connection):
                    session.roll_back()

    @contextmanager
    def _borrowed(self) -> Iterator[psycopg.Connection]:
        from psycopg import pq

        pool = self._opened()
        connection = pool.getconn()
        try:
            yield connection
        finally:
            if not _is_lost(connection) and connection.info.transaction_status != pq.TransactionStatus.IDLE:
                with suppress(Exception):
                    connection.rollback()
            pool.putconn(connection)

    def tried(self, action: Callable[[], T], *, uncertain: Sequence[object] = ()) -> T:
        """What `action` returns, at the last of a bounded number of attempts."""
        import psycopg

        for pause in (*PAUSES_SECONDS, None):
            try:
                with translated(self.place):
                    return action()
            except StoreError as error:
                cause = error.__cause__
                if pause is None or not isinstance(cause, psycopg.Error) or not _may_pass(cause):
                    if uncertain and pause is None:
                        problem = f"whether it was written is not known ({error.values['problem']})"
                        raise StoreError(self.place, problem) from cause
                    raise
                if isinstance(cause, psycopg.OperationalError):
                    self._drop_lost()
            time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _drop_lost(self) -> None:
        """Replace idle connections that were lost together with the one that failed."""
        pool = self._pool
        if pool is not None and not self._closed:
            pool.check()

    def close(self) -> None:
        """Give up every connection of this process."""
        self._closed = True
        pool = self._pool
        if pool is not None and self._pid == os.getpid():
            pool.close()


def _is_lost(connection: psycopg.Connection) -> bool:
    return connection.closed or connection.broken


def _may_pass(error: psycopg.Error) -> bool:
    """Whether the same may succeed on another attempt: the connection, or a race, was lost."""
    from psycopg import errors

    if isinstance(error, errors.SerializationFailure | errors.DeadlockDetected):
        return True
    if isinstance(
        error, errors.LockNotAvailable | errors.QueryCanceled | errors.DiskFull | errors.OutOfMemory
    ):
        return False
    return isinstance(error, errors.OperationalError)


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Turn what the driver raises into what the package documents."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise store_error(place, error) from error


def store_error(place: str, error: psycopg.Error) -> StoreError:
    """The documented error for one of the driver's; never its details, which quote values."""
    from psycopg import errors

    told = (error.diag.message_primary or str(error) or type(error).__name__).strip().splitlines()[0]
    if isinstance(error, errors.UniqueViolation):
        return RevisionConflictError(place, _taken(error))
    if isinstance(error, errors.UndefinedTable | errors.UndefinedColumn | errors.InvalidSchemaName):
        return StoreDamagedError(place, told)
    if isinstance(error, errors.InsufficientPrivilege):
        return StoreCapabilityError(place, f"its role may not do this: {told}")
    return StoreError(place, told)


def _taken(error: psycopg.Error) -> str:
    table = error.diag.table_name or ""
    if table.startswith("records"):
        return "a record of this id exists"
    return "the same was written meanwhile"


__all__ = ["ACROSS", "CONNECT_SECONDS", "SETTINGS", "Across", "Pool", "Row", "Session", "translated"]
