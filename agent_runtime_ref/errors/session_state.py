"""What can go wrong with the constraints of a session."""

from __future__ import annotations

from agent_runtime_ref.errors.base import GovernanceError


class SessionStateError(GovernanceError, RuntimeError):
    """The files of a session could not be read or written; what was there is as it was."""

    code = "session_state.error"
    message = "session state: {problem}"

    def __init__(self, problem: str) -> None:
        super().__init__(problem=problem)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by position, as it is raised."""
        return (type(self), (self.values["problem"],))


class NoTurnError(SessionStateError):
    """Something was to be enforced where nobody said whose constraints count: that would enforce none."""

    code = "session_state.no_turn"
    message = "session state: {problem}; begin a turn with `session_state.in_turn`, or hand its context over"
