"""Plans of questions that were asked before: a replay asks the same thing a thousand times over.

An answer is used again only for a question that is the same in everything. Where the text of the policies
proves that an instant does nothing but move the instants in a plan (`policy.shift`), the instant is left out
of what has to be the same, and the plan is moved.
"""

from __future__ import annotations

import marshal
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import itemgetter
from typing import Any

from agent_runtime_ref.contracts import Atom, Clause, Plan
from agent_runtime_ref.enforcement.rows import Rows
from agent_runtime_ref.stores.attributes import ATTRIBUTES
from agent_runtime_ref.stores.plan_eval import RowTest, row_passes, row_tests

__all__ = ["PlanMemory", "Planned"]

Record = Mapping[str, Any]

QUESTIONS_MAX = 2_048
SHAPES_MAX = 100_000
_NOT_IN_KEY = frozenset({"now_ns", "candidates"})
_MARSHAL_VERSION = 2  # without references, so that the same value has the same bytes
# All attributes of a record but those that only tell which one it is and when it was made.
_SHAPE = (
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
_shape_of = itemgetter(*_SHAPE)
_SHAPED = frozenset(_SHAPE)


@dataclass(frozen=True, slots=True)
class Planned:
    """What the policy answered to a question without candidates."""

    denied: tuple[Mapping[str, Any], ...]
    plan: Plan | None  # None: denied
    now_ns: int
    moving: tuple[int, ...] | None = None  # clauses with an instant in them; None: not known yet
    # Shapes of records that plan and policy both admitted; of another record of such a shape only the clauses
    # that look beyond the shape can say something else.
    seen: set[Any] = field(default_factory=set)

    beyond: tuple[int, ...] = field(init=False)  # clauses of the plan that look beyond the shape

    def __post_init__(self) -> None:
        """Find the clauses that look beyond the shape; moved ones stay where they are."""
        clauses = () if self.plan is None else self.plan.clauses
        beyond = (
            index
            for index, clause in enumerate(clauses)
            if not all(atom.attribute in _SHAPED for atom in clause.any_of)
        )
        object.__setattr__(self, "beyond", tuple(beyond))

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

    def admitted(self, records: Sequence[Record], plan: Plan) -> tuple[list[int], list[int]]:
        """Return which records `plan`, this one at its instant, admits, and the first of each new shape."""
        if not isinstance(records, Rows):
            records = Rows.of(records, tuple(ATTRIBUTES))
        shape_of = _shape_in(records.names)
        rest = row_tests([plan.clauses[index] for index in self.beyond], records.names)
        whole: list[RowTest] = []
        found: list[int] = []
        unseen: dict[Any, int] = {}
        for index, row in enumerate(records.values):
            shape = shape_of(row)
            known = shape in self.seen
            if not known:
                whole = whole or row_tests(plan.clauses, records.names)
            if row_passes(rest if known else whole, row):
                found.append(index)
                if not known:
                    unseen.setdefault(shape, index)
        return found, list(unseen.values())


class PlanMemory:
    """Remembers the answers to the questions asked last."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, Planned] = OrderedDict()
        self._shapes = 0

    @staticmethod
    def key(question: Mapping[str, Any]) -> bytes | None:
        """Return what has to be the same; None of a question whose instant is none."""
        now_ns = question.get("now_ns")
        if type(now_ns) is not int or now_ns < 1:
            return None
        rest = {name: value for name, value in question.items() if name not in _NOT_IN_KEY}
        return marshal.dumps(rest, _MARSHAL_VERSION)

    def get(self, key: bytes) -> Planned | None:
        """Return the answer to a question that is known, at whatever instant."""
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
        return known

    def keep(self, key: bytes, answer: Planned) -> Planned:
        """Remember the first answer to a question, or settle it by a second one, at another instant.

        Where the two differ by more than moved instants, the later one is remembered as the first.
        """
        first = self._known.get(key)
        moving = None if first is None else _moving(first, answer)
        if first is not None and moving is not None:
            answer = replace(answer, moving=moving, seen=first.seen)
        elif first is not None:
            self._shapes -= len(first.seen)
        self._known[key] = answer
        if len(self._known) > QUESTIONS_MAX:
            _, gone = self._known.popitem(last=False)
            self._shapes -= len(gone.seen)
        return answer

    def see(self, planned: Planned, records: Sequence[Record]) -> None:
        """Note that the policy itself admitted `records`, as the plan did."""
        before = len(planned.seen)
        planned.seen.update(map(_shape_of, records))
        self._shapes += len(planned.seen) - before
        if self._shapes > SHAPES_MAX:
            for one in self._known.values():
                one.seen.clear()
            self._shapes = 0


@lru_cache(maxsize=16)
def _shape_in(names: tuple[str, ...]) -> Callable[[Sequence[Any]], Any]:
    """Return what takes the shape of a record out of a row."""
    return itemgetter(*(names.index(name) for name in _SHAPE))


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
