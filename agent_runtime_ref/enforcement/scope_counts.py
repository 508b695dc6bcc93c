"""How many records there are in a scope: counted once for each state of a store."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace

from agent_runtime_ref.contracts import Clause
from agent_runtime_ref.stores.base import SearchRequest, Store

__all__ = ["ScopeCounts"]

SCOPES_MAX = 256
Scope = tuple[tuple[str, ...] | None, tuple[Clause, ...]]


class ScopeCounts:
    """Counts of records that pass walls and selectors, kept as long as nothing was written. Thread-safe.

    Neither walls nor selectors look at the time, so a count changes with a write only, and a write has a line
    in the log, by whose number a state of the store is known.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held: OrderedDict[Scope, tuple[int, int]] = OrderedDict()

    def count(self, store: Store, request: SearchRequest) -> tuple[int, int]:
        """Return how many records the scope of a request holds, and the revision of which that is true."""
        page = store.search(replace(request, terms=None, take=0, excluded_take=0))
        with self._guard:
            self._held[_scope(request)] = (page.considered, page.revision)
            self._held.move_to_end(_scope(request))
            if len(self._held) > SCOPES_MAX:
                self._held.popitem(last=False)
        return page.considered, page.revision

    def at(self, store: Store, request: SearchRequest, revision: int) -> int | None:
        """Return the count as of a revision; None where the store has moved on meanwhile."""
        with self._guard:
            held = self._held.get(_scope(request))
        if held is None or held[1] != revision:
            held = self.count(store, request)
        return held[0] if held[1] == revision else None


def _scope(request: SearchRequest) -> Scope:
    narrowing = tuple(clause for clause in request.plan.clauses if clause.role != "filter")
    return request.tenant_ids, narrowing
