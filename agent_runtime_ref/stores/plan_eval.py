"""Evaluate a plan over one record's attributes: the meaning that compiled plans are tested against."""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent_runtime_ref.contracts import Atom, Clause, Plan

_ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "lt": operator.lt,
    "lte": operator.le,
    "gt": operator.gt,
    "gte": operator.ge,
}


def atom_holds(atom: Atom, attributes: Mapping[str, Any]) -> bool:
    """Whether an atom is true; what a record lacks equals nothing and differs from everything."""
    value = attributes[atom.attribute]
    match atom.operator:
        case "is_null":
            return value is None
        case "not_null":
            return value is not None
        case "ne":
            return value is None or bool(value != atom.value)
        case "not_in":
            return value is None or value not in atom.value
    if value is None:
        return False
    match atom.operator:
        case "eq":
            return bool(value == atom.value)
        case "in":
            return value in atom.value
    return _ORDERED[atom.operator](value, atom.value)


def clause_passes(clause: Clause, attributes: Mapping[str, Any]) -> bool:
    """Whether a record passes a clause; a clause says nothing about classes other than its own."""
    if clause.classes is not None and attributes["memory_class"] not in clause.classes:
        return True
    return any(atom_holds(atom, attributes) for atom in clause.any_of)


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
