"""What an application's metrics look up in an open memory: numbers of records, and nothing of one."""

from __future__ import annotations

from agent_runtime_ref.contracts import Atom, Clause, Plan
from agent_runtime_ref.stores.base import SearchRequest, Store

_WAITING = Plan(
    clauses=(Clause("selector", "QUEUE", "waiting", (Atom("status", "eq", "quarantined"),)),),
    complete=True,
    limit=0,
)


def waiting(store: Store, now_us: int) -> int:
    """How many records of all tenants wait for their review.

    Raises:
        StoreError: the store cannot be asked, or not about all tenants by who has opened it.
    """
    request = SearchRequest(None, _WAITING, None, now_us, take=0, excluded_take=0)
    return store.search(request).considered
