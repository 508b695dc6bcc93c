"""Evaluate a plan over one record's attributes: the meaning that compiled plans are tested against."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent_runtime_ref.contracts import Clause, Plan

# Whether an atom is true; what a record lacks equals nothing and differs from everything. By table: replay
# evaluates plans over every record of a log, and a chain of comparisons would take three times as long.
_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "is_null": lambda value, _: value is None,
    "not_null": lambda value, _: value is not None,
    "eq": lambda value, wanted: value is not None and bool(value == wanted),
    "ne": lambda value, wanted: value is None or bool(value != wanted),
    "in": lambda value, wanted: value is not None and value in wanted,
    "not_in": lambda value, wanted: value is None or value not in wanted,
    "lt": lambda value, wanted: value is not None and bool(value < wanted),
    "lte": lambda value, wanted: value is not None and bool(value <= wanted),
    "gt": lambda value, wanted: value is not None and bool(value > wanted),
    "gte": lambda value, wanted: value is not None and bool(value >= wanted),
}


RowTest = tuple[int, tuple[str, ...] | None, tuple[tuple[int, Callable[[Any, Any], bool], Any], ...]]


def clause_passes(clause: Clause, attributes: Mapping[str, Any]) -> bool:
    """Whether a record passes a clause; a clause says nothing about classes other than its own."""
    if clause.classes is not None and attributes["memory_class"] not in clause.classes:
        return True
    # A loop: a generator would cost as much again.
    for attribute, operator, value in clause.any_of:  # noqa: SIM110
        if _HOLDS[operator](attributes[attribute], value):
            return True
    return False


def row_tests(clauses: Sequence[Clause], names: Sequence[str]) -> list[RowTest]:
    """Return clauses as `row_passes` takes them, for rows with their values in the order of `names`."""
    at = {name: place for place, name in enumerate(names)}
    return [
        (
            at["memory_class"],
            clause.classes,
            tuple((at[atom.attribute], _HOLDS[atom.operator], atom.value) for atom in clause.any_of),
        )
        for clause in clauses
    ]


def row_passes(tests: Sequence[RowTest], row: Sequence[Any]) -> bool:
    """Whether a row passes all clauses, as `clause_passes` says of each."""
    for class_at, classes, atoms in tests:
        if classes is not None and row[class_at] not in classes:
            continue
        for at, holds, value in atoms:
            if holds(row[at], value):
                break
        else:
            return False
    return True


def is_considered(plan: Plan, attributes: Mapping[str, Any]) -> bool:
    """Whether a record passes every wall and every selector; one that does not is never counted."""
    return all(clause_passes(clause, attributes) for clause in plan.clauses if clause.role != "filter")


def exclusion(plan: Plan, attributes: Mapping[str, Any]) -> str | None:
    """The reason of the first filter, in rule order, that keeps a record out; None admits it."""
    for clause in filters(plan):
        if not clause_passes(clause, attributes):
            return clause.reason
    return None


def filters(plan: Plan) -> Sequence[Clause]:
    """The plan's filters in rule order, which is the order of precedence."""
    return sorted((clause for clause in plan.clauses if clause.role == "filter"), key=lambda one: one.rule_id)
