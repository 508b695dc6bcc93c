"""What a clause takes back: the budget, or that a thing is kept out.

What was kept out and is fine now is wanted softly, and so takes the place of what was said of it before; a
budget that is taken back leaves none.
"""

from __future__ import annotations

from agent_runtime_ref.curator.rules.amounts import budgets
from agent_runtime_ref.curator.rules.marker import first, tables
from agent_runtime_ref.curator.rules.session import Wish
from agent_runtime_ref.curator.rules.things import is_known, is_nameless

__all__ = ["lift_of"]


def lift_of(text: str, *, is_for_now: bool) -> Wish | None:
    """Return what the clause `text` takes back; `is_for_now`: it has a mark of this session."""
    lifts = tables("lifts")
    if budgets(text):  # it sets one
        return None
    budget = first(lifts["budget"], text)
    if budget is not None:
        return Wish(budget[0].reason, "dislike", "soft", *budget[1].span(), lifts_budget=True)
    thing = first(lifts["thing"], text)
    if thing is None:
        thing = first(lifts["known"], text)
        if thing is None or not (is_for_now or is_known(thing[1]["what"])):
            return None
    marker, match = thing
    if is_nameless(match["what"]):
        return None
    return Wish(marker.reason, "like", "soft", *match.span("what"))
