"""One transaction on a borrowed connection, and whose rows it is about."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import psycopg

Row = tuple[Any, ...]


class Across(Enum):
    """Stands for every tenant, in the place of one: seen in the role of inspection, read only."""

    ALL = "all tenants"


ACROSS: Final = Across.ALL

_TENANT = b"SELECT set_config('app.tenant',$1,true)"
_LATER = b"SET LOCAL synchronous_commit=off"
_ROLE = b"SELECT set_config('role',$1,true)"


class Session:
    """Statements within one transaction."""

    __slots__ = ("_inspection", "connection", "pid", "tenant")

    def __init__(self, connection: psycopg.Connection, inspection: str) -> None:
        self.connection = connection
        self.tenant: str | Across | None = None
        self.pid = os.getpid()
        self._inspection = inspection

    def begin(self, mode: str = "ISOLATION LEVEL READ COMMITTED") -> None:
        """Begin the transaction."""
        self.connection.execute(f"BEGIN {mode}".encode())

    def commit(self) -> None:
        """End it for good."""
        self.connection.execute(b"COMMIT")

    def roll_back(self) -> None:
        """End it as if it had not been."""
        self.connection.execute(b"ROLLBACK")

    def become(self, tenant: str | Across) -> None:
        """Say whose rows the next statements are about, until the transaction ends."""
        if tenant != self.tenant:
            assert not isinstance(self.tenant, Across), "nobody comes back from the role of inspection"
            self.connection.execute(*self._said(tenant))
            self.tenant = tenant

    @contextmanager
    def staying(self) -> Iterator[None]:
        """Go back to the tenant of before when the block, which may ask about another one, has ended."""
        before = self.tenant
        yield
        if before is not None:
            self.become(before)

    def _said(self, tenant: str | Across) -> tuple[bytes, tuple[str]]:
        if isinstance(tenant, Across):
            return _ROLE, (self._inspection,)
        return _TENANT, (tenant,)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """The rows of one statement."""
        return self.connection.execute(sql.encode(), parameters).fetchall()

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """How many rows one statement changed."""
        return self.connection.execute(sql.encode(), parameters).rowcount

    def send(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Run one statement whose outcome is not looked at; in a pipeline, without waiting for it."""
        self.connection.execute(sql.encode(), parameters)

    def alone(
        self, tenant: str | Across, sql: str, parameters: Sequence[Any], *, durable: bool = True
    ) -> list[Row]:
        """The rows of a statement in a transaction of its own, in one round trip."""
        connection = self.connection
        with connection.pipeline():
            connection.execute(b"BEGIN")
            connection.execute(*self._said(tenant))
            if not durable:
                connection.execute(_LATER)
            cursor = connection.execute(sql.encode(), parameters)
            connection.execute(b"COMMIT")
        return cursor.fetchall() if cursor.description else []

    def number(self) -> str | None:
        """The number of this transaction, by which the database knows later what became of it.

        None where it has changed nothing, so that there is nothing to know.
        """
        number: str | None = self.rows("SELECT pg_current_xact_id_if_assigned()::text")[0][0]
        return number
