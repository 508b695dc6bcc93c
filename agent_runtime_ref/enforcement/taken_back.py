"""What a person has taken back since something was said: it must not be learnt from those words any more.

A preference is forgotten at once, and what a turn says is kept behind its reply. So words that were said
before may come to be kept after they were taken back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.clock import instant
from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.enforcement.removals import key_tombstone
from agent_runtime_ref.stores.chains import chain_with

if TYPE_CHECKING:
    from agent_runtime_ref.enforcement.gates import Gates
    from agent_runtime_ref.stores.base import Store

__all__ = ["taken_back"]

_TOLD = b'"event_type":"preferences_curated"'
_REMOVED = "removed"  # as that event counts what was taken back


def taken_back(gates: Gates, keys: Sequence[str], since_us: int, caller: Caller) -> frozenset[str]:
    """Return those of `keys` whose records the caller's subject has had removed later than `since_us`."""
    store, tenant_id, subject = gates.surroundings.store, caller.tenant_id, caller.own_subject
    marks = {key_tombstone(store.store_key(), tenant_id, subject, key): key for key in keys}
    ever = [marks[one] for one in store.tombstoned(tenant_id, list(marks))]
    if not ever:
        return frozenset()  # hardly anything was ever taken back, so hardly ever is the log gone through
    # A tombstone does not say when, and what was said anew since is not taken back: the log tells.
    pseudonym = gates.attributes.pseudonyms.of
    masks = {pseudonym(tenant_id, subject, key): key for key in ever}
    return frozenset(
        masks[mask]
        for event in _removals(store, tenant_id, since_us)
        for mask in event["keys"]
        if mask in masks
    )


def _removals(store: Store, tenant_id: str, since_us: int) -> Iterator[dict[str, Any]]:
    """Yield what the log says of preferences of a tenant that were removed."""
    since = instant(since_us)
    for line in chain_with(store, tenant_id, read=False).raw():
        if _TOLD in line:
            event = json.loads(line)
            if _REMOVED in event["payload"]["counts"] and datetime.fromisoformat(event["timestamp"]) > since:
                yield event["payload"]
