"""What a governed read answers: the document, and the hits behind it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref import validation
from agent_runtime_ref.contracts.decision import Decision
from agent_runtime_ref.contracts.record import MemoryRecord

__all__ = ["Hit", "RetrievalResult", "ScoreBreakdown"]


@dataclass(frozen=True, slots=True)
class ScoreBreakdown:
    """What a score is made of; numbers are rounded to six decimals and computed from integers."""

    matched_terms: tuple[str, ...]
    query_term_count: int
    lexical_coverage: float
    recency: float
    lexical_contribution: float
    recency_contribution: float
    total: float

    def to_document(self) -> dict[str, Any]:
        """Return the breakdown as a mapping of plain values."""
        return {
            "matched_terms": list(self.matched_terms),
            "query_term_count": self.query_term_count,
            "lexical_coverage": self.lexical_coverage,
            "recency": self.recency,
            "lexical_contribution": self.lexical_contribution,
            "recency_contribution": self.recency_contribution,
            "total": self.total,
        }


@dataclass(frozen=True, slots=True)
class Hit:
    """A record as one query saw it: a view, never a new memory."""

    record: MemoryRecord
    rank: int  # from 1
    score_breakdown: ScoreBreakdown | None  # None: the query had no text
    provenance: str

    def to_document(self) -> dict[str, Any]:
        """Return the hit as a mapping of plain values, with the record's document."""
        score = self.score_breakdown
        return {
            "rank": self.rank,
            "provenance": self.provenance,
            "score_breakdown": None if score is None else score.to_document(),
            "record": self.record.to_document(),
        }


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """The answer of the read gate; `document` is the retrieval_result, valid against its schema."""

    document: Mapping[str, Any]
    hits: tuple[Hit, ...]
    exclusions: Mapping[str, int]  # records kept out, by reason; sums to the document's excluded_records
    decision: Decision | None  # None: read from a document, which names its decision by id
    underfilled: bool

    def to_document(self) -> dict[str, Any]:
        """Return a copy of the retrieval_result document."""
        return deepcopy(dict(self.document))

    @classmethod
    def from_document(cls, source: object) -> RetrievalResult:
        """Return the result of a document, a mapping or the path of a file; hits it only names."""
        document = validation.load_document(source, schema="retrieval_result")
        exclusions = dict(document.get("exclusions", {}))
        return cls(document, (), exclusions, None, document.get("underfilled", False))
