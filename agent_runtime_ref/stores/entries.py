"""An entry as a document, for stores that keep one as JSON, and back again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.errors import GovernanceError
from agent_runtime_ref.stores.base import Waiting
from agent_runtime_ref.stores.memory_tenant import Entry

# What a value that this package never wrote may raise on its way into an entry.
NOT_OURS = (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, GovernanceError)


def entry_document(
    record: MemoryRecord, dedup: bytes | None, original: bytes | None, waiting: Waiting | None
) -> dict[str, Any]:
    """The document of an entry; what it does not have is left out."""
    document: dict[str, Any] = {"record": record.to_document()}
    if dedup is not None:
        document["dedup"] = dedup.hex()
    if original is not None:
        document["original"] = original.hex()
    if waiting is not None and record.status == "quarantined":
        agent = None if waiting.agent is None else waiting.agent.hex()
        document["waiting"] = [waiting.principal.hex(), agent, waiting.replaces]
    return document


def entry_of(document: Mapping[str, Any]) -> Entry:
    """The entry of a document; one that was never written raises one of NOT_OURS."""
    record = MemoryRecord.from_checked(document["record"])
    if record.created_at is None:
        raise ValueError("a record is given its instant before it is stored")
    waiting = document.get("waiting")
    kept = (
        None if waiting is None else Waiting(bytes.fromhex(waiting[0]), _bytes(waiting[1]), bool(waiting[2]))
    )
    return Entry.of(record, _bytes(document.get("dedup")), _bytes(document.get("original")), kept)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
