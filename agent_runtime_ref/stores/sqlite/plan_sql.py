"""Compile a plan to SQL, generically from (attribute, operator, value); no rule is known here.

The text depends on the plan's shape alone and is cached by it; every value is bound.
"""

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

# Lists up to this length are compared one by one: SQLite would build a table for each, in each statement.
_COMPARED_MAX = 8


def numbered(text: str) -> tuple[str, tuple[int, ...]]:
    """SQL text with `?` for every marker, and the positions in the order in which they are bound."""
    positions = tuple(int(found) for found in MARKER.findall(text))
    return MARKER.sub("?", text), positions


@lru_cache(maxsize=1024)
def conditions(shape: PlanShape, *, first: int, now: int) -> tuple[str, str]:
    """The WHERE condition of a plan's walls and selectors, and the number of the first filter that fails,
    or 0.

    `first` is the position of the plan's first value, `now` that of the present instant.
    """
    cursor = Cursor(first, now)
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


def _clause_sql(clause: ClauseShape, cursor: Cursor) -> str:
    atoms = " OR ".join(_atom_sql(atom, cursor) for atom in clause.atoms) or "0"
    if clause.classes is None:
        return f"({atoms})"
    # An empty list of classes guards nothing in, so that the clause applies to no record.
    guard = _membership("r.memory_class", clause.classes, cursor, negated=True) if clause.classes else "1"
    return f"({atoms} OR {guard})"


def _atom_sql(atom: AtomShape, cursor: Cursor) -> str:
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
    return f"r.{COLUMNS.get(attribute, attribute)}"


def _column_sql(column: str, atom: AtomShape, nullable: bool, cursor: Cursor) -> str:
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
    return f"({present}{column} {COMPARISONS[atom.operator]} {cursor.take(1)})"


def _membership(column: str, arity: int, cursor: Cursor, *, negated: bool = False) -> str:
    if arity > _COMPARED_MAX or column.startswith("EXISTS"):
        return f"{column} {'NOT ' if negated else ''}IN ({cursor.take(arity)})"
    comparison, joint = ("<>", " AND ") if negated else ("=", " OR ")
    return f"({joint.join(f'{column}{comparison}{cursor.take(1)}' for _ in range(arity))})"
