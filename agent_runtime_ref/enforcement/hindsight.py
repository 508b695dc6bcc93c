"""What the gates would do with a question that was asked before: decided again, carried out by nobody.

The steps are those of the gates: the plan keeps records out, order and limit choose, the second check has
the last word. Nothing is read from a store and nothing is written down here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_runtime_ref.clock import Clock
from agent_runtime_ref.contracts import Plan
from agent_runtime_ref.enforcement.amend import unmet_obligations
from agent_runtime_ref.enforcement.answer import SCAN_BATCH
from agent_runtime_ref.enforcement.detectors import Finding
from agent_runtime_ref.enforcement.plan_memory import PlanMemory, Planned
from agent_runtime_ref.enforcement.read import SPARE
from agent_runtime_ref.enforcement.review_queue import review_refusals
from agent_runtime_ref.enforcement.ruling import DecisionPoint, read_refusals
from agent_runtime_ref.errors import EngineFailureError, StoreCapabilityError
from agent_runtime_ref.policy.engine import PolicyEngine
from agent_runtime_ref.stores.attributes import check_plan
from agent_runtime_ref.stores.plan_eval import clause_passes

__all__ = ["Hindsight", "Outcome", "ReadOutcome", "all_or_none", "write_outcomes"]

Row = Mapping[str, Any]
Record = Mapping[str, Any]

_NOT_PERMITTED = {"rule_id": "GATE", "reason": "not_permitted"}
# Reasons that speak of the question and not of the policies.
_UNASKABLE = frozenset({"input_malformed", "input_too_large"})
_REVIEWS = ("release", "reject", "quarantine")
_NO_PLAN = Plan(clauses=(), complete=False, limit=0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What would become of one candidate of a write."""

    effect: str  # allow, deny or quarantine
    rows: tuple[Row, ...]  # rule ids and reasons of a deny or a quarantine
    assigned: Mapping[str, Any] | None  # trust and retention of what is kept


@dataclass(slots=True)
class ReadOutcome:
    """What would become of a read."""

    denied: tuple[Row, ...]  # empty: the read is answered
    returned: frozenset[int] = frozenset()  # positions among the records handed in
    plan: Plan = _NO_PLAN
    refused: dict[int, list[Row]] = field(default_factory=dict)  # by the second check

    def why_not(self, index: int, record: Record) -> tuple[Row, ...]:
        """Return the rules that keep a record out; none where only rank and limit do."""
        if self.denied:
            return self.denied
        failed = [
            {"rule_id": one.rule_id, "reason": one.reason}
            for one in self.plan.clauses
            if not clause_passes(one, record)
        ]
        return tuple(failed or self.refused.get(index, ()))


class Hindsight:
    """Asks the policies of one engine about recorded questions."""

    def __init__(self, engine: PolicyEngine, clock: Clock, *, remembers: bool = False) -> None:
        """Ask `engine`; `remembers` only where `policy.shift.only_shifts` is true of its policies."""
        self._point = DecisionPoint(engine, clock)
        self._memory = PlanMemory() if remembers else None
        self.mismatches = 0  # 1 where a plan admitted what the policy refuses

    def read(self, question: Mapping[str, Any], records: Sequence[Record], *, ranked: bool) -> ReadOutcome:
        """Return what a read would return of `records`, which stand in rank order.

        `question` is the policy's input; its candidates are ignored. Without `ranked` the order is not
        known, and whatever the policy admits counts as returned, whatever the limit.

        Raises:
            EngineFailureError: the question is one that no gate would have asked.
        """
        try:
            return self._read(question, records, ranked)
        except EngineFailureError as failure:
            _raise_if_unaskable(failure)
            return ReadOutcome((_failure(failure.reason),))
        except StoreCapabilityError:
            # No store would carry the plan out: the gate refuses the read with this error.
            return ReadOutcome((_failure("plan_not_supported"),))

    def write(self, question: Mapping[str, Any]) -> list[Outcome]:
        """Return what would become of each candidate of a write, a removal or another change.

        Raises:
            EngineFailureError: the question is one that no gate would have asked.
        """
        try:
            answer = self._point.write(question).document
        except EngineFailureError as failure:
            _raise_if_unaskable(failure)
            return [Outcome("deny", (_failure(failure.reason),), None) for _ in question["candidates"]]
        return write_outcomes(answer, question)

    def _read(self, question: Mapping[str, Any], records: Sequence[Record], ranked: bool) -> ReadOutcome:
        planned = self._planned(question)
        if planned.plan is None:
            return ReadOutcome(planned.denied)
        plan = planned.at(question["now_ns"])
        limit = min(question["query"]["limit"], plan.limit)
        found, unseen = planned.admitted(records, plan)
        if ranked and plan.complete:
            found = found[: limit + SPARE]
            unseen = [index for index in unseen if index <= found[-1]]
        refused = self._checked(question, records, found, unseen, planned)
        kept = [index for index in found if index not in refused]
        return ReadOutcome((), frozenset(kept[:limit] if ranked else kept), plan, refused)

    def _planned(self, question: Mapping[str, Any]) -> Planned:
        """Return the answer to the question without candidates, out of the memory where it is there."""
        memory = self._memory
        key = None if memory is None else memory.key(question)
        if memory is None or key is None:
            return self._asked(question)
        known = memory.get(key)
        if known is not None and (known.moving is not None or known.now_ns == question["now_ns"]):
            return known
        return memory.keep(key, self._asked(question))

    def _asked(self, question: Mapping[str, Any]) -> Planned:
        answer = self._point.read({**question, "candidates": []}).document
        denied = read_refusals(answer)
        if denied:
            return Planned(denied, None, question["now_ns"])
        plan = Plan.from_decision(answer)
        check_plan(plan, store="replay")
        return Planned((), plan, question["now_ns"])

    def _checked(
        self,
        question: Mapping[str, Any],
        records: Sequence[Record],
        found: Sequence[int],
        unseen: Sequence[int],
        planned: Planned,
    ) -> dict[int, list[Row]]:
        """Return what the second check refuses; a plan that says all is believed about what it was seen with.

        Where plan and verdict turn out to disagree, nothing is believed any more.
        """
        memory = self._memory
        if memory is None or planned.plan is None or not planned.plan.complete:
            return self._second_check(question, records, found)
        if not unseen:
            return {}
        refused = self._second_check(question, records, unseen)
        if refused:
            self._memory = None
            self.mismatches += 1
            return self._second_check(question, records, found)
        memory.see(planned, [records[index] for index in unseen])
        return {}

    def _second_check(
        self, question: Mapping[str, Any], records: Sequence[Record], found: Sequence[int]
    ) -> dict[int, list[Row]]:
        """Return the records among `found` that the policy refuses when it is asked about each."""
        refused: dict[int, list[Row]] = {}
        for start in range(0, len(found), SCAN_BATCH):
            batch = found[start : start + SCAN_BATCH]
            answer = self._point.read({**question, "candidates": [records[one] for one in batch]}).document
            admitted = frozenset(answer["admitted"]) if answer["allow"] is True else frozenset()
            refused |= {batch[index]: [] for index in range(len(batch)) if index not in admitted}
            for row in answer["excluded"]:
                refused.setdefault(batch[row["index"]], []).append(row)
        return refused


def write_outcomes(answer: Mapping[str, Any], question: Mapping[str, Any]) -> list[Outcome]:
    """Return what the gate makes of an answer of the write policy, a candidate at a time."""
    asked, denied, held = (_by_index(answer[name]) for name in ("obligations", "deny", "quarantine"))
    allowed = frozenset(answer["allowed"])
    outcomes = []
    for index, candidate in enumerate(question["candidates"]):
        refusals = denied.get(index, [])
        if question["operation"] in _REVIEWS:
            refusals = review_refusals(answer, question["operation"])
        elif question["operation"] == "delete":
            # Forgetting carries nothing else out than a clear allow.
            refusals = refusals or [*held.get(index, []), *([_NOT_PERMITTED] if index in asked else [])]
        else:
            refusals = [*refusals, *unmet_obligations(asked.get(index, []), _findings(candidate))]
        if index not in allowed and not refusals:
            refusals = [_NOT_PERMITTED]
        if refusals:
            outcomes.append(Outcome("deny", tuple(refusals), None))
            continue
        rows = held.get(index, [])
        effect = "quarantine" if rows else "allow"
        outcomes.append(Outcome(effect, tuple(rows), answer["assign"][index]))
    return outcomes


def all_or_none(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcome of candidates that are carried out together: one refusal is that of all."""
    rows = tuple(row for one in outcomes if one.effect != "allow" for row in one.rows)
    return Outcome("deny", rows, None) if rows else outcomes[0]


def _raise_if_unaskable(failure: EngineFailureError) -> None:
    if failure.reason in _UNASKABLE:
        raise failure


def _failure(reason: str) -> Row:
    return {"rule_id": "ENGINE", "reason": reason}


def _by_index(rows: Sequence[Row]) -> dict[int, list[Row]]:
    grouped: dict[int, list[Row]] = {}
    for row in rows:
        grouped.setdefault(row["index"], []).append(row)
    return grouped


def _findings(candidate: Mapping[str, Any]) -> list[Finding]:
    """Return the findings that a candidate document names; where in the text they were, nobody knows now."""
    return [Finding(one["type"], one["field"], 0, 0, "") for one in candidate.get("findings", ())]
