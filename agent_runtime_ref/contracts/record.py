"""The durable record, and the document by which it is exchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agent_runtime_ref import validation
from agent_runtime_ref.contracts.parts import frozen_list, in_utc, instant_of, listed, text_of

__all__ = ["MemoryRecord", "Origin"]

_SCHEMA = "memory_record"
# Stands in a document for an origin of the wrong type: a mapping would pass although the attribute is none.
_NO_ORIGIN = False
# The document's names, where the record's own differ.
_FIELDS = {"record_id": "memory_id", "record_kind": "kind", "value": "content"}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a memory was taken from, and when that happened: never when it was kept."""

    source_id: str
    source_type: str
    title: str
    captured_at: datetime  # aware

    def to_document(self) -> dict[str, Any]:
        """Return the `origin` part of a document."""
        return {
            "source_id": self.source_id,
            "source_type": self.source_type,
            "title": self.title,
            "captured_at": text_of(self.captured_at),
        }

    @classmethod
    def from_checked(cls, part: Mapping[str, Any] | None) -> Origin | None:
        """Return the origin of a document that has been checked."""
        if part is None:
            return None
        captured_at = instant_of(part["captured_at"])
        assert captured_at is not None
        return cls(part["source_id"], part["source_type"], part["title"], captured_at)


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """One record of the memory layer, as it is kept.

    Raises:
        DocumentTypeError, DocumentValueError: with the documented sentence and this class's own names.
    """

    memory_id: str
    tenant_id: str
    memory_class: str  # any name: the policy decides on the ones that it does not know
    kind: str
    content: str
    source: str
    confidence: float  # 0 to 1
    provenance: str
    revision: int  # from 1
    subject: str | None = None
    key: str | None = None
    summary: str | None = None
    origin: Origin | None = None
    trust_level: str = "low"  # assigned by the write policy
    created_at: datetime | None = None  # aware, UTC; when it was kept
    retention: str | None = None
    expires_at: datetime | None = None  # aware, UTC
    status: str = "active"
    derived_from: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("created_at", "expires_at"):
            moment = getattr(self, name)
            if moment is not None and isinstance(moment, datetime) and moment.tzinfo not in (None, UTC):
                object.__setattr__(self, name, in_utc(moment))
        object.__setattr__(self, "derived_from", frozen_list(self.derived_from))
        object.__setattr__(self, "scope", frozen_list(self.scope))
        validation.check(_SCHEMA, self.to_document(), fields=_FIELDS)

    def to_document(self) -> dict[str, Any]:
        """Return the memory_record document; what stands at its default is left out."""
        document: dict[str, Any] = {
            "kind": _SCHEMA,
            "record_id": self.memory_id,
            "tenant_id": self.tenant_id,
            "memory_class": self.memory_class,
        }
        if self.kind != default_kind(self.memory_class):
            document["record_kind"] = self.kind
        if self.key is not None:
            document["key"] = self.key
        document["value"] = self.content
        document["source"] = self.source
        if self.confidence != 0.5:
            document["confidence"] = self.confidence
        document["provenance"] = self.provenance
        document["revision"] = self.revision
        document["trust_level"] = self.trust_level
        if self.created_at is not None:
            document["created_at"] = text_of(self.created_at)
        if self.retention is not None:
            document["retention"] = self.retention
        self._add_rarer(document)
        return document

    def _add_rarer(self, document: dict[str, Any]) -> None:
        """Add the parts that most records do not have."""
        if self.subject is not None:
            document["subject"] = self.subject
        if self.summary is not None:
            document["summary"] = self.summary
        if self.origin is not None:
            document["origin"] = origin_part(self.origin)
        if self.expires_at is not None:
            document["expires_at"] = text_of(self.expires_at)
        if self.status != "active":
            document["status"] = self.status
        if self.derived_from != ():
            document["derived_from"] = listed(self.derived_from)
        if self.scope != ():
            document["scope"] = listed(self.scope)

    @classmethod
    def from_document(cls, source: object) -> MemoryRecord:
        """Return the record of a memory_record document: a mapping, or the path of a file."""
        return cls.from_checked(validation.load_document(source, schema=_SCHEMA))

    @classmethod
    def from_checked(cls, document: Mapping[str, Any]) -> MemoryRecord:
        """Return the record of a document that has all that must be there; the record checks the rest."""
        memory_class = document["memory_class"]
        return cls(
            document["record_id"],
            document["tenant_id"],
            memory_class,
            document.get("record_kind", default_kind(memory_class)),
            document["value"],
            document["source"],
            document.get("confidence", 0.5),
            document["provenance"],
            document["revision"],
            subject=document.get("subject"),
            key=document.get("key"),
            summary=document.get("summary"),
            origin=Origin.from_checked(document.get("origin")),
            trust_level=document["trust_level"],
            created_at=instant_of(document.get("created_at")),
            retention=document.get("retention"),
            expires_at=instant_of(document.get("expires_at")),
            status=document.get("status", "active"),
            derived_from=tuple(document.get("derived_from", ())),
            scope=tuple(document.get("scope", ())),
        )


def origin_part(origin: object) -> object:
    """Return the `origin` part of a document; what is no origin stays, for the schema to refuse."""
    return origin.to_document() if isinstance(origin, Origin) else _NO_ORIGIN


def default_kind(memory_class: object) -> str:
    """Return the kind that a document without `record_kind` is of."""
    if memory_class == "profile":
        return "preference"
    return "validated_fact" if memory_class == "long_term" else "working_note"
