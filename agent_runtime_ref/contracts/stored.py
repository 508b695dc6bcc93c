"""What a user's remote memory holds: records with an owner and a source, before anybody asks for them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from agent_runtime_ref.errors import RemoteMemoryValidationError
from agent_runtime_ref.resources import LOCAL_USER

__all__ = [
    "DEFAULT_USER",
    "SCHEMA_VERSION",
    "MemoryKind",
    "MemorySource",
    "StoredMemory",
    "captured",
    "user_scope_of",
]

DEFAULT_USER = LOCAL_USER

SCHEMA_VERSION = 1
_TEXTS = ("memory_id", "user_scope", "content", "summary")
_SOURCE_TEXTS = ("source_id", "source_type", "title")


class MemoryKind(StrEnum):
    """What a record is to whoever looks for it."""

    CONVERSATION = "conversation"  # found by recall
    PROFILE = "profile"  # a snapshot; the latest is shown when a conversation begins
    RETRACTION = "retraction"  # takes back another record


@dataclass(frozen=True, slots=True)
class MemorySource:
    """Where a record came from."""

    source_id: str  # of the transcript or snapshot
    source_type: str
    title: str
    captured_at: str  # when it happened, RFC 3339 with a zone; not when it was kept

    def to_dict(self) -> dict[str, str]:
        """Return the source as a mapping, in the order of its fields."""
        # By hand: `asdict` copies deeply, which took a third of an append.
        return {
            "source_id": self.source_id,
            "source_type": self.source_type,
            "title": self.title,
            "captured_at": self.captured_at,
        }


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """One record of a user's remote memory, as it was appended."""

    memory_id: str
    user_scope: str
    kind: MemoryKind
    content: str
    summary: str
    source: MemorySource
    stored_at: str  # when it was kept
    schema_version: int = SCHEMA_VERSION
    retracts: str | None = None  # of a retraction: the record that it takes back

    def to_dict(self) -> dict[str, Any]:
        """Return the record as the mapping that a line of the file holds."""
        document: dict[str, Any] = {
            "memory_id": self.memory_id,
            "user_scope": self.user_scope,
            "kind": self.kind.value,
            "content": self.content,
            "summary": self.summary,
            "source": self.source.to_dict(),
            "stored_at": self.stored_at,
            "schema_version": self.schema_version,
        }
        if self.retracts is not None:
            document["retracts"] = self.retracts
        return document

    @classmethod
    def from_dict(cls, document: object) -> StoredMemory:
        """Return the checked record of a mapping.

        Raises:
            RemoteMemoryValidationError: a field is missing, of the wrong type, blank or no instant.
        """
        if not isinstance(document, Mapping):
            raise RemoteMemoryValidationError("the record must be a mapping")
        kind = document.get("kind")
        if kind not in tuple(MemoryKind):
            known = ", ".join(MemoryKind)
            raise RemoteMemoryValidationError(f"kind must be one of {known}")
        record = cls(
            **{name: document.get(name) for name in (*_TEXTS, "stored_at")},  # type: ignore[arg-type]
            kind=MemoryKind(kind),
            source=_source(document.get("source")),
            schema_version=document.get("schema_version", SCHEMA_VERSION),
            retracts=document.get("retracts"),
        )
        record.check()
        return record

    def check(self) -> None:
        """Return if the record is one.

        Raises:
            RemoteMemoryValidationError: a field is of the wrong type, blank or no instant.
        """
        if type(self.schema_version) is not int or self.schema_version != SCHEMA_VERSION:
            raise RemoteMemoryValidationError(
                f"schema_version {self.schema_version!r} is not known here; {SCHEMA_VERSION} is"
            )
        for name in _TEXTS:
            _require_text(name, getattr(self, name))
        if not isinstance(self.source, MemorySource):
            raise RemoteMemoryValidationError("source must be a MemorySource")
        for name in _SOURCE_TEXTS:
            _require_text(name, getattr(self.source, name))
        captured("captured_at", self.source.captured_at)
        captured("stored_at", self.stored_at)
        if (self.kind is MemoryKind.RETRACTION) != (self.retracts is not None):
            raise RemoteMemoryValidationError("retracts is for a retraction, and names its target")
        if self.retracts is not None:
            _require_text("retracts", self.retracts)


def user_scope_of(user_id: str) -> str:
    """Return what stands for a user in file names and records: 16 hex digits of a digest of the id.

    A digest, so that ids with separators, `..` or upper case never name each other's files.

    Raises:
        RemoteMemoryValidationError: the id is blank or no text.
    """
    if type(user_id) is not str or not user_id.strip():
        raise RemoteMemoryValidationError("user_id must not be empty")
    return hashlib.sha256(user_id.strip().encode("utf-8", "surrogatepass")).hexdigest()[:16]


def captured(name: str, text: object) -> datetime:
    """Return the instant of an RFC 3339 text with a zone, in UTC.

    Raises:
        RemoteMemoryValidationError: it is none; the message says `invalid timestamp`.
    """
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
        if moment is not None and moment.tzinfo is not None and "T" in str(text).upper():
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise RemoteMemoryValidationError(
        f"{name} has an invalid timestamp; write it with a zone, as 2026-08-01T12:00:00Z"
    )


def _source(document: object) -> MemorySource:
    if not isinstance(document, Mapping):
        raise RemoteMemoryValidationError("source must be a mapping with source_id, source_type and title")
    return MemorySource(
        **{name: document.get(name) for name in (*_SOURCE_TEXTS, "captured_at")}  # type: ignore[arg-type]
    )


def _require_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise RemoteMemoryValidationError(f"{name} must be a string")
    if not value.strip():
        raise RemoteMemoryValidationError(f"{name} must not be empty")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise RemoteMemoryValidationError(f"{name} must be Unicode text, without lone surrogates") from None
