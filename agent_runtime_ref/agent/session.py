"""What a user asked for in a thread, as a part of a turn: loaded before it, shown and enforced in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from agent_runtime_ref.agent.layers import Item
from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.curator import RuleJudge
from agent_runtime_ref.session_state import Sessions, Standing, TurnConstraints, merge, rendered

__all__ = ["SessionLayer", "StandingOf"]

# What a user always or never wants, whichever store keeps it.
StandingOf = Callable[[Caller], Iterable[Standing]]


class SessionLayer:
    """Says what a turn is held to, and how the model is told of it."""

    def __init__(self, sessions: Sessions, standing: StandingOf | None = None, *, hears: bool = True) -> None:
        """Load from `sessions`; where it `hears`, a turn is held to its own words too."""
        self.sessions = sessions
        self._standing = standing
        self._rules = RuleJudge() if hears else None

    def constraints(self, caller: Caller, purpose: str) -> TurnConstraints:
        """Return what is in force in the caller's thread.

        Raises:
            PolicyDeniedError: the policy does not let the caller read it; the turn does not go on without.
            SessionStateError: the thread's file cannot be read.
        """
        assert caller.session_id is not None
        state = self.sessions.load(caller.session_id, caller=caller, purpose=purpose)
        standing = () if self._standing is None else tuple(self._standing(caller))
        return TurnConstraints(state, standing)

    def heard(self, message: str, constraints: TurnConstraints) -> TurnConstraints:
        """Return `constraints` with those that `message` states by the rules, for this turn alone.

        Nothing is kept: what lasts is curated behind the reply, and the write gate decides about it then. The
        rules ask nobody and take a few milliseconds, 150 for the longest message. What is to hold for good
        counts here like what is to hold now.
        """
        found = () if self._rules is None else self._rules.judge(message)
        said = [replace(one, scope="session", keys_to_supersede=()) for one in found]
        return replace(constraints, state=merge(constraints.state, said)) if said else constraints

    def items(self, constraints: TurnConstraints) -> tuple[Item, ...]:
        """Return the constraints of the session as an item of its layer; none where there are none."""
        state = constraints.state
        block, shown = rendered(state)
        return (Item("constraints", block, block, state.record_ids(shown)),) if block else ()
