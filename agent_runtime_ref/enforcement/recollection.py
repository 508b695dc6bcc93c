"""Finding and ordering for the read gate as recall wants it: by what happened last, not what was kept last.

Stores order by the instant at which a record was kept. Recall orders by the instant at which it happened,
which a record's origin tells. So the gate takes the best that the store found, orders them anew, and looks
further down the store's order only where something there could still come first.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.enforcement.answer import SCAN_BATCH, Answer, first_reason
from agent_runtime_ref.recall.rank import RankKey
from agent_runtime_ref.recall.score import RECENCY_MILLIONTHS, age_us, score_millionths
from agent_runtime_ref.stores.base import Match, SearchPage, SearchRequest, Store

__all__ = ["Found", "Gather", "Verdicts", "ranked_answer", "ranked_page", "rescored"]

Verdicts = Callable[[Sequence[Match]], tuple[dict[int, list[Any]], int]]
Key = tuple[int, int, int, str]
# As many as one search brings; with a few terms the best are nearly always among them.
FIRST_TAKE = 64
# What an order by one instant can add to a score under another: all of recency, and a rounding.
_SLACK = RECENCY_MILLIONTHS + 1


class Gather(Protocol):
    """How a read finds its records, where it is not simply the store's own order."""

    def page(self, store: Store, request: SearchRequest) -> SearchPage:
        """Return the records that a complete plan admits, as ordered, with the store's counts."""

    def answer(self, store: Store, request: SearchRequest, limit: int, verdicts: Verdicts) -> Answer:
        """Return the same for a plan that does not say everything, each record put to the policy."""


@dataclass(frozen=True, slots=True)
class Found:
    """A match with what recall orders it by."""

    match: Match
    key: Key  # smallest first: total, terms found, happened last, id; without a text also kept last
    total: int

    @classmethod
    def of(cls, match: Match, request: SearchRequest) -> Found:
        """Return a match as it stands in recall's order."""
        happened_us = match.happened_us
        if request.terms is None:
            return cls(match, (0, -happened_us, -match.created_us, match.memory_id), 0)
        matched = match.matched_count
        age = age_us(now_us=request.now_us, created_us=happened_us)
        total = score_millionths(matched, len(request.terms), age)
        return cls(match, (-total, -matched, -happened_us, match.memory_id), total)


class _Reordered:
    """What a match in another order is made of: everything is the store's but the score."""

    def rank_key(self, row: Found) -> RankKey:
        _, *others = row.match.rank_key
        return (-row.total, *others)  # type: ignore[return-value]

    def matched_terms(self, row: Found) -> tuple[str, ...]:
        return row.match.matched_terms

    def attributes(self, row: Found) -> dict[str, Any]:
        return row.match.attributes

    def record(self, row: Found) -> MemoryRecord:
        return row.match.record()


_REORDERED = _Reordered()


def reordered(found: Found) -> Match:
    """Return a match whose score is recall's."""
    return Match(_REORDERED, found)


def rescored(match: Match, total: int) -> Match:
    """Return a match with the score that a ranker gave it, in millionths."""
    return Match(_REORDERED, Found(match, (0, 0, 0, match.memory_id), total))


def ranked_page(store: Store, request: SearchRequest) -> SearchPage:
    """Return the first `request.take` records in recall's order, and the exact counts of one snapshot."""
    page = store.search(replace(request, take=max(request.take, FIRST_TAKE)))
    admitted = page.considered - sum(page.exclusions.values())
    best = _best((Found.of(match, request) for match in page.matches), request.take)
    if admitted > len(page.matches) and not _settled(best, page.matches, request):
        with store.examine(request, SCAN_BATCH) as (page, batches):
            best = _down(batches, request)
    return replace(page, matches=tuple(reordered(found) for found in best))


def ranked_answer(store: Store, request: SearchRequest, limit: int, verdicts: Verdicts) -> Answer:
    """Return the best `limit` records in recall's order where the policy must be asked about each one."""
    best: list[Found] = []
    check_ns = 0
    with store.examine(request, SCAN_BATCH) as (page, batches):
        exclusions = Counter(page.exclusions)
        kept_out = list(page.kept_out)
        for batch in batches:
            refused, duration = verdicts(batch)
            check_ns += duration
            passed = (match for index, match in enumerate(batch) if index not in refused)
            best = _best([*best, *(Found.of(match, request) for match in passed)], limit)
            for index, rows in sorted(refused.items()):
                reason = first_reason(rows)
                exclusions[reason] += 1
                if len(kept_out) < request.excluded_take:
                    kept_out.append((batch[index], reason))
    return Answer(
        selected=tuple(reordered(found) for found in best),
        kept_out=tuple(kept_out),
        exclusions=dict(sorted(exclusions.items())),
        considered=page.considered,
        store_revision=page.revision,
        underfilled=False,
        mismatches=(),
        check_ns=check_ns,
    )


def _down(batches: Iterator[list[Match]], request: SearchRequest) -> list[Found]:
    """Return the best of a store's matches, looking no further down than something could still come first."""
    best: list[Found] = []
    for batch in batches:
        best = _best([*best, *(Found.of(match, request) for match in batch)], request.take)
        if _settled(best, batch, request):
            break
    return best


def _best(found: Iterable[Found], take: int) -> list[Found]:
    return heapq.nsmallest(take, found, key=lambda one: one.key)


def _settled(best: Sequence[Found], seen: Sequence[Match], request: SearchRequest) -> bool:
    """Tell whether nothing behind the last of `seen`, in the store's order, can be among the best."""
    if request.terms is None or len(best) < request.take or not seen:
        return False
    return best[-1].total > seen[-1].total + _SLACK
