"""Search over records that are held in memory: judge every entry, then build only what is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Any, NamedTuple

from agent_runtime_ref.contracts import Clause, MemoryRecord
from agent_runtime_ref.recall.rank import RankKey
from agent_runtime_ref.recall.score import age_us, score_millionths
from agent_runtime_ref.stores.attributes import check_plan
from agent_runtime_ref.stores.base import Match, SearchRequest, match_key
from agent_runtime_ref.stores.memory_tenant import Entry, Tenant
from agent_runtime_ref.stores.plan_eval import clause_passes, filters


class Found(NamedTuple):
    """An entry that a query considers; attributes are never changed once they are made."""

    key: RankKey
    entry: Entry
    attributes: Mapping[str, Any]
    matched: tuple[str, ...]
    reason: str | None  # of the filter that keeps it out


class Judgement:
    """What one look found, in no order yet: most of it is counted and never shown."""

    def __init__(self, found: Iterator[Found]) -> None:
        self._admitted: list[Found] = []
        self._kept_out: list[Found] = []
        for one in found:
            (self._admitted if one.reason is None else self._kept_out).append(one)

    @property
    def considered(self) -> int:
        """How many records passed walls and selectors."""
        return len(self._admitted) + len(self._kept_out)

    def exclusions(self) -> dict[str, int]:
        """Return how many records were kept out, by reason."""
        return dict(Counter(one.reason for one in self._kept_out if one.reason is not None))

    def admitted_best(self, take: int | None) -> list[Match]:
        """Return the best admitted matches, all of them for None."""
        return [Match(_SOURCE, one) for one in _best(self._admitted, take)]

    def kept_out_best(self, take: int) -> list[tuple[Match, str]]:
        """Return the best of those that were kept out, each with its reason."""
        best = _best(self._kept_out, take)
        return [(Match(_SOURCE, one), one.reason) for one in best if one.reason is not None]


def judged(tenants: Mapping[str, Tenant], request: SearchRequest, *, store: str) -> Judgement:
    """Judge every record that a request could be about, under the caller's lock.

    Raises:
        StoreCapabilityError: the plan has something in it that no store here knows.
    """
    check_plan(request.plan, store=store)
    return Judgement(_found(tenants, request))


def _found(tenants: Mapping[str, Tenant], request: SearchRequest) -> Iterator[Found]:
    names = tenants if request.tenant_ids is None else dict.fromkeys(request.tenant_ids)
    walls = [clause for clause in request.plan.clauses if clause.role != "filter"]
    ordered = filters(request.plan)
    terms, now_us = request.terms, request.now_us
    for name in names:
        tenant = tenants.get(name)
        if tenant is None:
            continue
        for entry in tenant.found(terms, labels=request.labels):
            attributes = tenant.attributes(entry, now_us)
            if all(clause_passes(clause, attributes) for clause in walls):
                matched = () if terms is None else entry.matched(terms)
                total = None if terms is None else _score(len(matched), len(terms), attributes, now_us)
                yield Found(
                    match_key(attributes, total), entry, attributes, matched, _reason(ordered, attributes)
                )


def _score(matched: int, count: int, attributes: Mapping[str, Any], now_us: int) -> int:
    return score_millionths(
        matched, count, age_us(now_us=now_us, created_us=attributes["created_ns"] // 1000)
    )


def _reason(ordered: Sequence[Clause], attributes: Mapping[str, Any]) -> str | None:
    for clause in ordered:
        if not clause_passes(clause, attributes):
            return clause.reason
    return None


def _best(found: list[Found], take: int | None) -> list[Found]:
    # Ids and tenants are part of the key: no two are equal, and the entries are never compared.
    return sorted(found) if take is None or take >= len(found) else nsmallest(take, found)


class _Source:
    """Takes a match apart."""

    def rank_key(self, row: Found) -> RankKey:
        return row.key

    def matched_terms(self, row: Found) -> tuple[str, ...]:
        return row.matched

    def attributes(self, row: Found) -> dict[str, Any]:
        return dict(row.attributes)

    def record(self, row: Found) -> MemoryRecord:
        return row.entry.record


_SOURCE = _Source()
