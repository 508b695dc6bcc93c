"""Asking the decision point, and believing only a clear answer.

Whatever goes wrong between the question and a well-formed answer ends here as an
`EngineFailureError`, whose reason says what it was. There is no way from a failure to an allow.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.clock import Clock
from agent_runtime_ref.errors import EngineFailureError
from agent_runtime_ref.policy.engine import PolicyEngine

_ENCODE = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False
).encode

READ = "memory.read"
WRITE = "memory.write"


@dataclass(frozen=True, slots=True)
class Ruling:
    """An answer of the engine whose shape has been checked."""

    document: Mapping[str, Any]
    duration_ns: int


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
        text = _ENCODE(document)
        started = self._clock.monotonic_ns()
        try:
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
    if not isinstance(answer.get("allow"), bool):
        raise EngineFailureError("engine_wrong_type", "allow")
    _check_reasons(answer, "deny")
    _check_rows(answer, "excluded", count)
    _check_indexes(answer, "admitted", count)
    _check_list(answer, "obligations")
    plan = answer.get("plan")
    if not isinstance(plan, Mapping) or not isinstance(plan.get("complete"), bool):
        raise EngineFailureError("engine_wrong_type", "plan")
    if not isinstance(plan.get("clauses"), list) or type(plan.get("limit")) is not int:
        raise EngineFailureError("engine_wrong_type", "plan")


def _check_write(answer: Mapping[str, Any], count: int) -> None:
    _check_indexes(answer, "allowed", count)
    _check_rows(answer, "deny", count)
    _check_rows(answer, "quarantine", count)
    _check_list(answer, "obligations")
    assigned = answer.get("assign")
    if not isinstance(assigned, list) or len(assigned) != count:
        raise EngineFailureError("engine_wrong_type", "assign")


def _check_list(answer: Mapping[str, Any], name: str) -> list[Any]:
    value = answer.get(name)
    if not isinstance(value, list):
        raise EngineFailureError("engine_wrong_type", name)
    return value


def _check_reasons(answer: Mapping[str, Any], name: str) -> None:
    for row in _check_list(answer, name):
        if not isinstance(row, Mapping) or not isinstance(row.get("rule_id"), str):
            raise EngineFailureError("engine_wrong_type", name)
        if not isinstance(row.get("reason"), str):
            raise EngineFailureError("engine_wrong_type", name)


def _check_rows(answer: Mapping[str, Any], name: str, count: int) -> None:
    _check_reasons(answer, name)
    for row in answer[name]:
        if type(row.get("index")) is not int or not 0 <= row["index"] < count:
            raise EngineFailureError("engine_wrong_type", name)


def _check_indexes(answer: Mapping[str, Any], name: str, count: int) -> None:
    for index in _check_list(answer, name):
        if type(index) is not int or not 0 <= index < count:
            raise EngineFailureError("engine_wrong_type", name)
