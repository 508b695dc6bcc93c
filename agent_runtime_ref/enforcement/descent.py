"""What was derived from a record, over any number of steps, as an operator is shown it.

Each step is an inspection like any other: decided, logged, and within one tenant. What the policy does not
show is not named, and nothing is followed through it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_runtime_ref.contracts import Caller, MemoryRecord
from agent_runtime_ref.enforcement.attributes import Inspection, subjects_named
from agent_runtime_ref.enforcement.read import PATH

if TYPE_CHECKING:
    from agent_runtime_ref.enforcement.gates import Gates

__all__ = ["Descent", "descended"]

# So many rows fit into one line of the log, with the longest names there are.
_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class Descent:
    """A record and all that came of it."""

    record: MemoryRecord | None  # None: it is gone, or nobody may see it
    descendants: tuple[MemoryRecord, ...]  # the nearest first, then by id; without the record itself


def descended(gates: Gates, record_id: str, caller: Caller) -> Descent:
    """Return the record called `record_id` in the caller's tenant, and everything derived from it.

    A record that names itself among its own origins, over whatever detour, is met once.

    Raises:
        PolicyDeniedError: the policy does not let `caller` inspect.
        EngineFailureError: the engine gave no clear answer.
        DecisionLogError: the look could not be written down.
    """
    subjects = subjects_named(caller)
    call = gates.recorder.call(caller, "inspect", trace_id=None, session_id=None, subjects=subjects)
    asked = gates.attributes.inspect(_inspection(caller, [record_id], 1), caller, now_us=call.at_us)
    with gates.recorder.failures(call, PATH, lambda: asked, read=True):
        return _descended(gates, record_id, caller)


def _descended(gates: Gates, record_id: str, caller: Caller) -> Descent:
    store, tenant_id = gates.surroundings.store, caller.tenant_id
    own = _shown(gates, [record_id], caller)
    met = {record_id}
    descendants: list[MemoryRecord] = []
    step = [record_id]
    while step:
        fresh = [one for one in store.children(tenant_id, step) if one not in met]
        met.update(fresh)
        found = _shown(gates, fresh, caller)
        descendants += found
        step = [one.memory_id for one in found]
    return Descent(own[0] if own else None, tuple(descendants))


def _shown(gates: Gates, ids: list[str], caller: Caller) -> list[MemoryRecord]:
    """Return the records of those ids that `caller` may inspect, by id."""
    most = min(_AT_ONCE, gates.bundle.settings["limits"]["inspection_max"])
    found: list[MemoryRecord] = []
    for start in range(0, len(ids), most):
        inspection = _inspection(caller, ids[start : start + most], most)
        found += [hit.record for hit in gates.reads.inspect(inspection, caller=caller)[0].hits]
    return sorted(found, key=lambda one: one.memory_id)


def _inspection(caller: Caller, ids: list[str], limit: int) -> Inspection:
    principal, tenant = caller.principal_id, caller.tenant_id
    return Inspection(principal_id=principal, limit=limit, tenant_id=tenant, record_ids=tuple(ids))
