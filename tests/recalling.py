"""Stored memories and governed memories that hold them, for the tests of recall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_runtime_ref import Caller, GovernedMemory
from agent_runtime_ref.clock import timestamp
from agent_runtime_ref.contracts.stored import MemoryKind, MemorySource, StoredMemory, user_scope_of
from agent_runtime_ref.testing import NOW_US

USER = "user-42"
SCOPE = user_scope_of(USER)
DAY_US = 24 * 3600 * 1_000_000


def ago(days: float) -> str:
    """Return the instant so many days before the frozen clock's, as text."""
    return timestamp(NOW_US - int(days * DAY_US))


def stored(
    memory_id: str,
    text: str,
    *,
    captured: str | None = None,
    kept: str | None = None,
    kind: MemoryKind = MemoryKind.CONVERSATION,
    user: str = USER,
    **changes: Any,
) -> StoredMemory:
    """Return a record whose summary is its text, captured two days ago and kept one day ago."""
    source = MemorySource(f"transcript-{memory_id}", "conversation_transcript", "a title", captured or ago(2))
    return StoredMemory(memory_id, user_scope_of(user), kind, text, text, source, kept or ago(1), **changes)


class Held:
    """One user's records, in memory."""

    def __init__(self, records: Sequence[StoredMemory], user: str = USER) -> None:
        self.user_scope = user_scope_of(user)
        self.records = tuple(records)

    def read_all(self) -> Sequence[StoredMemory]:
        """Return all of them."""
        return self.records


def loaded(memory: GovernedMemory, records: Sequence[StoredMemory], user: Caller) -> None:
    """Write the records through the gate; each must be admitted."""
    for record, outcome in zip(records, memory.load_stored(records, caller=user), strict=True):
        assert getattr(outcome, "effect", outcome) == "allow", (record, outcome)
