"""What a search asks of a store, and what it answers: requests, matches, pages and their order."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from agent_runtime_ref.clock import microseconds
from agent_runtime_ref.contracts import MemoryRecord, Plan
from agent_runtime_ref.contracts.projection import happened_at
from agent_runtime_ref.recall.rank import RankKey, rank_key


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One look into a store: whose records, under which plan, by which terms."""

    tenant_ids: tuple[str, ...] | None  # None: every tenant
    plan: Plan
    terms: tuple[str, ...] | None  # None: every record matches, and order is by trust, newest, id
    now_us: int
    take: int
    excluded_take: int = 50
    labels: bool = True  # whether a record is also found by its kind and key, where no term is in its text


class MatchSource(Protocol):
    """What a store knows how to make of one of its rows."""

    def rank_key(self, row: Any) -> RankKey:
        """The row's place in the order."""

    def matched_terms(self, row: Any) -> tuple[str, ...]:
        """The terms it was found by, in the order of the query."""

    def attributes(self, row: Any) -> dict[str, Any]:
        """Its candidate document."""

    def record(self, row: Any) -> MemoryRecord:
        """The record itself."""


class Match:
    """A record that passed walls and selectors, as one query sees it.

    Everything is built when it is asked for: most of what a search finds is counted, never shown.
    """

    __slots__ = ("_attributes", "_rank_key", "_record", "_row", "_source")

    def __init__(self, source: MatchSource, row: Any) -> None:
        self._source = source
        self._row = row
        self._rank_key: RankKey | None = None
        self._attributes: dict[str, Any] | None = None
        self._record: MemoryRecord | None = None

    @property
    def rank_key(self) -> RankKey:
        """Its place in the order, smallest first."""
        if self._rank_key is None:
            self._rank_key = self._source.rank_key(self._row)
        return self._rank_key

    @property
    def tenant_id(self) -> str:
        """Whose record it is."""
        return self.rank_key[4]

    @property
    def memory_id(self) -> str:
        """The record's id."""
        return self.rank_key[3]

    @property
    def created_us(self) -> int:
        """When the record was kept."""
        return -self.rank_key[2]

    @property
    def total(self) -> int:
        """The score in millionths; 0 where the query has no text."""
        return -self.rank_key[0]

    @property
    def happened_us(self) -> int:
        """When what the record tells happened; where nobody said, when it was kept.

        A source may know it without making the record, which costs ten times as much; it need not.
        """
        known: Callable[[Any], int] | None = getattr(self._source, "happened_us", None)
        return microseconds(happened_at(self.record())) if known is None else known(self._row)

    @property
    def matched_terms(self) -> tuple[str, ...]:
        """The query's terms that the record was found by."""
        return self._source.matched_terms(self._row)

    @property
    def matched_count(self) -> int:
        """How many of the query's terms the record was found by."""
        return len(self.matched_terms)

    @property
    def attributes(self) -> dict[str, Any]:
        """The candidate document of the policy, strings as they were stored."""
        if self._attributes is None:
            self._attributes = self._source.attributes(self._row)
        return self._attributes

    def record(self) -> MemoryRecord:
        """The record, as it was when the search ran; of a kept-out match, as it is now."""
        if self._record is None:
            self._record = self._source.record(self._row)
        return self._record

    def __repr__(self) -> str:
        return f"Match({self.tenant_id!r}, {self.memory_id!r}, total={self.total})"


@dataclass(frozen=True, slots=True)
class SearchPage:
    """What one snapshot of a store answers."""

    matches: tuple[Match, ...]  # admitted by the plan, best first
    kept_out: tuple[tuple[Match, str], ...]  # with the reason of the first filter each one failed, best first
    exclusions: Mapping[str, int]  # every kept-out record, by reason; exact
    considered: int  # all that passed walls and selectors
    revision: int  # number of the last line of the store's own log at the snapshot


def match_key(attributes: Mapping[str, Any], total: int | None) -> RankKey:
    """The sort key of a record from its attributes."""
    return rank_key(
        total=total,
        trust_rank=attributes["trust_rank"],
        created_us=attributes["created_ns"] // 1000,
        memory_id=attributes["record_id"],
        tenant_id=attributes["tenant_id"],
    )
