"""Take records out of every table that knows of them, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent_runtime_ref.stores.postgres.records import Insert
from agent_runtime_ref.stores.postgres.session import Session

_BY_ID = "SELECT rid FROM records WHERE tenant_id=$1 AND memory_id=ANY($2)"
_TABLES = ("postings", "derivations", "dedup", "quarantine", "contents", "records")
_MARK = Insert.of(
    "tombstones",
    ("digest", "at_us"),
    ("bytea", "bigint"),
    conflict="ON CONFLICT (tenant_id,digest) DO UPDATE SET at_us=excluded.at_us",
)


def remove(session: Session, tenant_id: str, rids: Sequence[int]) -> dict[str, int]:
    """Delete every row about the records of these numbers; how many, by table."""
    return {
        table: session.run(f"DELETE FROM {table} WHERE tenant_id=$1 AND rid=ANY($2)", (tenant_id, rids))
        for table in _TABLES
    }


def remove_by_id(session: Session, tenant_id: str, memory_ids: Sequence[str]) -> None:
    """Delete every row of those records that are there."""
    remove(session, tenant_id, [row[0] for row in session.rows(_BY_ID, (tenant_id, memory_ids))])


def mark(session: Session, tenant_id: str, digests: Iterable[bytes], now_us: int) -> None:
    """Leave a tombstone for each digest."""
    ordered = sorted(set(digests))
    if ordered:
        session.run(_MARK.sql, (tenant_id, ordered, [now_us] * len(ordered)))
