"""How the command is used."""

from __future__ import annotations

from agent_runtime_ref.errors.base import GovernanceError


class UsageError(GovernanceError):
    """The command was called in a way that it does not understand."""

    code = "command.usage"
    message = "{problem}"

    def __init__(self, problem: str) -> None:
        super().__init__(problem=problem)
