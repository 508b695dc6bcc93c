"""Asking the embedded engine what it decides, many documents at a time, and reading its answers with care."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.errors import EngineFailureError
from agent_runtime_ref.policy.engine import PolicyEngine

__all__ = ["Evaluation", "Outcome"]

BATCH_MAX = 200
_WRITE_ROWS = ("deny", "quarantine", "obligations")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was decided on one candidate: which rules took part, as rows of kind, rule id and reason."""

    admitted: bool
    rows: tuple[tuple[str, str, str], ...]
    failed: bool = False  # the engine gave no clear answer

    @property
    def rule_ids(self) -> tuple[str, ...]:
        """The rules that took part."""
        return tuple(dict.fromkeys(rule_id for _, rule_id, _ in self.rows))

    @property
    def is_clear_allow(self) -> bool:
        """Whether it is let in and no rule has anything against it or to do with it."""
        return self.admitted and not self.rows and not self.failed


_FAILED = Outcome(False, (), failed=True)
_LEAST = "low"


class Evaluation:
    """A bundle's engine, asked in batches; what was asked before is remembered."""

    def __init__(self, engine: PolicyEngine) -> None:
        self._engine = engine
        self._known: dict[tuple[str, str, str], Outcome] = {}
        self.calls = 0

    def many(
        self, gate: str, question: Mapping[str, Any], candidates: Sequence[Mapping[str, Any]]
    ) -> list[Outcome]:
        """Return the outcome of each candidate, asked about together."""
        head = _text(question)
        keys = [(gate, head, _text(candidate)) for candidate in candidates]
        todo = {
            key: candidate for key, candidate in zip(keys, candidates, strict=True) if key not in self._known
        }
        names = list(todo)
        for start in range(0, len(names), BATCH_MAX):
            part = names[start : start + BATCH_MAX]
            outcomes = self._asked(gate, question, [todo[name] for name in part])
            self._known.update(zip(part, outcomes, strict=True))
        return [self._known[key] for key in keys]

    def one(self, gate: str, question: Mapping[str, Any], candidate: Mapping[str, Any]) -> Outcome:
        """Return the outcome of a candidate that is asked about alone, always anew."""
        return self._asked(gate, question, [candidate])[0]

    def written(self, question: Mapping[str, Any], candidate: Mapping[str, Any]) -> tuple[Outcome, str]:
        """Return the outcome of writing a candidate, and the trust that it is given."""
        answer = self._answer("write", question, [candidate])
        given = _rows(answer, "assign") if answer is not None else None
        trust = given[0].get("trust_level") if given is not None and len(given) == 1 else None
        outcome = _FAILED if answer is None else _write_outcomes(answer, 1)[0]
        return outcome, trust if isinstance(trust, str) else _LEAST

    def _asked(
        self, gate: str, question: Mapping[str, Any], candidates: Sequence[Mapping[str, Any]]
    ) -> list[Outcome]:
        answer = self._answer(gate, question, candidates)
        read = _read_outcomes if gate == "read" else _write_outcomes
        outcomes = [_FAILED] * len(candidates) if answer is None else read(answer, len(candidates))
        if len(candidates) == 1 or not self._is_of_one(gate, question, candidates, outcomes):
            return outcomes
        half = len(candidates) // 2
        return [
            *self._asked(gate, question, candidates[:half]),
            *self._asked(gate, question, candidates[half:]),
        ]

    def _is_of_one(
        self,
        gate: str,
        question: Mapping[str, Any],
        candidates: Sequence[Mapping[str, Any]],
        outcomes: Sequence[Outcome],
    ) -> bool:
        """Tell whether all may have been refused because of one of them; the others are not to suffer."""
        first = outcomes[0]
        if first.failed:
            return True
        refused = first.rows[:1] and first.rows[0][0] == "deny" and outcomes.count(first) == len(outcomes)
        if gate != "read" or not refused:
            return False
        return any(self.one(gate, question, candidates[place]) != first for place in (0, -1))

    def _answer(
        self, gate: str, question: Mapping[str, Any], candidates: Sequence[Mapping[str, Any]]
    ) -> Mapping[str, Any] | None:
        self.calls += 1
        try:
            return self._engine.evaluate(f"memory.{gate}", _text({**question, "candidates": candidates}))
        except EngineFailureError:
            return None


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _rows(answer: Mapping[str, Any], name: str) -> list[Mapping[str, Any]] | None:
    """Return a list of rows of an answer; None where there is something else."""
    value = answer.get(name)
    return value if isinstance(value, list) and all(isinstance(row, dict) for row in value) else None


def _row(kind: str, row: Mapping[str, Any]) -> tuple[str, str, str]:
    return kind, str(row.get("rule_id", "")), str(row.get("reason", row.get("type", "")))


def _read_outcomes(answer: Mapping[str, Any], count: int) -> list[Outcome]:
    """Return an outcome for each candidate of a read; an answer of another shape is none."""
    deny, excluded, admitted = _rows(answer, "deny"), _rows(answer, "excluded"), answer.get("admitted")
    if deny is None or excluded is None or not isinstance(admitted, list):
        return [_FAILED] * count
    refusals = tuple(sorted(_row("deny", row) for row in deny))
    allowed = answer.get("allow") is True and not refusals and not answer.get("obligations")
    outcomes = []
    for index in range(count):
        rows = tuple(sorted(_row("excluded", row) for row in excluded if row.get("index") == index))
        outcomes.append(Outcome(allowed and index in admitted and not rows, refusals or rows))
    return outcomes


def _write_outcomes(answer: Mapping[str, Any], count: int) -> list[Outcome]:
    """Return an outcome for each candidate of a write; an answer of another shape is none."""
    allowed = answer.get("allowed")
    tables = {name: _rows(answer, name) for name in _WRITE_ROWS}
    if not isinstance(allowed, list) or None in tables.values():
        return [_FAILED] * count
    rows = [(name, row) for name, table in tables.items() for row in table or ()]
    outcomes = []
    for index in range(count):
        own = tuple(sorted(_row(name, row) for name, row in rows if row.get("index") == index))
        refused = any(kind == "deny" for kind, _, _ in own)
        outcomes.append(Outcome(index in allowed and not refused, own))
    return outcomes
