"""The stages of recall in their order, over the records of one user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agent_runtime_ref.clock import Clock, Ids, RandomIds, SystemClock, instant
from agent_runtime_ref.contracts.stored import StoredMemory
from agent_runtime_ref.recall.candidates import RecallCandidate
from agent_runtime_ref.recall.hits import RecallHit, RecallResult, stable_rank_recall_candidates
from agent_runtime_ref.recall.query import Moment, RecallQuery, moment_of, normalize_recall_query
from agent_runtime_ref.recall.term_index import TermIndex

__all__ = ["NO_MATCHING_TERMS", "Find", "Rank", "Ranker", "RecallEngine", "Records"]

NO_MATCHING_TERMS = "no_matching_terms"


class Records(Protocol):
    """What recall reads from: one user's records, in the order in which they were appended."""

    @property
    def user_scope(self) -> str:
        """Whose records they are."""

    def read_all(self) -> Sequence[StoredMemory]:
        """Return every record."""


class Find(Protocol):
    """Finds candidates; another way of finding returns the same values."""

    def __call__(
        self, query: RecallQuery, records: Sequence[StoredMemory]
    ) -> tuple[Sequence[RecallCandidate], int]:
        """Return the candidates among `records`, and how many conversation records were looked at."""


class Rank(Protocol):
    """Scores candidates and puts them in order; another ranker returns the same hits."""

    def __call__(
        self, query: RecallQuery, candidates: Sequence[RecallCandidate], *, as_of: Moment
    ) -> Sequence[RecallHit]:
        """Return every candidate as a hit, best first."""


class Ranker(Protocol):
    """A way of finding together with a way of ranking; it counts over the records that it is given.

    INVARIANT: an answer depends on the query, the instant and these records alone. So records that a caller
    may not see, which are never among them, change nothing.
    """

    @property
    def finds_by_meaning(self) -> bool:
        """Whether a record that shares no term with the query may be found."""

    def find(
        self, query: RecallQuery, records: Sequence[StoredMemory]
    ) -> tuple[Sequence[RecallCandidate], int]:
        """As `Find`."""

    def rank(
        self, query: RecallQuery, candidates: Sequence[RecallCandidate], *, as_of: Moment
    ) -> Sequence[RecallHit]:
        """As `Rank`."""


class RecallEngine:
    """Answers queries over one user's memory; reads only, and asks no policy: it lies below the gates.

    `GovernedMemory.recall` puts the read gate round it. Finding and ranking may be replaced.
    Records are indexed once; a query looks only at those that hold one of its terms.
    """

    def __init__(
        self,
        store: Records,
        *,
        find: Find | None = None,
        rank: Rank = stable_rank_recall_candidates,
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        self._store = store
        self._find = find or TermIndex().candidates
        self._rank = rank
        self._clock = clock or SystemClock()
        self._ids = ids or RandomIds()

    def recall(
        self, text: str, limit: int = 5, query_id: str | None = None, as_of: Moment | None = None
    ) -> RecallResult:
        """Return the best `limit` hits for `text` as of an instant, by default now.

        Raises:
            RemoteMemoryValidationError: the text has nothing to search by, or `limit` is not from 1 to 10.
            RemoteMemoryError: the store cannot be read.
        """
        moment = instant(self._clock.now_us()) if as_of is None else moment_of("as_of", as_of)
        query = normalize_recall_query(
            text,
            user_scope=self._store.user_scope,
            limit=limit,
            query_id=query_id,
            issued_at=moment,
            ids=self._ids,
        )
        candidates, searched = self._find(query, self._store.read_all())
        hits = tuple(self._rank(query, candidates, as_of=moment))[: query.limit]
        return RecallResult(
            query=query,
            hits=hits,
            searched_records=searched,
            candidate_records=len(candidates),
            empty_reason=None if hits else NO_MATCHING_TERMS,
        )
