"""All records about a caller's own subject that the policy shows, page by page: one read returns so many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_runtime_ref.clock import Ids
from agent_runtime_ref.contracts import Caller, MemoryRecord, RetrievalQuery

if TYPE_CHECKING:
    from agent_runtime_ref.runtime import GovernedMemory

__all__ = ["OwnRecords", "own_records", "query_of"]

PAGE = 100  # as many records as one read may return


@dataclass(frozen=True, slots=True)
class OwnRecords:
    """What the policy shows of a person to himself, and what of all it considered it kept out, by reason."""

    records: tuple[MemoryRecord, ...]
    kept_out: Mapping[str, int]


def own_records(
    memory: GovernedMemory,
    wanted: Callable[[MemoryRecord], bool],
    *,
    caller: Caller,
    purpose: str,
    classes: tuple[str, ...],
    kinds: tuple[str, ...] = (),
    ids: Ids,
) -> OwnRecords:
    """Return the records about the caller's own subject that are `wanted`, in the store's order."""
    found: dict[str, MemoryRecord] = {}

    def choose(records: Sequence[MemoryRecord]) -> list[int]:
        # By what was found already, not by a place: a record that comes meanwhile moves all the others.
        own = (
            place
            for place, one in enumerate(records)
            if one.subject == caller.own_subject and one.memory_id not in found and wanted(one)
        )
        return list(own)[:PAGE]

    while True:
        query = query_of(caller, purpose, classes, PAGE, kinds=kinds, ids=ids)
        result = memory.choose(query, choose, caller=caller)
        found.update((hit.record.memory_id, hit.record) for hit in result.hits)
        if len(result.hits) < PAGE:
            return OwnRecords(tuple(found.values()), result.exclusions)


def query_of(
    caller: Caller, purpose: str, classes: tuple[str, ...], limit: int, *, kinds: tuple[str, ...], ids: Ids
) -> RetrievalQuery:
    """Return a query of a caller about himself."""
    trace_id = caller.trace_id or ids.new("trc")
    return RetrievalQuery(
        trace_id,
        caller.session_id or trace_id,
        caller.tenant_id,
        caller.principal_id,
        purpose,
        classes,
        limit,
        subject=caller.own_subject,
        kinds=kinds,
    )
