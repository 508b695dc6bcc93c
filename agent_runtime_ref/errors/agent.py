"""What can go wrong in a turn of the runtime beside its gates."""

from __future__ import annotations

from agent_runtime_ref.errors.base import GovernanceError


class ModelError(GovernanceError):
    """The model gave no answer that could be used; `reason` says what it did instead.

    `timeout`, `unreachable`, `refused` (a status other than 200), `malformed`, `too_large`, `too_many_steps`.
    """

    code = "agent.model"
    message = "the model gave no usable answer: {reason} ({detail}); nothing was answered"

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason=reason, detail=detail)
        self.reason = reason
        self.detail = detail

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by position, as it is raised."""
        return (type(self), (self.reason, self.detail))


class ToolError(GovernanceError):
    """A tool cannot be called so: there is none of that name, or its arguments are not those it takes."""

    code = "agent.tool"
    message = "tool call not possible: {problem}"

    def __init__(self, problem: str) -> None:
        super().__init__(problem=problem)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by position, as it is raised."""
        return (type(self), (self.values["problem"],))
