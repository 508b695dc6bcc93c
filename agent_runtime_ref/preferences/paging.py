"""All records about a caller's own subject that the policy shows, page by page: one read returns so many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent_runtime_ref.clock import Ids
from agent_runtime_ref.contracts import Caller, MemoryRecord, RetrievalQuery

if TYPE_CHECKING:
    from agent_runtime_ref.runtime import GovernedMemory

__all__ = ["OwnRecords", "own_records", "query_of", "require_look"]

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


def require_look(
    memory: GovernedMemory,
    *,
    caller: Caller,
    as_operator: bool,
    purpose: str,
    classes: tuple[str, ...],
    ids: Ids,
) -> None:
    """Return if the policy lets the caller's principal himself look at all about the caller's subject.

    Whom he says he acts for does not count here: what is about somebody is shown to that person, and to an
    operator who inspects. The decision is logged like that of any read.

    Raises:
        PolicyDeniedError, EngineFailureError, DecisionLogError: he may not, or nobody can say.
    """
    himself = replace(caller, subject=None)
    if as_operator:
        from agent_runtime_ref.enforcement.attributes import Inspection

        inspection = Inspection(caller.principal_id, 1, tenant_id=caller.tenant_id)
        memory.inspect(inspection, caller=himself)
        return
    # Of the caller, so that the query is about his subject; asked by the principal, who has to be it.
    query = query_of(caller, purpose, classes, 1, kinds=(), ids=ids)
    memory.read(query, caller=himself, operation="list")
