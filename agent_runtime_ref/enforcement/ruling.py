"""Asking the decision point, and believing only a clear answer.

Whatever goes wrong between the question and a well-formed answer ends here as an
`EngineFailureError`, whose reason says what it was. There is no way from a failure to an allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.clock import Clock
from agent_runtime_ref.compact_json import compact
from agent_runtime_ref.errors import EngineFailureError
from agent_runtime_ref.policy.engine import PolicyEngine
from agent_runtime_ref.policy.inputs import input_problem

TTL_DAYS_MAX = 36_500

READ = "memory.read"
WRITE = "memory.write"


@dataclass(frozen=True, slots=True)
class Ruling:
    """An answer of the engine whose shape has been checked."""

    document: Mapping[str, Any]
    duration_ns: int


def read_refusals(answer: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Return why a read is refused; empty only where the policy permits it and asks for nothing besides."""
    if answer["allow"] is True and answer["obligations"]:
        return ({"rule_id": "GATE", "reason": "obligation_unknown"},)
    if answer["allow"] is True and not answer["deny"]:
        return ()
    return tuple(answer["deny"]) or ({"rule_id": "GATE", "reason": "not_permitted"},)


class DecisionPoint:
    """Asks an engine, times it, and checks the shape of what comes back (the PDP as a gate sees it)."""

    def __init__(self, engine: PolicyEngine, clock: Clock) -> None:
        self.engine = engine
        self._clock = clock

    def read(self, document: Mapping[str, Any]) -> Ruling:
        """Return the read policy's answer.

        Raises:
            EngineFailureError: no usable answer; nothing may be read.
        """
        ruling = self._ask(READ, document)
        _check_read(ruling.document, len(document["candidates"]))
        return ruling

    def write(self, document: Mapping[str, Any]) -> Ruling:
        """Return the write policy's answer, one verdict for each candidate.

        Raises:
            EngineFailureError: no usable answer; nothing may be written.
        """
        ruling = self._ask(WRITE, document)
        _check_write(ruling.document, len(document["candidates"]))
        return ruling

    def _ask(self, entrypoint: str, document: Mapping[str, Any]) -> Ruling:
        problem = input_problem(entrypoint, document)
        if problem is not None:
            raise EngineFailureError("input_malformed", problem)
        started = self._clock.monotonic_ns()
        try:
            text = compact(document)
            answer = self.engine.evaluate(entrypoint, text)
        except (EngineFailureError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of the engine is no `Exception`
            raise EngineFailureError("engine_exception", type(error).__name__) from error
        duration = self._clock.monotonic_ns() - started
        if not isinstance(answer, Mapping):
            raise EngineFailureError("engine_wrong_type", type(answer).__name__)
        return Ruling(document=answer, duration_ns=duration)


def _check_read(answer: Mapping[str, Any], count: int) -> None:
    _require(isinstance(answer.get("allow"), bool), "allow")
    _check_reasons(answer, "deny")
    _check_rows(answer, "excluded", count)
    _check_indexes(answer, "admitted", count)
    _check_list(answer, "obligations")
    plan = answer.get("plan")
    _require(isinstance(plan, Mapping), "plan")
    assert isinstance(plan, Mapping)
    _require(isinstance(plan.get("complete"), bool), "plan.complete")
    _require(type(plan.get("limit")) is int and plan["limit"] >= 0, "plan.limit")
    for clause in _check_list(plan, "clauses"):
        _require(_is_clause(clause), "plan.clauses")


def _is_clause(clause: Any) -> bool:
    if not isinstance(clause, Mapping) or clause.get("role") not in ("wall", "selector", "filter"):
        return False
    classes, passed, atoms = clause.get("classes"), clause.get("passed"), clause.get("any_of")
    return (
        isinstance(clause.get("rule_id"), str)
        and isinstance(clause.get("reason"), str)
        and (classes is None or (isinstance(classes, list) and all(isinstance(one, str) for one in classes)))
        and (passed is None or isinstance(passed, str))
        and isinstance(atoms, list)
        and all(_is_atom(atom) for atom in atoms)
    )


def _is_atom(atom: Any) -> bool:
    return (
        isinstance(atom, Mapping)
        and isinstance(atom.get("attribute"), str)
        and isinstance(atom.get("operator"), str)
    )


def _check_write(answer: Mapping[str, Any], count: int) -> None:
    _check_indexes(answer, "allowed", count)
    _check_rows(answer, "deny", count)
    _check_rows(answer, "quarantine", count)
    for obligation in _check_list(answer, "obligations"):
        _require(isinstance(obligation, Mapping) and isinstance(obligation.get("type"), str), "obligations")
        _require(_is_index(obligation.get("index"), count), "obligations")
    assigned = _check_list(answer, "assign")
    _require(len(assigned) == count and all(_is_assignment(one) for one in assigned), "assign")


def _is_assignment(value: Any) -> bool:
    if not isinstance(value, Mapping) or value.get("trust_level") not in ("low", "medium", "high"):
        return False
    retention, ttl_days = value.get("retention"), value.get("ttl_days")
    if not isinstance(retention, str) or not retention.strip():
        return False
    return ttl_days is None or (type(ttl_days) is int and 1 <= ttl_days <= TTL_DAYS_MAX)


def _is_index(value: Any, count: int) -> bool:
    return type(value) is int and 0 <= value < count


def _require(holds: bool, place: str) -> None:
    if not holds:
        raise EngineFailureError("engine_wrong_type", place)


def _check_list(answer: Mapping[str, Any], name: str) -> list[Any]:
    value = answer.get(name)
    _require(isinstance(value, list), name)
    assert isinstance(value, list)
    return value


def _check_reasons(answer: Mapping[str, Any], name: str) -> None:
    for row in _check_list(answer, name):
        _require(isinstance(row, Mapping) and isinstance(row.get("rule_id"), str), name)
        _require(isinstance(row.get("reason"), str), name)


def _check_rows(answer: Mapping[str, Any], name: str, count: int) -> None:
    _check_reasons(answer, name)
    for row in answer[name]:
        _require(_is_index(row.get("index"), count), name)


def _check_indexes(answer: Mapping[str, Any], name: str, count: int) -> None:
    for index in _check_list(answer, name):
        _require(_is_index(index, count), name)
