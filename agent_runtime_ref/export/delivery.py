"""From the log to a receiver: batch after batch, and the cursor moves when a batch was acknowledged.

Delivery is at least once. Whatever ends the process in the middle, the batches of its last second are sent
again, and their events carry the ids that they had.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from agent_runtime_ref.export.answers import Answer, Sender
from agent_runtime_ref.export.batches import Batch, Walk
from agent_runtime_ref.export.cursor import Cursor
from agent_runtime_ref.export.outgoing import AllowList, Outgoing
from agent_runtime_ref.runtime import Chain

EVENTS_MAX = 128  # of a batch
SAVE_SECONDS = 1.0  # to save means to wait for the disk, which those who write to the log wait for as well
PAUSE_FIRST, PAUSE_MAX = 1.0, 10.0  # seconds between attempts at a receiver that is not there
ASKED_MAX = 300.0  # longer than that nobody is left alone, whatever he asks for

Say = Callable[[str], None]


@dataclass(slots=True)
class Report:
    """What an export did."""

    sent: int = 0  # events that the receiver has
    failed: int = 0  # events that it refused for good, or that could not be read from the log
    cut: int = 0  # lines of the log that were gone before they were delivered
    unavailable: str | None = None  # why nothing more could be delivered


class Delivery:
    """Delivers what has not been delivered of the chains of a log."""

    def __init__(
        self,
        cursor: Cursor,
        sender: Sender,
        *,
        say: Say,
        allowed: AllowList | None = None,
        events_max: int = EVENTS_MAX,
        is_ending: Callable[[], bool] = lambda: False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cursor = cursor
        self._sender = sender
        self._say = say
        self._allowed = allowed or AllowList()
        self._events_max = events_max
        self._is_ending = is_ending
        self._monotonic = monotonic
        self._saved_at = monotonic()
        self._asked_for = 0.0  # seconds that the receiver is to be left alone
        self.report = Report()

    def drain(self, chains: Iterable[Chain]) -> bool:
        """Deliver all that is there; False where some of it is left: no receiver, or there is to be an end.

        Raises:
            LogNotContinuedError: the log is not the one that was delivered from.
            CursorError: it cannot be written down how far the delivery has come.
        """
        self.report.unavailable, self._asked_for = None, 0.0
        try:
            return all(self._drained(chain) for chain in chains)
        finally:
            self._cursor.save()

    def pending(self, chains: Iterable[Chain]) -> int:
        """How many events are still to be delivered."""
        return sum(self._walk(chain).pending() for chain in chains)

    def follow(
        self, chains: Callable[[], Iterable[Chain]], *, wait: Callable[[float], bool], every: float
    ) -> None:
        """Deliver what is there and what comes, until `wait`, which sleeps so many seconds, says to end.

        Between two looks `every` seconds pass; a receiver that is not there is tried less and less often, and
        one that says for how long it is to be left alone not before, up to `ASKED_MAX`.
        """
        pause = PAUSE_FIRST
        while True:
            done = self.drain(chains())
            if self._is_ending():
                return
            rest = max(pause, min(self._asked_for, ASKED_MAX))
            if not done:
                self._say(f"not delivered: {self.report.unavailable}; trying again in {rest:.0f} s")
            if wait(every if done else rest):
                return
            pause = PAUSE_FIRST if done else min(2 * pause, PAUSE_MAX)

    def _walk(self, chain: Chain) -> Walk:
        return Walk(chain, self._cursor.of(chain.name), allowed=self._allowed, events_max=self._events_max)

    def _drained(self, chain: Chain) -> bool:
        walk = self._walk(chain)
        # At every look: a log that is made anew while it is followed may be longer than the old one by then.
        walk.require_continued(str(self._cursor.path))
        held: tuple[Batch, Answer] | None = None  # a batch that was refused to its last event
        for batch in walk.batches():
            answer = self._delivered(batch.events) if batch.events else Answer("taken")
            if answer.outcome == "unavailable":
                self._asked_for = answer.wait_seconds
                return self._stopped(answer.reason)
            if answer.outcome == "refused" and held is None:
                held = batch, answer
            elif held is None:
                self._acknowledge(chain.name, batch, answer, walk)
            elif answer.outcome == "taken" and batch.events:
                self._acknowledge(chain.name, *held, walk)
                self._acknowledge(chain.name, batch, answer, walk)
                held = None
            else:  # two in a row, or nothing behind it
                break
            if self._is_ending():
                return False
        if held is None:
            return True
        return self._stopped(f"it refuses every event, so it may be no receiver of events: {held[1].reason}")

    def _stopped(self, reason: str) -> bool:
        self.report.unavailable = reason
        return False

    def _acknowledge(self, chain: str, batch: Batch, answer: Answer, walk: Walk) -> None:
        failed = batch.failed + answer.rejected
        if answer.outcome == "refused":
            self._say_refused(batch.events, answer)
        # INVARIANT: the receiver has the batch before the cursor says so.
        reached = self._cursor.of(chain).moved(batch.seq, batch.hash, failed=failed, cut=batch.cut)
        self._cursor.move(chain, reached)
        if self._monotonic() - self._saved_at >= SAVE_SECONDS:
            self._cursor.save()
            self._saved_at = self._monotonic()
        self.report.sent += len(batch.events) - answer.rejected
        self.report.failed += failed
        self.report.cut += batch.cut
        for fault in walk.faults:
            self._say(fault)
        walk.faults.clear()

    def _delivered(self, events: Sequence[Outgoing]) -> Answer:
        """Send a batch; of one that is refused, send ever smaller parts, to find what is at fault.

        Where the receiver takes none of them, the answer stays `refused`: they are given up only when it
        takes a later batch. What takes nothing is no receiver of events: a wrong address, a broken gateway.
        """
        answer = self._asked(events)
        if answer.outcome != "refused":
            return answer
        parts = _Parts()
        stopped = self._in_parts(events, parts)
        if stopped is not None:
            return stopped
        if len(parts.refused) == len(events):
            return replace(answer, rejected=len(events))
        self._say_refused(parts.refused, answer)
        return Answer("taken", rejected=parts.rejected + len(parts.refused))

    def _say_refused(self, events: Sequence[Outgoing], answer: Answer) -> None:
        for event in events:
            self._say(f"event {event.event_id} was refused for good: {answer.reason}")

    def _asked(self, events: Sequence[Outgoing]) -> Answer:
        """Send a batch and say how many of it were rejected.

        Who accepts a batch and rejects every event of it has refused it, whatever he calls that.
        """
        answer = self._sender.send(events)
        if not answer.rejected:
            return answer
        if answer.rejected >= len(events):
            return Answer("refused", reason=answer.reason or "it rejects every event")
        self._say(_partial(events, answer))
        return answer

    def _in_parts(self, events: Sequence[Outgoing], parts: _Parts) -> Answer | None:
        """Send the halves of a batch that was refused; an answer only where the receiver is gone."""
        if len(events) == 1:
            parts.refused.extend(events)
            return None
        middle = len(events) // 2
        for part in (events[:middle], events[middle:]):
            answer = self._asked(part)
            if answer.outcome == "unavailable":
                return answer
            parts.rejected += answer.rejected
            stopped = self._in_parts(part, parts) if answer.outcome == "refused" else None
            if stopped is not None:
                return stopped
        return None


@dataclass(slots=True)
class _Parts:
    """What became of the parts of a batch that was refused as a whole."""

    refused: list[Outgoing] = field(default_factory=list)
    rejected: int = 0  # events of other parts, which the receiver did not name


def _partial(events: Sequence[Outgoing], answer: Answer) -> str:
    said = f": {answer.reason}" if answer.reason else ""
    which = f"{answer.rejected} of {len(events)} events, {events[0].event_id} to {events[-1].event_id},"
    return f"{which} were refused for good{said}; `trace reconcile` names them"
