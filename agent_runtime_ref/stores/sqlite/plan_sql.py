"""Compile a plan to SQL, generically from (attribute, operator, value); no rule is known here.

The text depends on the plan's shape alone and is cached by it; every value is bound. Whatever the compiler
does not know it refuses: a condition left out would widen the answer.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from agent_runtime_ref.contracts import Atom, Clause, Plan
from agent_runtime_ref.errors import StoreCapabilityError
from agent_runtime_ref.stores.attributes import ATTRIBUTES, check_plan
from agent_runtime_ref.stores.plan_eval import filters

_INT64_MAX = 2**63 - 1
# Well under SQLite's own limit of 32,766, so that the refusal is ours and names the reason.
_VALUES_MAX = 30_000

# Lists up to this length are compared one by one: SQLite would build a table for each, in each statement.
_COMPARED_MAX = 8

_COLUMNS = {"record_id": "memory_id", "created_ns": "created_us", "expires_ns": "expires_us"}
_COMPARISONS = {"lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_MARKER = re.compile(r"\$(\d+)\$")


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


def numbered(text: str) -> tuple[str, tuple[int, ...]]:
    """SQL text with `?` for every marker, and the positions in the order in which they are bound."""
    positions = tuple(int(found) for found in _MARKER.findall(text))
    return _MARKER.sub("?", text), positions


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


@lru_cache(maxsize=1024)
def conditions(shape: PlanShape, *, first: int, now: int) -> tuple[str, str]:
    """The WHERE condition of a plan's walls and selectors, and the number of the first filter that fails,
    or 0.

    `first` is the position of the plan's first value, `now` that of the present instant.
    """
    cursor = _Cursor(first, now)
    considered = [_clause_sql(clause, cursor) for clause in shape.considered]
    failing = "".join(
        f" WHEN NOT {_clause_sql(clause, cursor)} THEN {number}"
        for number, clause in enumerate(shape.filters, 1)
    )
    verdict = f"CASE{failing} ELSE 0 END" if failing else "0"
    return " AND ".join(considered) or "1", verdict


def outranked_sql(now: int) -> str:
    """Whether another active, unexpired record of higher trust is about the same key of the same subject."""
    return (
        "EXISTS(SELECT 1 FROM records o WHERE o.tid=r.tid AND o.key=r.key AND o.subject IS r.subject"
        " AND o.status='active' AND o.key IS NOT NULL AND o.trust_rank>r.trust_rank"
        f" AND (o.expires_us IS NULL OR o.expires_us>{marker(now)}))"
    )


class _Cursor:
    """Hands out the positions of values in the order in which `_clause_shape` collected them."""

    def __init__(self, first: int, now: int) -> None:
        self.position = first
        self.now = now

    def take(self, count: int) -> str:
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
    if operator in _COMPARISONS:
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


def _clause_sql(clause: ClauseShape, cursor: _Cursor) -> str:
    atoms = " OR ".join(_atom_sql(atom, cursor) for atom in clause.atoms) or "0"
    if clause.classes is None:
        return f"({atoms})"
    # An empty list of classes guards nothing in, so that the clause applies to no record.
    guard = _membership("r.memory_class", clause.classes, cursor, negated=True) if clause.classes else "1"
    return f"({atoms} OR {guard})"


def _atom_sql(atom: AtomShape, cursor: _Cursor) -> str:
    """A condition that is 0 or 1, never NULL: NOT over it must mean what it says."""
    if atom.operator in ("never", "always"):
        return "0" if atom.operator == "never" else "1"
    nullable = ATTRIBUTES[atom.attribute].nullable
    if atom.operator in ("is_null", "not_null") and not nullable:
        return "0" if atom.operator == "is_null" else "1"
    if atom.attribute == "tenant_id" and atom.operator == "eq":  # the wall: looked up once for a statement
        return f"r.tid IS (SELECT i.tid FROM tenants i WHERE i.tenant_id={cursor.take(1)})"
    if atom.attribute == "tenant_id" and atom.operator in ("in", "ne", "not_in"):
        negation = "" if atom.operator == "in" else "NOT "
        named = f"SELECT i.tid FROM tenants i WHERE i.tenant_id IN ({cursor.take(atom.arity)})"
        return f"r.tid {negation}IN ({named})"
    return _column_sql(_column(atom.attribute, cursor.now), atom, nullable, cursor)


def _column(attribute: str, now: int) -> str:
    if attribute == "outranked":
        return outranked_sql(now)
    if attribute == "tenant_id":
        return "(SELECT i.tenant_id FROM tenants i WHERE i.tid=r.tid)"
    return f"r.{_COLUMNS.get(attribute, attribute)}"


def _column_sql(column: str, atom: AtomShape, nullable: bool, cursor: _Cursor) -> str:
    present = f"{column} IS NOT NULL AND " if nullable else ""
    absent = f"{column} IS NULL OR " if nullable else ""
    match atom.operator:
        case "is_null":
            return f"{column} IS NULL"
        case "not_null":
            return f"{column} IS NOT NULL"
        case "eq":
            return f"{column} {'IS' if nullable else '='} {cursor.take(1)}"
        case "ne":
            return f"{column} {'IS NOT' if nullable else '<>'} {cursor.take(1)}"
        case "in":
            return f"({present}{_membership(column, atom.arity, cursor)})"
        case "not_in":
            return f"({absent}{_membership(column, atom.arity, cursor, negated=True)})"
    return f"({present}{column} {_COMPARISONS[atom.operator]} {cursor.take(1)})"


def _membership(column: str, arity: int, cursor: _Cursor, *, negated: bool = False) -> str:
    if arity > _COMPARED_MAX or column.startswith("EXISTS"):
        return f"{column} {'NOT ' if negated else ''}IN ({cursor.take(arity)})"
    comparison, joint = ("<>", " AND ") if negated else ("=", " OR ")
    return f"({joint.join(f'{column}{comparison}{cursor.take(1)}' for _ in range(arity))})"
