"""What a plan asks for, apart from its values: what the SQL text of a store may depend on.

A text is made and cached by shape; every value is bound. Whatever is not known is refused: a condition left
out would widen the answer.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from agent_runtime_ref.contracts import Atom, Clause, Plan
from agent_runtime_ref.errors import StoreCapabilityError
from agent_runtime_ref.stores.attributes import ATTRIBUTES, check_plan
from agent_runtime_ref.stores.plan_eval import filters

_INT64_MAX = 2**63 - 1
# Well under what either database allows in a statement, so that the refusal is ours and names the reason.
_VALUES_MAX = 30_000

COLUMNS = {"record_id": "memory_id", "created_ns": "created_us", "expires_ns": "expires_us"}
COMPARISONS = {"lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
MARKER = re.compile(r"\$(\d+)\$")


class AtomShape(NamedTuple):
    """An atom without its values."""

    attribute: str
    operator: str
    arity: int


class ClauseShape(NamedTuple):
    """A clause without its values; `classes` is how many classes guard it, None for every class."""

    atoms: tuple[AtomShape, ...]
    classes: int | None


class PlanShape(NamedTuple):
    """What the SQL text of a plan depends on."""

    considered: tuple[ClauseShape, ...]  # walls and selectors
    filters: tuple[ClauseShape, ...]
    by_id: bool  # a selector or wall names ids, so that the index on ids is the way in


class CompiledPlan(NamedTuple):
    """A plan's shape, its values in the order of the shape, and the reasons of its filters."""

    shape: PlanShape
    values: tuple[Any, ...]
    reasons: tuple[str, ...]


def marker(position: int) -> str:
    """The mark that stands in SQL text for the value at `position`; `numbered` turns it into a parameter."""
    return f"${position}$"


def compiled(plan: Plan, *, store: str) -> CompiledPlan:
    """Check a plan and split it into shape and values.

    Raises:
        StoreCapabilityError: the plan asks for what the store does not know.
    """
    check_plan(plan, store=store)
    values: list[Any] = []
    gates = [clause for clause in plan.clauses if clause.role != "filter"]
    kept = filters(plan)
    shape = PlanShape(
        considered=tuple(_clause_shape(clause, values) for clause in gates),
        filters=tuple(_clause_shape(clause, values) for clause in kept),
        by_id=any(_names_ids(clause) for clause in gates),
    )
    if len(values) > _VALUES_MAX:
        raise StoreCapabilityError(store, f"a plan of more than {_VALUES_MAX} values")
    return CompiledPlan(shape, tuple(values), tuple(clause.reason for clause in kept))


class Cursor:
    """Hands out the positions of values in the order in which `_clause_shape` collected them."""

    def __init__(self, first: int, now: int) -> None:
        self.position = first
        self.now = now

    def take(self, count: int) -> str:
        """Marks of the next `count` values."""
        marks = ",".join(marker(self.position + offset) for offset in range(count))
        self.position += count
        return marks


def _names_ids(clause: Clause) -> bool:
    return (
        clause.classes is None
        and len(clause.any_of) == 1
        and clause.any_of[0].attribute == "record_id"
        and clause.any_of[0].operator in ("eq", "in")
    )


def _clause_shape(clause: Clause, values: list[Any]) -> ClauseShape:
    atoms = []
    for atom in clause.any_of:
        operator, bound = _normal_form(atom)
        atoms.append(AtomShape(atom.attribute, operator, len(bound)))
        values.extend(bound)
    if clause.classes is None:
        return ClauseShape(tuple(atoms), None)
    values.extend(clause.classes)
    return ClauseShape(tuple(atoms), len(clause.classes))


def _normal_form(atom: Atom) -> tuple[str, Sequence[Any]]:
    """Operator and values as the columns have them; `never` and `always` where no value can matter."""
    operator, value = atom.operator, atom.value
    if operator in ("is_null", "not_null"):
        return operator, ()
    if operator in COMPARISONS:
        return operator, (_bound(atom.attribute, operator, value),)
    if operator in ("eq", "ne"):
        value = () if value is None else (value,)
    exact = _exact(atom.attribute, value)
    if not exact:
        return ("never" if operator in ("eq", "in") else "always"), ()
    return operator, exact


def _bound(attribute: str, operator: str, value: Any) -> Any:
    """A limit in the column's unit; nanoseconds are rounded so that the comparison stays exact."""
    if ATTRIBUTES[attribute].type is not int:
        return value
    if attribute.endswith("_ns"):
        value = value // 1000 if operator in ("lte", "gt") else -(-value // 1000)
    return max(-_INT64_MAX, min(value, _INT64_MAX))


def _exact(attribute: str, values: Sequence[Any]) -> Sequence[Any]:
    """Those values in the column's unit that a record can have at all."""
    if ATTRIBUTES[attribute].type is not int:
        return values
    if attribute.endswith("_ns"):
        values = [value // 1000 for value in values if value % 1000 == 0]
    return [value for value in values if abs(value) <= _INT64_MAX]
