"""What is wrong with a user's remote memory, or missing for it."""

from __future__ import annotations

from agent_runtime_ref.errors.base import GovernanceError


class RemoteMemoryError(GovernanceError, RuntimeError):
    """A user's remote memory could not do what was asked of it."""

    code = "remote_memory.error"
    message = "remote memory: {problem}"

    def __init__(self, problem: str) -> None:
        super().__init__(problem=problem)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by position, as it is raised."""
        return (type(self), (self.values["problem"],))


class RemoteMemoryValidationError(RemoteMemoryError, ValueError):
    """A record or a query is not one; nothing was written."""

    code = "remote_memory.validation"


class RemoteMemoryDuplicateError(RemoteMemoryValidationError):
    """A record of that id is there already; nothing was written."""

    code = "remote_memory.duplicate"


class RemoteMemoryScopeError(RemoteMemoryError):
    """A file or a record belongs to another user; nothing of it was shown."""

    code = "remote_memory.scope"


class RemoteMemoryCorruptionError(RemoteMemoryError):
    """A line inside a file is no record; the message names the line."""

    code = "remote_memory.corruption"


class ModelNotConfiguredError(RemoteMemoryError):
    """A model was about to be asked and nobody said which."""

    code = "remote_memory.model"
    message = "{problem}; name the model that is to answer"
