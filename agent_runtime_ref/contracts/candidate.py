"""What a writer offers to the write gate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agent_runtime_ref import validation
from agent_runtime_ref.contracts.parts import frozen_list, listed
from agent_runtime_ref.contracts.record import Origin, origin_part

__all__ = ["MemoryCandidate"]

_SCHEMA = "memory_candidate"


@dataclass(frozen=True, slots=True)
class MemoryCandidate:
    """A memory that wants to be kept; trust, retention and status are not its own to claim.

    Raises:
        DocumentTypeError, DocumentValueError: with the documented sentence.
    """

    tenant_id: str
    memory_class: str
    kind: str
    content: str
    source: str
    confidence: float
    provenance: str
    revision_mode: str = "append"
    key: str | None = field(default=None, kw_only=True)
    subject: str | None = field(default=None, kw_only=True)
    summary: str | None = field(default=None, kw_only=True)
    origin: Origin | None = field(default=None, kw_only=True)
    derived_from: tuple[str, ...] = field(default=(), kw_only=True)
    scope: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "derived_from", frozen_list(self.derived_from))
        object.__setattr__(self, "scope", frozen_list(self.scope))
        validation.check(_SCHEMA, self.to_document())

    def to_document(self) -> dict[str, Any]:
        """Return the memory_candidate document; what stands at its default is left out."""
        document: dict[str, Any] = {
            "tenant_id": self.tenant_id,
            "memory_class": self.memory_class,
            "kind": self.kind,
            "content": self.content,
            "source": self.source,
            "confidence": self.confidence,
            "provenance": self.provenance,
        }
        if self.revision_mode != "append":
            document["revision_mode"] = self.revision_mode
        if self.key is not None:
            document["key"] = self.key
        if self.subject is not None:
            document["subject"] = self.subject
        if self.summary is not None:
            document["summary"] = self.summary
        if self.origin is not None:
            document["origin"] = origin_part(self.origin)
        if self.derived_from != ():
            document["derived_from"] = listed(self.derived_from)
        if self.scope != ():
            document["scope"] = listed(self.scope)
        return document

    @classmethod
    def from_document(cls, source: object) -> MemoryCandidate:
        """Return the candidate of a memory_candidate document: a mapping, or the path of a file."""
        document = validation.load_document(source, schema=_SCHEMA)
        return cls(
            document["tenant_id"],
            document["memory_class"],
            document["kind"],
            document["content"],
            document["source"],
            document["confidence"],
            document["provenance"],
            document.get("revision_mode", "append"),
            key=document.get("key"),
            subject=document.get("subject"),
            summary=document.get("summary"),
            origin=Origin.from_checked(document.get("origin")),
            derived_from=tuple(document.get("derived_from", ())),
            scope=tuple(document.get("scope", ())),
        )
