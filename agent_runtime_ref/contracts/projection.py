"""Stored memories as records of the memory layer, and records as stored memories: one projection, both ways.

What a user's remote memory holds becomes records of one tenant about that user: conversations in the class
`long_term`, snapshots in `profile`, each with its source as origin. Nothing is lost on the way but how an
instant was spelt: both directions write UTC.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from agent_runtime_ref.contracts.candidate import MemoryCandidate
from agent_runtime_ref.contracts.parts import text_of
from agent_runtime_ref.contracts.record import MemoryRecord, Origin
from agent_runtime_ref.contracts.stored import MemoryKind, MemorySource, StoredMemory, captured
from agent_runtime_ref.errors import RemoteMemoryValidationError

__all__ = [
    "CONVERSATION",
    "CONVERSATION_CLASS",
    "PROFILE_CLASS",
    "PROFILE_SNAPSHOT",
    "candidate_of",
    "happened_at",
    "source_of",
    "stored_of",
]

CONVERSATION = "conversation"
PROFILE_SNAPSHOT = "profile_snapshot"
CONVERSATION_CLASS = "long_term"
PROFILE_CLASS = "profile"
# A user's own service kept them; the write policy says how far that is trusted.
SOURCE = "trusted_service"
CONFIDENCE = 0.5


class _Shape(NamedTuple):
    memory_class: str
    kind: str


_SHAPES = {
    MemoryKind.CONVERSATION: _Shape(CONVERSATION_CLASS, CONVERSATION),
    MemoryKind.PROFILE: _Shape(PROFILE_CLASS, PROFILE_SNAPSHOT),
}
_KINDS = {shape.kind: kind for kind, shape in _SHAPES.items()}


def candidate_of(stored: StoredMemory, *, tenant_id: str, subject: str) -> MemoryCandidate:
    """Return what is offered to the write gate for a stored memory; its id and instant go beside it.

    Raises:
        RemoteMemoryValidationError: a retraction is no memory.
    """
    shape = _SHAPES.get(stored.kind)
    if shape is None:
        raise RemoteMemoryValidationError(f"`{stored.memory_id}` takes a memory back and is none itself")
    source = stored.source
    return MemoryCandidate(
        tenant_id,
        shape.memory_class,
        shape.kind,
        stored.content,
        SOURCE,
        CONFIDENCE,
        source.source_id,
        subject=subject,
        summary=stored.summary,
        origin=Origin(
            source.source_id,
            source.source_type,
            source.title,
            captured("captured_at", source.captured_at),
        ),
    )


def stored_of(record: MemoryRecord, *, user_scope: str) -> StoredMemory:
    """Return a conversation or snapshot as its user's stored memory.

    A record that was written without a summary shows its content, one without an origin its provenance.

    Raises:
        RemoteMemoryValidationError: the record is of another kind.
    """
    kind = _KINDS.get(record.kind)
    if kind is None:
        known = ", ".join(_KINDS)
        raise RemoteMemoryValidationError(f"kind of `{record.memory_id}` must be one of {known}")
    assert record.created_at is not None, "a record is given its instant before it is stored"
    return StoredMemory(
        memory_id=record.memory_id,
        user_scope=user_scope,
        kind=kind,
        content=record.content,
        summary=record.content if record.summary is None else record.summary,
        source=source_of(record),
        stored_at=str(text_of(record.created_at)),
    )


def source_of(record: MemoryRecord) -> MemorySource:
    """Return where a record came from; without an origin, what its provenance and source tell."""
    origin, happened = record.origin, str(text_of(happened_at(record)))
    if origin is None:
        return MemorySource(record.provenance, record.source, record.kind, happened)
    return MemorySource(origin.source_id, origin.source_type, origin.title, happened)


def happened_at(record: MemoryRecord) -> datetime:
    """Return when what a record tells happened; where nobody said, when it was kept."""
    moment = record.created_at if record.origin is None else record.origin.captured_at
    assert moment is not None, "a record is given its instant before it is stored"
    return moment
