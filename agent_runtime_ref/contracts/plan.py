"""The read plan: what of the policy a store can carry out by itself, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["Atom", "Clause", "Plan"]


class Atom(NamedTuple):
    """One comparison of an attribute of the candidate document with a value."""

    attribute: str
    operator: str  # eq ne in not_in lt lte gt gte is_null not_null
    value: Any = None


class Clause(NamedTuple):
    """One rule of the plan; a record passes it if any atom holds, or if it is of none of `classes`."""

    role: str  # wall, selector or filter
    rule_id: str
    reason: str
    any_of: tuple[Atom, ...]
    classes: tuple[str, ...] | None = None  # None: the clause applies to every record
    passed: str | None = None  # the selection_reason that it stands for


@dataclass(frozen=True, slots=True)
class Plan:
    """All clauses, in the order of their rule ids: the first failing filter gives the reason.

    INVARIANT: an incomplete plan expresses less than the policy; the gate then asks it about every match.
    """

    clauses: tuple[Clause, ...]
    complete: bool
    limit: int

    @classmethod
    def from_decision(cls, decision: Mapping[str, Any]) -> Plan:
        """Return the plan of a read decision whose shape has been checked."""
        plan = decision["plan"]
        clauses = sorted((_clause(part) for part in plan["clauses"]), key=_order)
        return cls(tuple(clauses), plan["complete"], plan["limit"])


def _clause(part: Mapping[str, Any]) -> Clause:
    """Return one clause; lists become tuples, so that a plan can be hashed and compared."""
    classes = part.get("classes")
    return Clause(
        role=part["role"],
        rule_id=part["rule_id"],
        reason=part["reason"],
        any_of=tuple(
            Atom(atom["attribute"], atom["operator"], _frozen(atom.get("value"))) for atom in part["any_of"]
        ),
        classes=None if classes is None else tuple(classes),
        passed=part.get("passed"),
    )


def _frozen(value: object) -> object:
    """Return a list as a tuple."""
    return tuple(value) if isinstance(value, list) else value


def _order(clause: Clause) -> tuple[str, str]:
    """Return the key of the order; clauses of one rule keep the order in which the engine sorted them."""
    return clause.rule_id, clause.reason
