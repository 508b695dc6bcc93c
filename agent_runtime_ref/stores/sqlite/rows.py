"""Records as the rows of a SQLite file."""

from typing import Any

from agent_runtime_ref.clock import microseconds
from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.stores.attributes import TRUST_RANKS, confidence_millionths, provenance_known
from agent_runtime_ref.stores.rows import attributes, details, details_text, queued, record, understood
from agent_runtime_ref.stores.sqlite.schema import POLICY_COLUMNS, SHOWN_COLUMNS

__all__ = [
    "CONTENT_LIST",
    "POLICY_LIST",
    "attributes",
    "content_row",
    "details",
    "policy_row",
    "queued",
    "record",
    "understood",
]

POLICY_LIST = ",".join(f"r.{name}" for name in POLICY_COLUMNS)
CONTENT_LIST = ",".join(f"t.{name}" for name in SHOWN_COLUMNS)


def policy_row(one: MemoryRecord, tid: int) -> tuple[Any, ...]:
    """The values of POLICY_COLUMNS."""
    assert one.created_at is not None, "a record is given its instant before it is stored"
    return (
        tid,
        one.status,
        one.memory_class,
        one.subject,
        TRUST_RANKS[one.trust_level],
        microseconds(one.created_at),
        None if one.expires_at is None else microseconds(one.expires_at),
        int(provenance_known(one.provenance)),
        one.memory_id,
        one.key,
        confidence_millionths(one.confidence),
        one.revision,
        int(bool(one.derived_from)),
        one.kind,
        one.source,
        one.provenance,
    )


def content_row(one: MemoryRecord, dedup: bytes | None, original: bytes | None) -> tuple[Any, ...]:
    """The values of CONTENT_COLUMNS."""
    return (
        one.content,
        one.summary,
        one.confidence,
        one.retention,
        details_text(one),
        dedup,
        original,
    )
