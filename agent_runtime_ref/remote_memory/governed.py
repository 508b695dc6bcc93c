"""One user's file behind the gates: its records pass the write gate, and recall the read gate.

The file stays what it is, and is never written by looking. A governed memory beside it, in this process,
holds what the write policy admits of it, and takes what is appended meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.contracts.stored import MemoryKind, StoredMemory
from agent_runtime_ref.enforcement.write import Outcome
from agent_runtime_ref.errors import RemoteMemoryScopeError
from agent_runtime_ref.recall.candidates import retracted_ids
from agent_runtime_ref.recall.engine import Ranker
from agent_runtime_ref.recall.hits import RecallResult
from agent_runtime_ref.remote_memory.store import RemoteMemoryStore, user_scope_of
from agent_runtime_ref.runtime import GovernedMemory

__all__ = ["LOCAL_TENANT", "GovernedFile"]

LOCAL_TENANT = "local"


class GovernedFile:
    """Recall and profile of one user's file, as far as the policies show them. Thread-safe."""

    def __init__(
        self,
        store: RemoteMemoryStore,
        *,
        caller: Caller,
        open_memory: Callable[[], GovernedMemory] = lambda: GovernedMemory.open("memory:"),
    ) -> None:
        """Name the file and who looks; nothing is opened before the first look.

        Raises:
            RemoteMemoryScopeError: the file is not that of the caller's subject.
        """
        if user_scope_of(caller.own_subject) != store.user_scope:
            raise RemoteMemoryScopeError(f"`{store.path}` belongs to another user scope")
        self.store = store
        self.caller = caller
        self._open_memory = open_memory
        self._guard = threading.Lock()
        self._memory: GovernedMemory | None = None
        self._taken: Sequence[StoredMemory] = ()
        self._outcomes: list[tuple[str, Outcome]] = []

    def recall(
        self,
        text: str,
        *,
        purpose: str = "answer_generation",
        limit: int = 5,
        ranker: Ranker | None = None,
    ) -> RecallResult:
        """Return the user's conversations that answer `text`; see `GovernedMemory.recall`.

        Raises:
            RemoteMemoryError: the file cannot be read, or is not this user's.
        """
        with self._guard:
            memory = self._current()
            return memory.recall(text, caller=self.caller, purpose=purpose, limit=limit, ranker=ranker)

    def latest_profile(self, *, purpose: str = "personalization") -> StoredMemory | None:
        """Return the snapshot that was captured last, as far as the policy shows it."""
        with self._guard:
            return self._current().latest_profile(caller=self.caller, purpose=purpose)

    def outcomes(self) -> list[tuple[str, Outcome]]:
        """Return what the write gate made of each record of the file, by id, in the file's order."""
        with self._guard:
            self._current()
            return list(self._outcomes)

    def close(self) -> None:
        """Give up the memory in this process; the next look makes another."""
        with self._guard:
            self._forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _current(self) -> GovernedMemory:
        """Return the memory with all that is in the file by now."""
        records = self.store.read_all()
        if self._memory is not None and records is self._taken:
            return self._memory
        added = records[len(self._taken) :] if self._continues(records) else None
        if added is None or any(one.retracts is not None for one in added):
            self._forget()  # the file is another, or something in it was taken back
            added = records
        if self._memory is None:
            self._memory = self._open_memory()
        gone = retracted_ids(records)
        kept = [one for one in added if one.kind is not MemoryKind.RETRACTION and one.memory_id not in gone]
        try:
            outcomes = self._memory.load_stored(kept, caller=self.caller)
        except BaseException:
            self._forget()  # half of a file is none
            raise
        self._outcomes += [(one.memory_id, outcome) for one, outcome in zip(kept, outcomes, strict=True)]
        self._taken = records
        return self._memory

    def _continues(self, records: Sequence[StoredMemory]) -> bool:
        """Tell whether `records` begin with those that were taken."""
        known = len(self._taken)
        return known <= len(records) and (not known or records[known - 1] is self._taken[-1])

    def _forget(self) -> None:
        if self._memory is not None:
            self._memory.close()
        self._memory, self._taken, self._outcomes = None, (), []
