"""A look into the decision log: decided and logged as an operator's inspection, though it shows no record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.contracts import Caller, Decision
from agent_runtime_ref.enforcement.attributes import Inspection, subjects_named
from agent_runtime_ref.enforcement.read import PATH
from agent_runtime_ref.enforcement.ruling import read_refusals
from agent_runtime_ref.errors import PolicyDeniedError

if TYPE_CHECKING:
    from agent_runtime_ref.enforcement.gates import Gates
    from agent_runtime_ref.enforcement.recorder import Call

__all__ = ["inspection_permitted", "looked_into_log"]


def looked_into_log(gates: Gates, caller: Caller, tenant_id: str | None) -> Decision:
    """Return the decision that lets `caller` see what the log holds of a tenant; of all of them without one.

    Raises:
        PolicyDeniedError: the policy does not let `caller` inspect.
        EngineFailureError: the engine gave no clear answer.
        DecisionLogError: the look could not be written down.
    """
    call = gates.recorder.call(
        caller, "inspect", trace_id=None, session_id=None, subjects=subjects_named(caller)
    )
    inspection = Inspection(principal_id=caller.principal_id, limit=1, tenant_id=tenant_id)
    document = gates.attributes.inspect(inspection, caller, now_us=call.at_us)
    with gates.recorder.failures(call, PATH, lambda: document, read=True):
        answer, duration_ns = inspection_permitted(gates, call, document)
        decision = gates.recorder.decision(call, "allow", (), duration_ns=duration_ns)
        result: dict[str, Any] = {"allow": True, "effect": "allow", "deny": []}
        line = gates.recorder.line(call, decision, PATH, document, {**result, "policy": answer.get("policy")})
        gates.recorder.keep([line], [], read=True, tenant_id=caller.tenant_id)
        return decision


def inspection_permitted(
    gates: Gates, call: Call, document: Mapping[str, Any]
) -> tuple[Mapping[str, Any], int]:
    """Return the policy's answer to an inspection that it permits, and how long it took in nanoseconds.

    Raises:
        PolicyDeniedError: it does not; the refusal has been written down.
    """
    ruling = gates.point.read(document)
    denied = read_refusals(ruling.document)
    if denied:
        decision = gates.recorder.decision(call, "deny", denied, duration_ns=ruling.duration_ns)
        result = {"allow": False, "effect": "deny", "deny": list(denied)}
        line = gates.recorder.line(call, decision, PATH, document, result)
        gates.recorder.keep([line], [], read=True, tenant_id=call.caller.tenant_id)
        raise PolicyDeniedError(decision)
    return ruling.document, ruling.duration_ns
