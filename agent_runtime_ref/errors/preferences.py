"""Long-term preferences: what cannot be one, and who has none."""

from __future__ import annotations

from agent_runtime_ref.errors.base import GovernanceError


class PreferenceError(GovernanceError):
    """A long-term preference could not be kept, found or removed."""

    code = "preferences.error"
    message = "preferences: {problem}"

    def __init__(self, problem: str) -> None:
        super().__init__(problem=problem)


class PreferenceInvalidError(PreferenceError):
    """What was offered as a preference lacks a part, or has one that says nothing."""

    code = "preferences.invalid"
    message = "preference $.{name}: {problem}"

    def __init__(self, name: str, problem: str) -> None:
        GovernanceError.__init__(self, name=name, problem=problem)


class AnonymousUserError(PreferenceError):
    """Nobody in particular has long-term preferences; nothing was read or written."""

    code = "preferences.anonymous"
    message = "an anonymous user has no long-term preferences; name a user"

    def __init__(self) -> None:
        GovernanceError.__init__(self)


class WritingRightError(PreferenceError):
    """Somebody other than the curator wanted to write preferences."""

    code = "preferences.writing_right"
    message = "only the curator writes preferences: {problem}"
