"""What can go wrong while an utterance is judged."""

from __future__ import annotations

from agent_runtime_ref.errors.base import GovernanceError


class JudgeError(GovernanceError):
    """A judge gave no findings that could be used; nothing is kept of the turn.

    `reason` is `malformed` (the answer is none) or `budget` (the judge may not ask again).
    """

    code = "curator.judge"
    message = "the judge gave no findings: {reason} ({detail})"

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason=reason, detail=detail)
        self.reason = reason
        self.detail = detail

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by position, as it is raised."""
        return (type(self), (self.reason, self.detail))
