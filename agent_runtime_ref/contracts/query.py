"""The whole context of one governed read; the text searched for is never part of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agent_runtime_ref import validation
from agent_runtime_ref.contracts.parts import frozen_list, listed

__all__ = ["RetrievalQuery"]

_SCHEMA = "retrieval_query"
_SELECTORS = ("kinds", "sources", "keys", "record_ids")


@dataclass(frozen=True, slots=True)
class RetrievalQuery:
    """Who reads, why, what at most.

    Raises:
        DocumentTypeError, DocumentValueError: with the documented sentence.
    """

    trace_id: str
    session_id: str
    tenant_id: str
    principal_id: str
    purpose: str
    allowed_classes: tuple[str, ...]
    limit: int
    trust_min: str | None = None
    max_age_days: int | None = None
    require_provenance: bool = False
    subject: str | None = None
    kinds: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    record_ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("allowed_classes", *_SELECTORS):
            object.__setattr__(self, name, frozen_list(getattr(self, name)))
        validation.check(_SCHEMA, self.to_document())

    def to_document(self) -> dict[str, Any]:
        """Return the retrieval_query document; optional parts are left out where they are absent."""
        document: dict[str, Any] = {
            "kind": _SCHEMA,
            "trace_id": self.trace_id,
            "session_id": self.session_id,
            "tenant_id": self.tenant_id,
            "principal_id": self.principal_id,
            "purpose": self.purpose,
            "allowed_classes": listed(self.allowed_classes),
        }
        filters = self._filters()
        if filters:
            document["filters"] = filters
        document["limit"] = self.limit
        if self.subject is not None:
            document["subject"] = self.subject
        for name in _SELECTORS:
            if getattr(self, name) != ():
                document[name] = listed(getattr(self, name))
        return document

    def _filters(self) -> dict[str, Any]:
        """Return the filters that are set."""
        filters: dict[str, Any] = {}
        if self.trust_min is not None:
            filters["trust_min"] = self.trust_min
        if self.max_age_days is not None:
            filters["max_age_days"] = self.max_age_days
        if self.require_provenance is not False:
            filters["require_provenance"] = self.require_provenance
        return filters

    @classmethod
    def from_document(cls, source: object) -> RetrievalQuery:
        """Return the query of a retrieval_query document: a mapping, or the path of a file."""
        document = validation.load_document(source, schema=_SCHEMA)
        filters = document.get("filters", {})
        return cls(
            document["trace_id"],
            document["session_id"],
            document["tenant_id"],
            document["principal_id"],
            document["purpose"],
            tuple(document["allowed_classes"]),
            document["limit"],
            trust_min=filters.get("trust_min"),
            max_age_days=filters.get("max_age_days"),
            require_provenance=filters.get("require_provenance", False),
            subject=document.get("subject"),
            **{name: tuple(document.get(name, ())) for name in _SELECTORS},
        )
