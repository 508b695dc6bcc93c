"""A look at the metadata of every record, for a replay: decided and logged as an operator's inspection.

No content is handed out, and whoever a record is about stands as the log shows them. The limit of an
inspection does not bound a survey: its rows are counted against, not shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.contracts import Caller, Plan
from agent_runtime_ref.enforcement.answer import SCAN_BATCH
from agent_runtime_ref.enforcement.attributes import Inspection, subjects_named
from agent_runtime_ref.enforcement.log_look import inspection_permitted
from agent_runtime_ref.enforcement.read import PATH
from agent_runtime_ref.stores.base import Match, SearchPage, SearchRequest
from agent_runtime_ref.telemetry.lines import CONSIDERED_COLUMNS, Considered

if TYPE_CHECKING:
    from agent_runtime_ref.enforcement.gates import Gates
    from agent_runtime_ref.enforcement.recorder import Call

__all__ = ["SURVEY_SESSION", "Survey", "surveyed"]

# By which a line of the log tells the look that a replay took from what somebody wanted to see.
SURVEY_SESSION = "policy-replay"


@dataclass(frozen=True, slots=True)
class Survey:
    """The metadata of all records at one moment, and the decision by which they were looked at."""

    decision_id: str
    records: Sequence[Mapping[str, Any]]  # with the attributes and in the words of a log line


def surveyed(gates: Gates, caller: Caller) -> Survey:
    """Return the metadata of every record of every tenant, whatever its status.

    Raises:
        PolicyDeniedError: the policy does not let `caller` inspect.
        EngineFailureError: the engine gave no clear answer.
        DecisionLogError: the look could not be written down.
    """
    call = gates.recorder.call(
        caller, "inspect", trace_id=None, session_id=SURVEY_SESSION, subjects=subjects_named(caller)
    )
    limit = gates.bundle.settings["limits"]["inspection_max"]
    inspection = Inspection(principal_id=caller.principal_id, limit=limit)
    document = gates.attributes.inspect(inspection, caller, now_us=call.at_us)
    with gates.recorder.failures(call, PATH, lambda: document, read=True):
        return _surveyed(gates, call, document)


def _surveyed(gates: Gates, call: Call, document: Mapping[str, Any]) -> Survey:
    answer, duration_ns = inspection_permitted(gates, call, document)
    plan = Plan.from_decision(answer)
    request = SearchRequest(None, plan, None, call.at_us, take=0, excluded_take=0)
    records: list[Mapping[str, Any]] = []
    with gates.surroundings.store.examine(request, SCAN_BATCH) as (page, batches):
        for batch in batches:
            records += _rows(gates, document, plan, batch)
    decision = gates.recorder.decision(call, "allow", (), duration_ns=duration_ns)
    result: dict[str, Any] = {"allow": True, "effect": "allow", "deny": [], "policy": answer.get("policy")}
    line = gates.recorder.line(call, decision, PATH, document, result, _considered(page))
    payload = {
        "operation": call.operation,
        "purpose": document["query"]["purpose"],
        "selected": [],
        "selection_reason": [],
        "excluded_records": sum(page.exclusions.values()),
        "exclusions": dict(page.exclusions),
        "considered": page.considered,
        "limit": document["query"]["limit"],
    }
    event = gates.recorder.event(call, "retrieval", decision, payload, decides=True)
    gates.recorder.keep([line], [event], read=True, tenant_id=call.caller.tenant_id)
    return Survey(decision.decision_id, records)


def _rows(
    gates: Gates, document: Mapping[str, Any], plan: Plan, batch: Sequence[Match]
) -> list[dict[str, Any]]:
    """Return the log's view of those records of a batch that the policy admits."""
    admitted = range(len(batch))
    if not plan.complete:
        candidates = [gates.attributes.candidate(match.attributes) for match in batch]
        answer = gates.point.read({**document, "candidates": candidates}).document
        admitted = answer["admitted"] if answer["allow"] is True else []
    row = gates.attributes.row
    return [dict(zip(CONSIDERED_COLUMNS, row(batch[index].attributes), strict=True)) for index in admitted]


def _considered(page: SearchPage) -> Considered:
    """Return what the line says of a survey: how many records were looked at, and none by name."""
    return Considered(
        returned=[],
        kept_out=[],
        total=page.considered,
        exclusions=page.exclusions,
        store_revision=page.revision,
    )
