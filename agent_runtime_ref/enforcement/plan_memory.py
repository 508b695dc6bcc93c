"""Plans of questions that were asked before: a replay asks the same thing a thousand times over.

An answer is used again only for a question that is the same in everything. Where the text of the policies
proves that an instant does nothing but move the instants in a plan (`policy.shift`), the instant is left out
of what has to be the same, and the plan is moved.
"""

from __future__ import annotations

import marshal
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from agent_runtime_ref.contracts import Atom, Clause, Plan

__all__ = ["PlanMemory", "Planned", "shape_of"]

QUESTIONS_MAX = 2_048
SHAPES_MAX = 100_000
_NOT_IN_KEY = frozenset({"now_ns", "candidates"})
_MARSHAL_VERSION = 2  # without references, so that the same value has the same bytes
# All attributes of a record but those that only tell which one it is and when it was made.
shape_of = itemgetter(
    "tenant_id",
    "subject",
    "memory_class",
    "kind",
    "key",
    "source",
    "provenance",
    "provenance_known",
    "trust_rank",
    "confidence_millionths",
    "status",
    "revision",
    "outranked",
    "derived",
)


@dataclass(frozen=True, slots=True)
class Planned:
    """What the policy answered to a question without candidates."""

    number: int
    denied: tuple[Mapping[str, Any], ...]
    plan: Plan | None  # None: denied
    now_ns: int
    moving: tuple[int, ...] = ()  # clauses with an instant in them

    def at(self, now_ns: int) -> Plan:
        """Return the plan at another instant."""
        assert self.plan is not None, "a denied read has no plan"
        later = now_ns - self.now_ns
        if not later or not self.moving:
            return self.plan
        clauses = list(self.plan.clauses)
        for index in self.moving:
            clauses[index] = _moved(clauses[index], later)
        return Plan(tuple(clauses), self.plan.complete, self.plan.limit)


class PlanMemory:
    """Remembers the answers to the questions asked last."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, Planned] = OrderedDict()
        self._seen: set[tuple[int, Any]] = set()

    @staticmethod
    def key(question: Mapping[str, Any]) -> bytes | None:
        """Return what has to be the same; None of a question whose instant is none."""
        now_ns = question.get("now_ns")
        if type(now_ns) is not int or now_ns < 1:
            return None
        rest = {name: value for name, value in question.items() if name not in _NOT_IN_KEY}
        return marshal.dumps(rest, _MARSHAL_VERSION)

    def get(self, key: bytes) -> Planned | None:
        """Return the answer to a question that is known."""
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
        return known

    def keep(self, key: bytes, first: Planned, later: Planned) -> Planned:
        """Remember an answer, given that to the same question one nanosecond later, and return it.

        Where the two differ by more than a moved instant, nothing is remembered.
        """
        moving = _moving(first, later)
        if moving is None:
            return first
        known = replace(first, moving=moving)
        self._known[key] = known
        if len(self._known) > QUESTIONS_MAX:
            self._known.popitem(last=False)
        return known

    def is_seen(self, number: int, record: Mapping[str, Any]) -> bool:
        """Tell whether the policy itself admitted a record like this one to the question of that number."""
        return (number, shape_of(record)) in self._seen

    def see(self, number: int, record: Mapping[str, Any]) -> None:
        """Note that the policy itself admitted a record, as the plan did."""
        if len(self._seen) >= SHAPES_MAX:
            self._seen.clear()
        self._seen.add((number, shape_of(record)))


def _moving(first: Planned, later: Planned) -> tuple[int, ...] | None:
    """Return the clauses that move with the instant; None where the answers differ in another way.

    INVARIANT: two clauses that happen to be equal at one instant are two at the next, so none is lost.
    """
    if first.plan is None or later.plan is None:
        return () if first.denied == later.denied and first.plan is later.plan else None
    one, other = first.plan, later.plan
    if (one.complete, one.limit, len(one.clauses)) != (other.complete, other.limit, len(other.clauses)):
        return None
    by = later.now_ns - first.now_ns
    moving = []
    for index, (clause, after) in enumerate(zip(one.clauses, other.clauses, strict=True)):
        if clause == after:
            if any(_is_instant(atom) for atom in clause.any_of):
                return None  # an instant that does not move cannot be told from one that does
            continue
        if _moved(clause, by) != after:
            return None
        moving.append(index)
    return tuple(moving)


def _moved(clause: Clause, by: int) -> Clause:
    """Return a clause with its instants moved."""
    atoms = tuple(
        Atom(atom.attribute, atom.operator, atom.value + by) if _is_instant(atom) else atom
        for atom in clause.any_of
    )
    return clause._replace(any_of=atoms)


def _is_instant(atom: Atom) -> bool:
    return atom.attribute in ("created_ns", "expires_ns") and type(atom.value) is int
