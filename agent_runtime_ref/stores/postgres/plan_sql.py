"""Compile a plan to SQL for PostgreSQL, generically from (attribute, operator, value) and no rule."""

from __future__ import annotations

from functools import lru_cache

from agent_runtime_ref.stores.attributes import ATTRIBUTES
from agent_runtime_ref.stores.plan_shape import (
    COLUMNS,
    COMPARISONS,
    MARKER,
    AtomShape,
    ClauseShape,
    Cursor,
    PlanShape,
    marker,
)


def numbered(text: str) -> tuple[str, tuple[int, ...]]:
    """SQL text with `$1`, `$2` ... for the markers, and the positions of the values that these stand for."""
    numbers: dict[int, int] = {}
    made = MARKER.sub(lambda found: f"${numbers.setdefault(int(found[1]), len(numbers) + 1)}", text)
    return made, tuple(numbers)


@lru_cache(maxsize=1024)
def conditions(shape: PlanShape, *, first: int, now: int, tenant: int | None) -> tuple[str, str]:
    """The WHERE condition of a plan's walls and selectors, and the number of the first filter that fails,
    or 0.

    `first` is the position of the plan's first value, `now` that of the present instant, `tenant` that of
    the one tenant that is looked at.
    """
    cursor = _Cursor(first, now, tenant)
    considered = [_clause_sql(clause, cursor) for clause in shape.considered]
    failing = "".join(
        f" WHEN NOT {_clause_sql(clause, cursor)} THEN {number}"
        for number, clause in enumerate(shape.filters, 1)
    )
    verdict = f"CASE{failing} ELSE 0 END" if failing else "0"
    return " AND ".join(considered) or "true", verdict


class _Cursor(Cursor):
    """Knows besides where the value of the one tenant is."""

    def __init__(self, first: int, now: int, tenant: int | None) -> None:
        super().__init__(first, now)
        self.tenant = tenant


def outranked_sql(now: int, tenant: int | None) -> str:
    """Whether another active, unexpired record of higher trust is about the same key of the same subject."""
    # By its value where it is known: by the column of another row no partition can be left out beforehand.
    owner = "r.tenant_id" if tenant is None else f"{marker(tenant)}::text"
    return (
        f"EXISTS(SELECT 1 FROM records o WHERE o.tenant_id={owner} AND o.key=r.key"
        " AND o.subject IS NOT DISTINCT FROM r.subject AND o.status='active' AND o.key IS NOT NULL"
        f" AND o.trust_rank>r.trust_rank AND (o.expires_us IS NULL OR o.expires_us>{marker(now)}::bigint))"
    )


def _clause_sql(clause: ClauseShape, cursor: _Cursor) -> str:
    atoms = " OR ".join(_atom_sql(atom, cursor) for atom in clause.atoms) or "false"
    if clause.classes is None:
        return f"({atoms})"
    # An empty list of classes guards nothing in, so that the clause applies to no record.
    guard = f"r.memory_class NOT IN ({cursor.take(clause.classes)})" if clause.classes else "true"
    return f"({atoms} OR {guard})"


def _atom_sql(atom: AtomShape, cursor: _Cursor) -> str:
    """A condition that is true or false, never NULL: NOT over it must mean what it says."""
    if atom.operator in ("never", "always"):
        return "false" if atom.operator == "never" else "true"
    nullable = ATTRIBUTES[atom.attribute].nullable
    if atom.operator in ("is_null", "not_null") and not nullable:
        return "false" if atom.operator == "is_null" else "true"
    if atom.attribute == "outranked":
        column = outranked_sql(cursor.now, cursor.tenant)
    else:
        column = f"r.{COLUMNS.get(atom.attribute, atom.attribute)}"
    return _column_sql(column, atom, nullable, cursor)


def _column_sql(column: str, atom: AtomShape, nullable: bool, cursor: _Cursor) -> str:
    present = f"{column} IS NOT NULL AND " if nullable else ""
    absent = f"{column} IS NULL OR " if nullable else ""
    match atom.operator:
        case "is_null":
            return f"{column} IS NULL"
        case "not_null":
            return f"{column} IS NOT NULL"
        case "eq":
            return f"({present}{column} = {cursor.take(1)})"
        case "ne":
            return f"({absent}{column} <> {cursor.take(1)})"
        case "in":
            return f"({present}{column} IN ({cursor.take(atom.arity)}))"
        case "not_in":
            return f"({absent}{column} NOT IN ({cursor.take(atom.arity)}))"
    return f"({present}{column} {COMPARISONS[atom.operator]} {cursor.take(1)})"
