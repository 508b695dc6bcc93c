"""What a user asked for in a thread, as a part of a turn: loaded before it, shown and enforced in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agent_runtime_ref.agent.layers import Item
from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.session_state import Sessions, Standing, TurnConstraints, rendered

__all__ = ["SessionLayer", "StandingOf"]

# What a user always or never wants, whichever store keeps it.
StandingOf = Callable[[Caller], Iterable[Standing]]


class SessionLayer:
    """Says what a turn is held to, and how the model is told of it."""

    def __init__(self, sessions: Sessions, standing: StandingOf | None = None) -> None:
        self.sessions = sessions
        self._standing = standing

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

    def items(self, constraints: TurnConstraints) -> tuple[Item, ...]:
        """Return the constraints of the session as an item of its layer; none where there are none."""
        state = constraints.state
        block, shown = rendered(state)
        return (Item("constraints", block, block, state.record_ids(shown)),) if block else ()
