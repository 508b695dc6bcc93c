"""What becomes of a batch of events that is sent: every way to deliver answers in these words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from agent_runtime_ref.export.outgoing import Outgoing


@dataclass(frozen=True, slots=True)
class Answer:
    """What a receiver said of a batch.

    `taken`: it has all of it, but for `rejected` events that it will never take. `refused`: it takes nothing
    of a batch like this, so a smaller one may tell which event is at fault. `unavailable`: it cannot be told
    whether it has any of it; the same batch is sent again.
    """

    outcome: Literal["taken", "refused", "unavailable"]
    rejected: int = 0
    reason: str = ""  # a short sentence without content; what a receiver said may be anything
    wait_seconds: float = 0.0  # for which it asks to be left alone


class Sender(Protocol):
    """A way to deliver events, which waits for the answer."""

    def send(self, events: Sequence[Outgoing]) -> Answer:
        """Hand over a batch and say what became of it; a failure is an answer, not an exception."""

    def close(self) -> None:
        """Give up connections and files."""
