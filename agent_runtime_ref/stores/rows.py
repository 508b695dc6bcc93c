"""Rows of a store as records and as candidate documents, whichever database they come out of.

A row begins with the values of POLICY_COLUMNS in this order; the first one names the tenant in the store's
own way and is not looked at here.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from agent_runtime_ref.clock import instant
from agent_runtime_ref.contracts import MemoryRecord, Origin
from agent_runtime_ref.errors import StoreDamagedError
from agent_runtime_ref.stores.attributes import TRUST_LEVELS
from agent_runtime_ref.stores.base import Queued, Waiting

# A search looks at columns in this order: SQLite decodes a row from the left.
POLICY_COLUMNS = (
    "status",
    "memory_class",
    "subject",
    "trust_rank",
    "created_us",
    "expires_us",
    "provenance_known",
    "memory_id",
    "key",
    "confidence_millionths",
    "revision",
    "derived",
    "kind",
    "source",
    "provenance",
)
# Every cell of an answer costs about as much as a step of the search, so what few records have shares one.
SHOWN_COLUMNS = ("content", "summary", "confidence", "retention", "details")
CONTENT_COLUMNS = (*SHOWN_COLUMNS, "dedup", "original")

_WIDTH = 1 + len(POLICY_COLUMNS)
_NOT_OURS = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError)


@contextmanager
def understood(place: str, what: str = "a record") -> Iterator[None]:
    """Turn whatever goes wrong with a value that this package never wrote into what it documents."""
    try:
        yield
    except _NOT_OURS as error:
        # Without the cause: it may quote the content.
        raise StoreDamagedError(place, f"{what} cannot be read ({type(error).__name__})") from None


def attributes(row: Sequence[Any], tenant_id: str, place: str, *, outranked: bool) -> dict[str, Any]:
    """The candidate document of a row of POLICY_COLUMNS.

    Raises:
        StoreDamagedError: a value is of another type than was ever written.
    """
    expires_us = row[6]
    if not (
        row[4] in TRUST_LEVELS
        and type(row[5]) is type(row[10]) is type(row[11]) is int
        and (expires_us is None or type(expires_us) is int)
        and type(row[8]) is str
    ):
        raise StoreDamagedError(place, f"record {row[8]!r} has values of another type")
    return {
        "record_id": row[8],
        "tenant_id": tenant_id,
        "subject": row[3],
        "memory_class": row[2],
        "kind": row[13],
        "key": row[9],
        "source": row[14],
        "provenance": row[15],
        "provenance_known": bool(row[7]),
        "trust_rank": row[4],
        "confidence_millionths": row[10],
        "created_ns": row[5] * 1000,
        "expires_ns": None if expires_us is None else expires_us * 1000,
        "status": row[1],
        "revision": row[11],
        "outranked": outranked,
        "derived": bool(row[12]),
    }


def record(row: Sequence[Any], tenant_id: str, place: str) -> MemoryRecord:
    """The record of a row of POLICY_COLUMNS followed by SHOWN_COLUMNS.

    Raises:
        StoreDamagedError: the row makes no record.
    """
    with understood(place, f"record {row[8]!r}"):
        return _record(row, tenant_id)


def queued(row: Sequence[Any], tenant_id: str, place: str) -> Queued:
    """The record of a row of `record`, followed by dedup and original and the columns of its review.

    Raises:
        StoreDamagedError: the row makes no such record.
    """
    dedup, original, principal, agent, replaces = row[-5:]
    blobs = (dedup, original, principal, agent)
    if not all(one is None or type(one) is bytes for one in blobs) or replaces not in (None, 0, 1):
        raise StoreDamagedError(place, f"what is kept for the review of {row[8]!r} has another type")
    waiting = None if principal is None else Waiting(principal, agent, bool(replaces))
    return Queued(record(row[:-5], tenant_id, place), waiting, dedup, original)


def _record(row: Sequence[Any], tenant_id: str) -> MemoryRecord:
    content, summary, confidence, retention, more = row[_WIDTH : _WIDTH + 5]
    origin, derived_from, scope = details(more)
    return MemoryRecord(
        memory_id=row[8],
        tenant_id=tenant_id,
        memory_class=row[2],
        kind=row[13],
        content=content,
        source=row[14],
        confidence=confidence,
        provenance=row[15],
        revision=row[11],
        subject=row[3],
        key=row[9],
        summary=summary,
        origin=origin,
        trust_level=TRUST_LEVELS[row[4]],
        created_at=instant(row[5]),
        retention=retention,
        expires_at=None if row[6] is None else instant(row[6]),
        status=row[1],
        derived_from=derived_from,
        scope=scope,
    )


def details(text: str | None) -> tuple[Origin | None, tuple[str, ...], tuple[str, ...]]:
    """Origin, ids of the records it was derived from, and labels; what most records have none of."""
    if text is None:
        return None, (), ()
    origin, derived_from, scope = json.loads(text)
    if origin is not None:
        source_id, source_type, title, captured_at = origin
        origin = Origin(source_id, source_type, title, datetime.fromisoformat(captured_at))
    return origin, tuple(derived_from), tuple(scope)


def details_text(record: MemoryRecord) -> str | None:
    """What `details` reads; None where the record has none of it."""
    origin = record.origin
    if origin is None and not record.derived_from and not record.scope:
        return None
    origin_parts = origin and (
        origin.source_id,
        origin.source_type,
        origin.title,
        origin.captured_at.isoformat(),
    )
    return json.dumps([origin_parts, record.derived_from, record.scope], ensure_ascii=False)
