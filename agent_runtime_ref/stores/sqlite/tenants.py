"""Tenants as small integers: the first part of every key, so that no index repeats a tenant's name."""

import sqlite3
from collections.abc import Iterable, Sequence

from agent_runtime_ref.errors import StoreDamagedError
from agent_runtime_ref.stores.sqlite.connection import ConnectionPool, translated


class Tenants:
    """Names and numbers of tenants; a number is never changed or given twice, so both may be remembered."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._numbers: dict[str, int] = {}
        self._names: dict[int, str] = {}

    def number(self, tenant_id: str) -> int | None:
        """The number of a tenant, or None where it has none; names are compared byte for byte."""
        known = self._numbers.get(tenant_id)
        if known is not None:
            return known
        with translated(self._pool.path):
            found = _find(self._pool.get(), tenant_id)
        if found is not None and not self._pool.get().in_transaction:
            self.remember({tenant_id: found})
        return found

    def numbers(self, tenant_ids: Sequence[str] | None) -> tuple[int, ...]:
        """The numbers of those tenants that exist; None stands for all of them."""
        if tenant_ids is None:
            with translated(self._pool.path):
                found = self._pool.get().execute("SELECT tenant_id, tid FROM tenants").fetchall()
            self.remember(dict(found))
            return tuple(tid for _, tid in found)
        numbers = (self.number(tenant_id) for tenant_id in dict.fromkeys(tenant_ids))
        return tuple(number for number in numbers if number is not None)

    def name(self, tid: int) -> str:
        """The tenant of a number that came out of the store."""
        if tid not in self._names:
            self.numbers(None)
        if tid not in self._names:
            raise StoreDamagedError(str(self._pool.path), f"tenant {tid} of its records has no name")
        return self._names[tid]

    def ensure(self, connection: sqlite3.Connection, tenant_ids: Iterable[str]) -> dict[str, int]:
        """Numbers for all `tenant_ids`, made where there are none, within the open transaction.

        They are remembered only by `remember`, after the commit: a rolled-back number may be given again.
        """
        made: dict[str, int] = {}
        for tenant_id in dict.fromkeys(tenant_ids):
            found = self._numbers.get(tenant_id) or _find(connection, tenant_id)
            if found is None:
                insert = "INSERT INTO tenants(tenant_id) VALUES(?) RETURNING tid"
                found = connection.execute(insert, (tenant_id,)).fetchone()[0]
            made[tenant_id] = int(found)
        return made

    def remember(self, numbers: dict[str, int]) -> None:
        """Keep committed numbers."""
        for tenant_id, tid in numbers.items():
            if tenant_id not in self._numbers:
                self._names[tid] = tenant_id
                self._numbers[tenant_id] = tid


def _find(connection: sqlite3.Connection, tenant_id: str) -> int | None:
    row = connection.execute("SELECT tid FROM tenants WHERE tenant_id=?", (tenant_id,)).fetchone()
    return None if row is None else int(row[0])
