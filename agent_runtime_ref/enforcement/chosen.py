"""Finding for the read gate where the reader chooses, out of all that the policy admits, in his own order.

He is shown what the plan admits and nothing else. What he chooses is the answer: it alone is returned, put to
the policy a second time, and named in the log. A choice that fails chooses nothing; the read is written down
all the same, and the failure is raised after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.contracts.arguments import each_of
from agent_runtime_ref.enforcement.answer import SCAN_BATCH, Answer, exact_answer
from agent_runtime_ref.enforcement.recollection import Verdicts
from agent_runtime_ref.errors import DocumentValueError, StoreCapabilityError
from agent_runtime_ref.stores.base import Match, SearchPage, SearchRequest, Store

__all__ = ["CHOSEN_MAX", "Choose", "Chosen"]

CHOSEN_MAX = 20_000
# Given the admitted records in the store's order, returns the places of those that are wanted, best first.
Choose = Callable[[Sequence[MemoryRecord]], Sequence[int]]


class Chosen:
    """Finds by a choice among all admitted records. Made for one read."""

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self.failure: Exception | None = None

    def page(self, store: Store, request: SearchRequest) -> SearchPage:
        """Return the chosen records, `request.take` of them at most, with the store's counts."""
        with store.examine(replace(request, take=0), SCAN_BATCH) as (page, batches):
            admitted = page.considered - sum(page.exclusions.values())
            if admitted > CHOSEN_MAX:
                raise _too_many(store)
            chosen = self._of([match for batch in batches for match in batch])
        return replace(page, matches=tuple(chosen[: request.take]))

    def answer(self, store: Store, request: SearchRequest, limit: int, verdicts: Verdicts) -> Answer:
        """Return the same where the policy is asked about each record before any is chosen."""
        found = exact_answer(store, replace(request, take=0), CHOSEN_MAX + 1, verdicts)
        if len(found.selected) > CHOSEN_MAX:
            raise _too_many(store)
        return replace(found, selected=tuple(self._of(found.selected)[:limit]))

    def _of(self, matches: Sequence[Match]) -> list[Match]:
        records = [match.record() for match in matches]
        try:
            return [matches[place] for place in _places(self._choose(records), len(matches))]
        except Exception as error:
            self.failure = error
            return []


def _places(chosen: Sequence[int], there_are: int) -> list[int]:
    """Return what was chosen, each place once.

    Raises:
        DocumentTypeError, DocumentValueError: it is no list of places among the records.
    """
    places = list(each_of("choose", chosen, int, wanted="places among the records"))
    for place in places:
        if isinstance(place, bool) or not 0 <= place < there_are:
            raise DocumentValueError("choose: must return places among the records", path="choose")
    return list(dict.fromkeys(places))


def _too_many(store: Store) -> StoreCapabilityError:
    return StoreCapabilityError(store.url, f"more than {CHOSEN_MAX} records to choose from; narrow the query")
