"""The attributes of a stored record that a plan may name, and whether a plan keeps to them."""

from decimal import Decimal
from typing import Any, NamedTuple

from agent_runtime_ref.clock import microseconds
from agent_runtime_ref.contracts import Atom, MemoryRecord, Plan
from agent_runtime_ref.errors import StoreCapabilityError

TRUST_RANKS = {"low": 1, "medium": 2, "high": 3}
TRUST_LEVELS = {rank: level for level, rank in TRUST_RANKS.items()}


class Attribute(NamedTuple):
    """Type of an attribute, and whether a record may lack it."""

    type: type
    nullable: bool = False


ATTRIBUTES: dict[str, Attribute] = {
    "record_id": Attribute(str),
    "tenant_id": Attribute(str),
    "subject": Attribute(str, nullable=True),
    "memory_class": Attribute(str),
    "kind": Attribute(str),
    "key": Attribute(str, nullable=True),
    "source": Attribute(str),
    "provenance": Attribute(str),
    "provenance_known": Attribute(bool),
    "trust_rank": Attribute(int),
    "confidence_millionths": Attribute(int),
    "created_ns": Attribute(int),
    "expires_ns": Attribute(int, nullable=True),
    "status": Attribute(str),
    "revision": Attribute(int),
    "outranked": Attribute(bool),
    "derived": Attribute(bool),
}

EQUALITY = frozenset({"eq", "ne"})
MEMBERSHIP = frozenset({"in", "not_in"})
ORDER = frozenset({"lt", "lte", "gt", "gte"})
PRESENCE = frozenset({"is_null", "not_null"})
ROLES = frozenset({"wall", "selector", "filter"})


def check_plan(plan: Plan, *, store: str) -> None:
    """Refuse what a store would have to guess about.

    Raises:
        StoreCapabilityError: an unknown role, attribute or operator, or a value of another type than the
            attribute.
    """
    for clause in plan.clauses:
        if clause.role not in ROLES:
            raise StoreCapabilityError(store, f"clause role `{clause.role}` of rule {clause.rule_id}")
        for atom in clause.any_of:
            problem = atom_problem(atom)
            if problem:
                raise StoreCapabilityError(store, f"{problem} in the plan of rule {clause.rule_id}")


def atom_problem(atom: Atom) -> str | None:
    """What is wrong with an atom, or None."""
    attribute = ATTRIBUTES.get(atom.attribute)
    if attribute is None:
        return f"attribute `{atom.attribute}`"
    operator, value = atom.operator, atom.value
    if operator in PRESENCE:
        return None
    if operator in EQUALITY:
        fits = value is None or type(value) is attribute.type
    elif operator in MEMBERSHIP:
        fits = isinstance(value, list | tuple) and all(type(one) is attribute.type for one in value)
    elif operator in ORDER:
        fits = type(value) is attribute.type and attribute.type is not bool
    else:
        return f"operator `{operator}`"
    return None if fits else f"value of `{atom.attribute}` for `{operator}`"


def provenance_known(provenance: str) -> bool:
    """Whether a provenance says anything at all."""
    return provenance.strip().casefold() not in ("", "unknown")


def confidence_millionths(confidence: float) -> int:
    """A confidence as the policy sees it: an integer, rounded down, so that a floor holds exactly."""
    # By its decimal digits: in binary 0.57 times a million falls just short of 570,000.
    return int(Decimal(repr(confidence)) * 1_000_000)


def record_attributes(record: MemoryRecord, *, outranked: bool) -> dict[str, Any]:
    """The candidate document of a record; whether it is outranked only a store can know."""
    assert record.created_at is not None, "a record is given its instant before it is stored"
    expires = None if record.expires_at is None else microseconds(record.expires_at) * 1000
    return {
        "record_id": record.memory_id,
        "tenant_id": record.tenant_id,
        "subject": record.subject,
        "memory_class": record.memory_class,
        "kind": record.kind,
        "key": record.key,
        "source": record.source,
        "provenance": record.provenance,
        "provenance_known": provenance_known(record.provenance),
        "trust_rank": TRUST_RANKS[record.trust_level],
        "confidence_millionths": confidence_millionths(record.confidence),
        "created_ns": microseconds(record.created_at) * 1000,
        "expires_ns": expires,
        "status": record.status,
        "revision": record.revision,
        "outranked": outranked,
        "derived": bool(record.derived_from),
    }
