"""Recall through the read gate: the same decision, plan, second check and log line as any other read.

A recall is a read of the caller's own conversations, in recall's order and told as recall tells it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from agent_runtime_ref.clock import Ids, instant, microseconds
from agent_runtime_ref.contracts import Caller, RetrievalQuery, RetrievalResult
from agent_runtime_ref.contracts.projection import (
    CONVERSATION,
    CONVERSATION_CLASS,
    PROFILE_CLASS,
    PROFILE_SNAPSHOT,
    happened_at,
    source_of,
    stored_of,
)
from agent_runtime_ref.contracts.stored import MemoryKind, StoredMemory, user_scope_of
from agent_runtime_ref.enforcement.answer import Answer
from agent_runtime_ref.enforcement.ranked import Ranked
from agent_runtime_ref.enforcement.read import ReadGate
from agent_runtime_ref.enforcement.recollection import Verdicts, ranked_answer, ranked_page
from agent_runtime_ref.enforcement.scope_counts import ScopeCounts
from agent_runtime_ref.errors import RemoteMemoryValidationError, TextError
from agent_runtime_ref.recall.engine import NO_MATCHING_TERMS, Ranker
from agent_runtime_ref.recall.hits import RecallHit, RecallResult, RecallScope
from agent_runtime_ref.recall.query import RecallQuery, check_limit, check_text, normalize_recall_query
from agent_runtime_ref.recall.score import age_us, breakdown
from agent_runtime_ref.stores.base import Match, SearchPage, SearchRequest, Store

__all__ = ["EXCLUDED_BY_POLICY", "Recaller"]

EXCLUDED_BY_POLICY = "excluded_by_policy"
# Writes that come between the search and the count of the scope; then the count is of a moment later.
_ATTEMPTS = 3
T = TypeVar("T")


class _Lexical:
    """Finds and orders by words and time, and counts the scope in the same state of the store."""

    def __init__(self, counts: ScopeCounts) -> None:
        self._counts = counts
        self.searched = 0

    def page(self, store: Store, request: SearchRequest) -> SearchPage:
        """Return the best matches in recall's order."""
        return self._counted(store, request, lambda: ranked_page(store, request), lambda one: one.revision)

    def answer(self, store: Store, request: SearchRequest, limit: int, verdicts: Verdicts) -> Answer:
        """Return the answer where the policy is asked about each match."""
        return self._counted(
            store,
            request,
            lambda: ranked_answer(store, request, limit, verdicts),
            lambda one: one.store_revision,
        )

    def hits(self, query: RecallQuery, answer: Answer, at_us: int) -> list[RecallHit]:
        """Return the selected records as hits."""
        return [_hit(query, match, rank, at_us) for rank, match in enumerate(answer.selected, start=1)]

    def candidates(self, answer: Answer) -> int:
        """Return how many matches the policy admits."""
        return answer.considered - sum(answer.exclusions.values())

    def was_kept_out(self, answer: Answer) -> bool:
        """Tell whether there was a match, where nothing was selected."""
        return answer.considered > 0

    def _counted(
        self, store: Store, request: SearchRequest, look: Callable[[], T], revision: Callable[[T], int]
    ) -> T:
        found = look()
        for _ in range(_ATTEMPTS):
            searched = self._counts.at(store, request, revision(found))
            if searched is not None:
                self.searched = searched
                return found
            found = look()
        self.searched = self._counts.count(store, request)[0]
        return found


class _Latest:
    """Orders by what happened last."""

    def page(self, store: Store, request: SearchRequest) -> SearchPage:
        """Return what happened last."""
        return ranked_page(store, request)

    def answer(self, store: Store, request: SearchRequest, limit: int, verdicts: Verdicts) -> Answer:
        """Return the same where the policy is asked about each record."""
        return ranked_answer(store, request, limit, verdicts)


class Recaller:
    """Asks the read gate for a user's conversations and profile."""

    def __init__(self, *, reads: ReadGate, counts: ScopeCounts, ids: Ids) -> None:
        self._reads = reads
        self._counts = counts
        self._ids = ids

    def recall(
        self, text: str, *, caller: Caller, purpose: str, limit: int, ranker: Ranker | None = None
    ) -> RecallResult:
        """Return the caller's conversations that answer `text`, best first.

        Raises:
            RemoteMemoryValidationError: the text has nothing to search by, or `limit` is not from 1 to 10.
            PolicyDeniedError, EngineFailureError, DecisionLogError: as a read does.
            StoreCapabilityError: there are more records than a ranker that looks at all of them may be given.
        """
        check_text(text)
        check_limit(limit)
        user_scope = user_scope_of(caller.own_subject)
        asked = self._query(caller, purpose, CONVERSATION_CLASS, CONVERSATION, limit)
        query = partial(
            normalize_recall_query, text, user_scope=user_scope, limit=limit, query_id=self._ids.new("query")
        )
        gather = _Lexical(self._counts) if ranker is None else Ranked(self._counts, ranker, query)
        try:
            result, answer, at_us = self._reads.gathered(asked, caller=caller, text=text, gather=gather)
        except TextError as error:
            raise RemoteMemoryValidationError(f"query {error.values['problem']}") from error
        return _told(query(issued_at=instant(at_us)), gather, result, answer, at_us)

    def latest_profile(self, *, caller: Caller, purpose: str) -> StoredMemory | None:
        """Return the profile snapshot that was captured last and that the policy shows to the caller.

        Raises:
            PolicyDeniedError, EngineFailureError, DecisionLogError: as a read does.
        """
        user_scope = user_scope_of(caller.own_subject)
        asked = self._query(caller, purpose, PROFILE_CLASS, PROFILE_SNAPSHOT, 1)
        result, _, _ = self._reads.gathered(asked, caller=caller, text=None, gather=_Latest())
        records = [hit.record for hit in result.hits]
        return stored_of(records[0], user_scope=user_scope) if records else None

    def _query(
        self, caller: Caller, purpose: str, memory_class: str, kind: str, limit: int
    ) -> RetrievalQuery:
        trace_id = caller.trace_id or self._ids.new("trc")
        return RetrievalQuery(
            trace_id,
            caller.session_id or trace_id,
            caller.tenant_id,
            caller.principal_id,
            purpose,
            (memory_class,),
            limit,
            subject=caller.subject,
            kinds=(kind,),
        )


def _hit(query: RecallQuery, match: Match, rank: int, at_us: int) -> RecallHit:
    record = match.record()
    age = age_us(now_us=at_us, created_us=microseconds(happened_at(record)))
    return RecallHit(
        query_id=query.query_id,
        memory_id=record.memory_id,
        rank=rank,
        snippet=record.content if record.summary is None else record.summary,
        scope=RecallScope(query.user_scope, MemoryKind.CONVERSATION.value),
        provenance=source_of(record),
        score_breakdown=breakdown(match.matched_terms, len(query.terms), age),
    )


def _told(
    query: RecallQuery, gather: _Lexical | Ranked, result: RetrievalResult, answer: Answer, at_us: int
) -> RecallResult:
    """Return what a recall answers, each hit with the decision that let it out."""
    decision = result.decision
    assert decision is not None, "a read that was answered has its decision"
    hits = gather.hits(query, answer, at_us)
    candidates = gather.candidates(answer)
    empty_reason = None
    if not hits:
        empty_reason = EXCLUDED_BY_POLICY if gather.was_kept_out(answer) else NO_MATCHING_TERMS
    return RecallResult(
        query=query,
        hits=tuple(replace(hit, decision_id=decision.decision_id) for hit in hits),
        searched_records=max(gather.searched, candidates),
        candidate_records=candidates,
        empty_reason=empty_reason,
        decision=decision,
    )
