"""What recall answers with: views of stored records for one query, never new memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.clock import microseconds
from agent_runtime_ref.contracts import Decision, ScoreBreakdown
from agent_runtime_ref.contracts.stored import MemorySource
from agent_runtime_ref.recall.candidates import RecallCandidate
from agent_runtime_ref.recall.query import Moment, RecallQuery, moment_of
from agent_runtime_ref.recall.score import LEXICAL_MILLIONTHS, RECENCY_MILLIONTHS, age_us, breakdown

__all__ = [
    "RecallHit",
    "RecallResult",
    "RecallScope",
    "score_recall_candidate",
    "stable_rank_recall_candidates",
]


@dataclass(frozen=True, slots=True)
class RecallScope:
    """Whose memory a hit is from, and of which kind it is."""

    user_scope: str
    memory_kind: str


@dataclass(frozen=True, slots=True)
class RecallHit:
    """A record as one query saw it; another query ranks and scores it anew."""

    query_id: str
    memory_id: str
    rank: int  # from 1
    snippet: str
    scope: RecallScope
    provenance: MemorySource
    score_breakdown: ScoreBreakdown
    decision_id: str | None = None  # of the governed recall that returned it

    @property
    def source(self) -> MemorySource:
        """The provenance, by its older name."""
        return self.provenance

    @property
    def score(self) -> float:
        """The total of the breakdown."""
        return self.score_breakdown.total

    @property
    def matched_terms(self) -> tuple[str, ...]:
        """The terms of the query that the record holds."""
        return self.score_breakdown.matched_terms

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as tool results show it."""
        score = self.score_breakdown
        document = {
            "memory_id": self.memory_id,
            "rank": self.rank,
            "scope": {"user_scope": self.scope.user_scope, "memory_kind": self.scope.memory_kind},
            "provenance": self.provenance.to_dict(),
            "source": self.provenance.to_dict(),
            "score": score.total,
            "score_breakdown": {
                "matched_terms": list(score.matched_terms),
                "query_term_count": score.query_term_count,
                "lexical_coverage": score.lexical_coverage,
                "recency": score.recency,
                "weights": {
                    "lexical": LEXICAL_MILLIONTHS / 1_000_000,
                    "recency": RECENCY_MILLIONTHS / 1_000_000,
                },
                "contributions": {
                    "lexical": score.lexical_contribution,
                    "recency": score.recency_contribution,
                },
                "total": score.total,
            },
        }
        if self.decision_id is not None:
            document["decision_id"] = self.decision_id
        return document


@dataclass(frozen=True, slots=True)
class RecallResult:
    """The answer to one query, with what was looked at."""

    query: RecallQuery
    hits: tuple[RecallHit, ...]
    searched_records: int  # conversation records that were looked at
    candidate_records: int  # of these, the ones that were scored
    empty_reason: str | None  # None where there are hits
    decision: Decision | None = None  # None: no policy was asked

    def to_dict(self) -> dict[str, Any]:
        """Return the result as tools hand it to a model."""
        return {
            "query": self.query.to_dict(),
            "hits": [hit.to_dict() for hit in self.hits],
            "searched_records": self.searched_records,
            "candidate_records": self.candidate_records,
            "empty_reason": self.empty_reason,
        }


def score_recall_candidate(
    query: RecallQuery, candidate: RecallCandidate, *, as_of: Moment
) -> ScoreBreakdown:
    """Return what the score of a candidate is made of at `as_of`; what is captured later counts as new."""
    return _score(query, candidate, microseconds(moment_of("as_of", as_of)))


def stable_rank_recall_candidates(
    query: RecallQuery, candidates: Sequence[RecallCandidate], *, as_of: Moment
) -> tuple[RecallHit, ...]:
    """Return every candidate as a hit, best first: total, coverage, newest, then id.

    The order depends on nothing else, least of all on the order in which records were kept.
    """
    now_us = microseconds(moment_of("as_of", as_of))
    scored = [(one, _score(query, one, now_us)) for one in candidates]
    scored.sort(key=_rank_key)
    return tuple(_hit(one, score, rank) for rank, (one, score) in enumerate(scored, start=1))


def _score(query: RecallQuery, candidate: RecallCandidate, now_us: int) -> ScoreBreakdown:
    age = age_us(now_us=now_us, created_us=microseconds(candidate.captured_at))
    return breakdown(candidate.matched_terms, len(query.terms), age)


def _rank_key(scored: tuple[RecallCandidate, ScoreBreakdown]) -> tuple[float, float, int, str]:
    one, score = scored
    return -score.total, -score.lexical_coverage, -microseconds(one.captured_at), one.record.memory_id


def _hit(candidate: RecallCandidate, score: ScoreBreakdown, rank: int) -> RecallHit:
    record = candidate.record
    return RecallHit(
        query_id=candidate.query_id,
        memory_id=record.memory_id,
        rank=rank,
        snippet=record.summary,
        scope=RecallScope(record.user_scope, record.kind.value),
        provenance=record.source,
        score_breakdown=score,
    )
