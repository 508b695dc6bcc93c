"""Items that constraints are held against, and what is left of them."""

from __future__ import annotations

from typing import Any

from agent_runtime_ref.contracts.finding import Finding
from agent_runtime_ref.session_state import Enforced, Enforcer, SessionState, in_turn, merge
from tests.constraining import Preference

BOX = {"id": "box", "title": "Plastic storage box", "price": 12, "currency": "USD"}
TIN = {"id": "tin", "title": "Tin storage box", "price": 20, "currency": "USD"}
BAG = {"id": "bag", "title": "Canvas bag", "price": 45, "currency": "USD", "attributes": {"color": "blue"}}
ITEMS = [BOX, TIN, BAG]


def enforced(
    *findings: Finding, items: Any = None, standing: tuple[Preference, ...] = (), **passed: Any
) -> Enforced:
    """Return what is left of the items in a turn with these constraints."""
    with in_turn(merge(SessionState(), findings), standing):
        return Enforcer().apply(ITEMS if items is None else items, **passed)


def ids(result: Enforced) -> list[str]:
    """Return the ids of what may be shown, best first."""
    return [item["id"] for item in result.items]
