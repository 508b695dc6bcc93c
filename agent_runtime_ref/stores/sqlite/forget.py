"""Remove a subject from a tenant: every revision, what was derived from it, terms, dedup keys and log key.

Deleting rows is not enough: pages are zeroed (secure_delete), the write-ahead log is truncated and the
file is rebuilt, because each of them would keep copies of what was there.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from agent_runtime_ref.stores.base import ForgetCounts
from agent_runtime_ref.stores.digests import tombstone_digest
from agent_runtime_ref.stores.sqlite import log, rows
from agent_runtime_ref.stores.sqlite.connection import ConnectionPool, translated
from agent_runtime_ref.stores.sqlite.removal import DOOMED_LIST, Doomed, dedup_rows, mark, remove
from agent_runtime_ref.stores.sqlite.schema import TENANT_SHIFT
from agent_runtime_ref.stores.sqlite.tenants import Tenants

# A reader that stays longer than this is reported, not waited for.
_ERASE_WAIT_MS = 2000

_DOOMED = f"""
WITH RECURSIVE doomed(rid) AS (
    SELECT rid FROM records NOT INDEXED WHERE rid BETWEEN ? AND ? AND subject=?
    UNION
    SELECT d.rid FROM doomed JOIN records p ON p.rid=doomed.rid
    JOIN derivations d ON d.tid=? AND d.parent_id=p.memory_id)
SELECT r.rid, r.subject IS ?, {DOOMED_LIST}
FROM doomed CROSS JOIN records r ON r.rid=doomed.rid CROSS JOIN contents t ON t.rid=doomed.rid
ORDER BY r.rid"""


class Request(NamedTuple):
    """Whom to forget, and when that was decided."""

    tenant_id: str
    subject: str
    now_us: int
    store_key: bytes


def forget(
    pool: ConnectionPool,
    tenants: Tenants,
    request: Request,
    *,
    dry_run: bool,
    lines_for: Callable[[ForgetCounts], Sequence[str]],
) -> ForgetCounts:
    """Remove a subject, or count what would be removed; log lines and removal are one transaction."""
    with pool.transaction() as connection:
        # The tenant may have no record yet but a key for the subject, or neither: the lines are kept all
        # the same.
        made = tenants.ensure(connection, [request.tenant_id])
        tid = made[request.tenant_id]
        with rows.understood(str(pool.path)):
            found, counted = _counted(connection, tid, request)
        if dry_run:
            counted = replace(counted, dry_run=True)
        else:
            with rows.understood(str(pool.path)):
                _remove(connection, tid, found, counted, request.now_us)
            counted = replace(counted, log_key_destroyed=_has_key(connection, tid, request.subject))
        # The lines may need the subject's key, so it is destroyed after they are made.
        log.append(connection, lines_for(counted), pool.path)
        if not dry_run:
            connection.execute("DELETE FROM subject_keys WHERE tid=? AND subject=?", (tid, request.subject))
            connection.execute("UPDATE meta SET value=value+1 WHERE name='forgets'")
    tenants.remember(made)
    if dry_run:
        return counted
    with pool.writer, translated(pool.path):
        return _erased(pool.get(), counted)


def _counted(connection: sqlite3.Connection, tid: int, request: Request) -> tuple[list[Doomed], ForgetCounts]:
    found = _doomed(connection, tid, request.subject)
    return found, _counts(connection, tid, found, request)


def _doomed(connection: sqlite3.Connection, tid: int, subject: str) -> list[Doomed]:
    """The subject's records and all that was derived from them, whoever that is about."""
    first = tid << TENANT_SHIFT
    values = (first, first + (1 << TENANT_SHIFT) - 1, subject, tid, subject)
    return [Doomed(*row) for row in connection.execute(_DOOMED, values)]


def _counts(
    connection: sqlite3.Connection, tid: int, found: Sequence[Doomed], request: Request
) -> ForgetCounts:
    digests: dict[str, set[str]] = {}
    for one in found:
        mark = tombstone_digest(request.store_key, request.tenant_id, one.subject, one.content)
        marks = {digest.hex() for digest in (mark, one.original) if digest is not None}
        digests.setdefault(one.memory_class, set()).update(marks)
    return ForgetCounts(
        records=sum(one.own for one in found),
        derived=sum(not one.own for one in found),
        superseded=sum(one.status == "superseded" for one in found),
        postings=sum(len(one.terms()) for one in found),
        dedup_keys=_count_dedup(connection, tid, found),
        tombstones=len(set().union(*digests.values())) if digests else 0,
        by_class=dict(sorted(Counter(one.memory_class for one in found).items())),
        digests={name: tuple(sorted(values)) for name, values in sorted(digests.items())},
    )


def _remove(
    connection: sqlite3.Connection, tid: int, found: Sequence[Doomed], counted: ForgetCounts, now_us: int
) -> None:
    """Delete every row of `found` and leave tombstones, within the caller's transaction."""
    remove(connection, tid, found)
    digests = {digest for digests in counted.digests.values() for digest in digests}
    mark(connection, tid, map(bytes.fromhex, digests), now_us)


def _has_key(connection: sqlite3.Connection, tid: int, subject: str) -> bool:
    held = "SELECT 1 FROM subject_keys WHERE tid=? AND subject=?"
    return connection.execute(held, (tid, subject)).fetchone() is not None


def _erased(connection: sqlite3.Connection, counted: ForgetCounts) -> ForgetCounts:
    """Rebuild the file without what was deleted; notes say what a concurrent reader prevented."""
    waited = connection.execute("PRAGMA busy_timeout").fetchone()[0]
    connection.execute(f"PRAGMA busy_timeout={_ERASE_WAIT_MS}")
    try:
        _truncated(connection)  # frees the log before the rebuild fills it; only the last one has to succeed
        notes = [*_rebuilt(connection), *_truncated(connection)]
    finally:
        connection.execute(f"PRAGMA busy_timeout={waited}")
    return replace(counted, notes=(*counted.notes, *notes))


def _truncated(connection: sqlite3.Connection) -> Iterable[str]:
    try:
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except sqlite3.OperationalError:
        busy = 1
    return ["a concurrent reader kept the write-ahead log from being truncated"] if busy else []


def _rebuilt(connection: sqlite3.Connection) -> Iterable[str]:
    try:
        connection.execute("VACUUM")
    except sqlite3.OperationalError as error:
        return [f"the file could not be rebuilt: {error}"]
    return []


def _count_dedup(connection: sqlite3.Connection, tid: int, found: Sequence[Doomed]) -> int:
    held = "SELECT count(*) FROM dedup WHERE tid=? AND digest=? AND rid=?"
    return sum(connection.execute(held, row).fetchone()[0] for row in dedup_rows(tid, found))
