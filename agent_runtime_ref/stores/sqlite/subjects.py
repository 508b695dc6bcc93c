"""Keys: one of the store, and one per subject, whose destruction makes its pseudonyms in the log nobody's."""

import secrets
import sqlite3

from agent_runtime_ref.errors import StoreDamagedError
from agent_runtime_ref.stores.sqlite.connection import ConnectionPool, translated
from agent_runtime_ref.stores.sqlite.tenants import Tenants

_KEY_BYTES = 32


def store_key(pool: ConnectionPool) -> bytes:
    """The store's own key, made when the file was made."""
    with translated(pool.path):
        row = pool.get().execute("SELECT value FROM meta WHERE name='store_key'").fetchone()
    if row is None:
        raise StoreDamagedError(str(pool.path), "its key is gone")
    return _checked(row[0], pool)


def subject_key(
    pool: ConnectionPool, tenants: Tenants, tenant_id: str, subject: str, *, create: bool
) -> bytes | None:
    """The key of a subject in a tenant, made where there is none and `create` is set.

    Never remembered in memory: another process may destroy it at any time.
    """
    with translated(pool.path):
        tid = tenants.number(tenant_id)
        found = None if tid is None else _find(pool, pool.get(), tid, subject)
    if found is not None or not create:
        return found
    with pool.transaction() as connection:
        made = tenants.ensure(connection, [tenant_id])
        connection.execute(
            "INSERT OR IGNORE INTO subject_keys(tid, subject, key) VALUES(?, ?, ?)",
            (made[tenant_id], subject, secrets.token_bytes(_KEY_BYTES)),
        )
        return _find(pool, connection, made[tenant_id], subject)  # another process may have been first


def _find(pool: ConnectionPool, connection: sqlite3.Connection, tid: int, subject: str) -> bytes | None:
    row = connection.execute(
        "SELECT key FROM subject_keys WHERE tid=? AND subject=?", (tid, subject)
    ).fetchone()
    return None if row is None else _checked(row[0], pool)


def _checked(key: object, pool: ConnectionPool) -> bytes:
    if not isinstance(key, bytes) or len(key) != _KEY_BYTES:
        raise StoreDamagedError(str(pool.path), "one of its keys is none")
    return key
