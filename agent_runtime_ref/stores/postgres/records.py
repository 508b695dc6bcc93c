"""Records as the rows of a PostgreSQL store, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.clock import microseconds
from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.stores import rows
from agent_runtime_ref.stores.attributes import TRUST_RANKS, confidence_millionths, provenance_known
from agent_runtime_ref.stores.base import Queued

_TYPES = {
    "trust_rank": "int",
    "created_us": "bigint",
    "expires_us": "bigint",
    "provenance_known": "boolean",
    "confidence_millionths": "bigint",
    "revision": "bigint",
    "derived": "boolean",
    "dedup": "bytea",
    "original": "bytea",
}
POLICY_COLUMNS = ("tenant_id", *rows.POLICY_COLUMNS)
POLICY_TYPES = tuple(_TYPES.get(name, "text") for name in POLICY_COLUMNS)
CONTENT_TYPES = dict.fromkeys(rows.SHOWN_COLUMNS, "text")
POLICY_LIST = ",".join(f"r.{name}" for name in POLICY_COLUMNS)
CONTENT_LIST = ",".join(f"t.{name}" for name in CONTENT_TYPES)
FROM = "FROM records r JOIN contents t ON t.tenant_id=r.tenant_id AND t.rid=r.rid"

_CONFIDENCE = len(POLICY_COLUMNS) + rows.SHOWN_COLUMNS.index("confidence")


@dataclass(frozen=True, slots=True)
class Insert:
    """A statement that puts many rows of one tenant: the tenant, then one list for each column."""

    sql: str

    @staticmethod
    def of(table: str, columns: Sequence[str], types: Sequence[str], *, conflict: str = "") -> Insert:
        """The statement for `table`; `conflict` says what becomes of rows that are there already."""
        lists = ",".join(f"${number}::{kind}[]" for number, kind in enumerate(types, 2))
        return Insert(
            f"INSERT INTO {table}(tenant_id,{','.join(columns)}) SELECT $1::text,u.* FROM unnest({lists}) u"
            f" {conflict}"
        )


def policy_row(record: MemoryRecord) -> tuple[Any, ...]:
    """The values of POLICY_COLUMNS after the tenant."""
    assert record.created_at is not None, "a record is given its instant before it is stored"
    return (
        record.status,
        record.memory_class,
        record.subject,
        TRUST_RANKS[record.trust_level],
        microseconds(record.created_at),
        None if record.expires_at is None else microseconds(record.expires_at),
        provenance_known(record.provenance),
        record.memory_id,
        record.key,
        confidence_millionths(record.confidence),
        record.revision,
        bool(record.derived_from),
        record.kind,
        record.source,
        record.provenance,
    )


def content_row(record: MemoryRecord, dedup: bytes | None, original: bytes | None) -> tuple[Any, ...]:
    """The values of CONTENT_COLUMNS."""
    return (
        record.content,
        record.summary,
        json.dumps(record.confidence),
        record.retention,
        rows.details_text(record),
        dedup,
        original,
    )


def shown(row: Sequence[Any], place: str) -> MemoryRecord:
    """The record of a row of POLICY_COLUMNS followed by the columns that are shown.

    Raises:
        StoreDamagedError: the row makes no record.
    """
    return rows.record(_with_number(row, place), row[0], place)


def queued(row: Sequence[Any], place: str) -> Queued:
    """The record of a row of `shown`, followed by dedup and original and the columns of its review."""
    return rows.queued(_with_number(row, place), row[0], place)


def _with_number(row: Sequence[Any], place: str) -> list[Any]:
    plain = list(row)
    with rows.understood(place):
        plain[_CONFIDENCE] = json.loads(plain[_CONFIDENCE])
    return plain
