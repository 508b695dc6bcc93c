"""Recall with another ranker: it is given what the policy admits and nothing else, so that is all it counts.

A ranker may need every record at once, for its statistics or because it finds by meaning. So all that are
admitted are read, up to a bound, and beyond it the recall is refused rather than answered from a part.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from agent_runtime_ref.clock import instant
from agent_runtime_ref.contracts.projection import stored_of
from agent_runtime_ref.enforcement.answer import SCAN_BATCH, Answer, exact_answer
from agent_runtime_ref.enforcement.recollection import Verdicts, rescored
from agent_runtime_ref.enforcement.scope_counts import ScopeCounts
from agent_runtime_ref.errors import StoreCapabilityError
from agent_runtime_ref.recall.engine import Ranker
from agent_runtime_ref.recall.hits import RecallHit
from agent_runtime_ref.recall.query import Moment, RecallQuery
from agent_runtime_ref.stores.base import Match, SearchPage, SearchRequest, Store

__all__ = ["RANKED_MAX", "Ranked"]

RANKED_MAX = 20_000


class Asked(Protocol):
    """Makes the query of a recall once its instant is known."""

    def __call__(self, *, issued_at: Moment) -> RecallQuery:
        """Return the query."""


class Ranked:
    """Finds and orders by a ranker. Made for one recall."""

    def __init__(self, counts: ScopeCounts, ranker: Ranker, query: Asked) -> None:
        self._counts = counts
        self._ranker = ranker
        self._query = query
        self._hits: dict[str, RecallHit] = {}
        self._candidates = 0
        self._matched = 0  # by a term, whether the policy admits them or not
        self.searched = 0

    def page(self, store: Store, request: SearchRequest) -> SearchPage:
        """Return the first `request.take` records in the ranker's order."""
        with store.examine(self._looked_at(request), SCAN_BATCH) as (page, batches):
            admitted = page.considered - sum(page.exclusions.values())
            if admitted > RANKED_MAX:
                raise StoreCapabilityError(
                    store.url,
                    f"a ranker may be given {RANKED_MAX} records and {admitted} match; recall without one",
                )
            ranked = self._ranked([match for batch in batches for match in batch], request)
        self._count(store, request, page.considered)
        return replace(page, matches=tuple(ranked[: request.take]))

    def answer(self, store: Store, request: SearchRequest, limit: int, verdicts: Verdicts) -> Answer:
        """Return the answer where the policy is asked about each record before any is ranked."""
        found = exact_answer(store, self._looked_at(request), RANKED_MAX + 1, verdicts)
        if len(found.selected) > RANKED_MAX:
            raise StoreCapabilityError(
                store.url, f"a ranker may be given {RANKED_MAX} records and more match; recall without one"
            )
        ranked = self._ranked(found.selected, request)
        self._count(store, request, found.considered)
        return replace(found, selected=tuple(ranked[:limit]))

    def hits(self, query: RecallQuery, answer: Answer, at_us: int) -> list[RecallHit]:
        """Return the selected records as the ranker's hits."""
        return [
            replace(self._hits[match.memory_id], rank=rank)
            for rank, match in enumerate(answer.selected, start=1)
        ]

    def candidates(self, answer: Answer) -> int:
        """Return how many records the ranker found worth a score."""
        return self._candidates

    def was_kept_out(self, answer: Answer) -> bool:
        """Tell whether a record shares a term, where nothing was selected."""
        return self._matched > 0

    def _looked_at(self, request: SearchRequest) -> SearchRequest:
        return replace(request, terms=None, take=0) if self._ranker.finds_by_meaning else request

    def _ranked(self, matches: Iterable[Match], request: SearchRequest) -> list[Match]:
        query = self._query(issued_at=instant(request.now_us))
        by_id = {match.memory_id: match for match in matches}
        records = [stored_of(match.record(), user_scope=query.user_scope) for match in by_id.values()]
        # The order of the store is none of the ranker's business.
        records.sort(key=lambda one: one.memory_id)
        candidates, _ = self._ranker.find(query, records)
        self._candidates = len(candidates)
        ranked = self._ranker.rank(query, candidates, as_of=instant(request.now_us))
        self._hits = {hit.memory_id: hit for hit in ranked}
        return [rescored(by_id[hit.memory_id], round(hit.score * 1_000_000)) for hit in ranked]

    def _count(self, store: Store, request: SearchRequest, considered: int) -> None:
        if not self._ranker.finds_by_meaning:
            self._matched = considered
            self.searched, _ = self._counts.count(store, request)
            return
        self.searched = considered
        if not self._candidates:
            self._matched = store.search(replace(request, take=0, excluded_take=0)).considered
