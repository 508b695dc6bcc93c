"""Another ranker behind the same contract: BM25 over the candidates, and meaning where a model is given.

Whatever it counts (how many records hold a term, how long they are) it counts over the candidates it is
given, and a governed recall gives it none but what the policy admits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from agent_runtime_ref.clock import microseconds
from agent_runtime_ref.contracts.stored import StoredMemory, captured
from agent_runtime_ref.errors import RemoteMemoryScopeError
from agent_runtime_ref.recall.analysis import record_terms, record_tokens
from agent_runtime_ref.recall.candidates import RecallCandidate, active_conversations
from agent_runtime_ref.recall.embedding import Embedder, Vectors, similarity
from agent_runtime_ref.recall.hits import RecallHit, score_recall_candidate, stable_rank_recall_candidates
from agent_runtime_ref.recall.query import Moment, RecallQuery
from agent_runtime_ref.recall.score import LEXICAL_MILLIONTHS

__all__ = ["HybridRanker"]

# The usual values of BM25: how soon more of the same term counts no more, and how much length counts.
K1 = 1.2
B = 0.75
# Of the packaged model, whose cosines all lie between 0.7 and 1: below this, texts have nothing in common.
SIMILARITY_FLOOR = 0.80
MEANING_SHARE = 0.8
_MILLION = 1_000_000


class HybridRanker:
    """BM25, and with an embedder a fifth of it and four fifths of the similarity of meaning. Thread-safe.

    The score of a hit is 0.85 of its relevance and 0.15 of its recency; coverage and matched terms are what
    they are for the lexical ranker. `floor` is the similarity from which a record that shares no term is
    found, and from which similarity counts.
    """

    def __init__(self, embed: Embedder | None = None, *, floor: float = SIMILARITY_FLOOR) -> None:
        if not -1 <= floor < 1:
            raise ValueError("floor must be a cosine below 1")
        self._vectors = None if embed is None else Vectors(embed)
        self._floor = floor

    @property
    def finds_by_meaning(self) -> bool:
        """Whether a record that shares no term with the query may be found."""
        return self._vectors is not None

    def find(
        self, query: RecallQuery, records: Sequence[StoredMemory]
    ) -> tuple[Sequence[RecallCandidate], int]:
        """Return the conversations that share a term or a meaning, and how many were looked at.

        Raises:
            RemoteMemoryScopeError: a record belongs to another user than the query.
        """
        active = active_conversations(records)
        for record in active:
            if record.user_scope != query.user_scope:
                raise RemoteMemoryScopeError(f"record `{record.memory_id}` belongs to another user scope")
        near = self._similarities(query, active)
        found = []
        for record, meaning in zip(active, near, strict=True):
            terms = record_terms(record.summary, record.content)
            matched = tuple(term for term in query.terms if term in terms)
            if matched or meaning > 0:
                moment = captured("captured_at", record.source.captured_at)
                found.append(RecallCandidate(query.query_id, record, tuple(sorted(terms)), matched, moment))
        return tuple(found), len(active)

    def rank(
        self, query: RecallQuery, candidates: Sequence[RecallCandidate], *, as_of: Moment
    ) -> tuple[RecallHit, ...]:
        """Return every candidate as a hit, best first: total, coverage, newest, then id."""
        relevances = self._relevances(query, candidates)
        plain = {hit.memory_id: hit for hit in stable_rank_recall_candidates(query, candidates, as_of=as_of)}
        scored = []
        for candidate, relevance in zip(candidates, relevances, strict=True):
            score = score_recall_candidate(query, candidate, as_of=as_of)
            lexical = _rounded(LEXICAL_MILLIONTHS * relevance, _MILLION)
            total = lexical + round(score.recency_contribution * _MILLION)
            fused = replace(score, lexical_contribution=lexical / _MILLION, total=total / _MILLION)
            key = (-total, -len(candidate.matched_terms), -microseconds(candidate.captured_at))
            scored.append((*key, candidate.record.memory_id, fused))
        scored.sort(key=lambda one: one[:4])
        return tuple(
            replace(plain[memory_id], rank=rank, score_breakdown=fused)
            for rank, (*_, memory_id, fused) in enumerate(scored, start=1)
        )

    def _relevances(self, query: RecallQuery, candidates: Sequence[RecallCandidate]) -> list[int]:
        """Return how well each candidate answers, in millionths."""
        words = _shares(bm25(query.terms, [one.record for one in candidates]))
        if self._vectors is None:
            return words
        near = self._similarities(query, [one.record for one in candidates])
        return [
            round((1 - MEANING_SHARE) * word + MEANING_SHARE * meaning * _MILLION)
            for word, meaning in zip(words, near, strict=True)
        ]

    def _similarities(self, query: RecallQuery, records: Sequence[StoredMemory]) -> list[float]:
        """Return how near each record is to the query, 0 for the floor and below, 1 for the same."""
        if self._vectors is None or not records:
            return [0.0] * len(records)
        [asked] = self._vectors.of([query.text], query=True)
        held = self._vectors.of([f"{one.summary}\n{one.content}" for one in records], query=False)
        spread = 1 - self._floor
        return [round(min(max((similarity(asked, one) - self._floor) / spread, 0.0), 1.0), 6) for one in held]


def bm25(terms: Sequence[str], records: Sequence[StoredMemory]) -> list[float]:
    """Return the BM25 score of each record for the terms, with the statistics of these records."""
    counts = [Counter(record_tokens(one.summary, one.content)) for one in records]
    lengths = [count.total() for count in counts]
    mean = (sum(lengths) / len(lengths) if lengths else 0.0) or 1.0
    weights = {}
    for term in terms:
        holding = sum(term in count for count in counts)
        weights[term] = math.log(1 + (len(counts) - holding + 0.5) / (holding + 0.5))
    return [
        math.fsum(
            weights[term] * count[term] * (K1 + 1) / (count[term] + K1 * (1 - B + B * length / mean))
            for term in terms
            if term in count
        )
        for count, length in zip(counts, lengths, strict=True)
    ]


def _shares(scores: Sequence[float]) -> list[int]:
    """Return each score as millionths of the best."""
    best = max(scores, default=0.0)
    return [round(_MILLION * score / best) if best else 0 for score in scores]


def _rounded(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)
