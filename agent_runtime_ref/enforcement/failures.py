"""What a gate does where an engine or a store fails: it is told once, whichever gate was inside which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from agent_runtime_ref.errors import (
    DuplicateRecordError,
    EngineFailureError,
    RevisionConflictError,
    StoreError,
)

if TYPE_CHECKING:
    from agent_runtime_ref.contracts import Decision
    from agent_runtime_ref.enforcement.recorder import Call, Recorder

__all__ = ["ATTEMPTS_MAX", "Failures", "settled"]

# What moves between decision and commit is looked at again this often before the caller hears of it.
ATTEMPTS_MAX = 5
T = TypeVar("T")


def settled(attempt: Callable[[], T], attempts: int = ATTEMPTS_MAX) -> T:
    """Return what `attempt` does, made again while others are faster: the policy may say something else now.

    Raises:
        RevisionConflictError, DuplicateRecordError: they were so each time.
    """
    for _ in range(attempts - 1):
        try:
            return attempt()
        except (RevisionConflictError, DuplicateRecordError):
            continue
    return attempt()


class Failures:
    """A block in which an engine or a store may fail; see `Recorder.failures`.

    `call` and `document` may be replaced inside it, when more is known of what is asked.
    """

    __slots__ = ("_path", "_read", "_recorder", "call", "document")

    def __init__(
        self,
        recorder: Recorder,
        call: Call,
        path: str,
        document: Callable[[], Mapping[str, Any]],
        *,
        read: bool,
    ) -> None:
        self._recorder = recorder
        self._path = path
        self._read = read
        self.call = call
        self.document = document

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Tell of a failure that no gate inside has told of; the error of an engine then bears a decision."""
        if isinstance(error, EngineFailureError):
            decision: Decision | None = error.decision  # none as the engine raised it
            if decision is None:
                told = self._recorder.engine_failure(
                    self.call, error, self._path, self.document(), read=self._read
                )
                raise told from error
        elif isinstance(error, StoreError) and not error.is_told:
            self._recorder.store_failure(self.call, error)
