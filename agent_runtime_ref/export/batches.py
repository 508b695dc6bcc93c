"""A chain of the log, taken apart into batches of events, each with the place that it reaches to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from agent_runtime_ref.errors import LogNotContinuedError
from agent_runtime_ref.export.cursor import Reached
from agent_runtime_ref.export.outgoing import AllowList, Outgoing, is_event, outgoing
from agent_runtime_ref.runtime import Chain
from agent_runtime_ref.telemetry.chain import Position, opened

BATCH_BYTES_MAX = 1024 * 1024  # a receiver takes four times as much, whatever it is
FAULTS_MAX = 20


@dataclass(slots=True)
class Batch:
    """Events that are sent together, and the line that their chain is delivered up to by then."""

    seq: int
    hash: str | None
    events: list[Outgoing] = field(default_factory=list)
    size: int = 0
    failed: int = 0  # events whose lines could not be read
    cut: int = 0  # lines that are gone


class Walk:
    """Reads a chain from where it was delivered to."""

    def __init__(self, chain: Chain, reached: Reached, *, allowed: AllowList, events_max: int) -> None:
        self._chain = chain
        self._start = reached
        self._allowed = allowed
        self._events_max = events_max
        self._told = 0
        # What is wrong with the log, in sentences, for whoever runs the export; the first of many.
        self.faults: list[str] = []

    def require_continued(self, path: str) -> None:
        """Return if the log still has the line that was delivered last, or only later ones.

        Raises:
            LogNotContinuedError: it ends before that line, or has another one in its place.
        """
        if self._start.seq == 0:
            return
        line = next(self._chain.raw(self._start.seq - 1), None)
        if line is None:
            raise self._not_continued("the log ends before it", path)
        found = opened(line)
        if found is not None and found.seq == self._start.seq and found.hash != self._start.hash is not None:
            raise self._not_continued("it is another line", path)

    def batches(self) -> Iterator[Batch]:
        """Yield what is to be delivered; the last batch, perhaps without events, is the end of the chain."""
        start = self._start
        batch = Batch(start.seq, start.hash)
        for line in self._chain.raw(self._start.seq):
            event = self._event(batch, line)
            if event is None:
                continue
            batch.events.append(event)
            batch.size += len(line)
            if len(batch.events) >= self._events_max or batch.size >= BATCH_BYTES_MAX:
                yield batch
                batch = Batch(batch.seq, batch.hash)
        if batch.seq != start.seq or batch.failed:
            yield batch

    def pending(self) -> int:
        """How many events are still to be delivered; a line that cannot be read counts as one."""
        return sum(is_event(line) or opened(line) is None for line in self._chain.raw(self._start.seq))

    def _event(self, batch: Batch, line: bytes) -> Outgoing | None:
        """Return the event in a line, if it is one, after the batch was moved behind the line."""
        found = opened(line)
        if found is None:
            batch.seq, batch.hash = batch.seq + 1, None
            self._withhold(batch, line, batch.seq, "it is no log line")
            return None
        if found.seq <= batch.seq:
            self._withhold(batch, line, found.seq, "it stands behind a line with a higher number")
            return None
        cut = found.seq - batch.seq - 1
        if cut:
            self._tell(f"{cut} lines from line {batch.seq + 1} on were gone before they were delivered")
            batch.cut += cut
        event = None
        problem = _unsound(batch.hash, found.prev_hash, cut) if found.sound else "it was altered"
        batch.seq, batch.hash = found.seq, found.hash
        if problem is None and is_event(line):
            try:
                event = outgoing(line, Position(self._chain.name, found.seq, found.hash), self._allowed)
            except ValueError as error:
                problem = str(error)
        if problem is not None:
            self._withhold(batch, line, found.seq, problem)
        return event

    def _withhold(self, batch: Batch, line: bytes, seq: int, problem: str) -> None:
        """Count a line that is not what was written; what it says must not pass for an event of the log."""
        batch.failed += is_event(line) or opened(line) is None
        self._tell(f"line {seq} was not delivered: {problem}")

    def _tell(self, problem: str) -> None:
        self._told += 1
        if self._told <= FAULTS_MAX:
            self.faults.append(f"chain {self._chain.name}: {problem}")
        elif self._told == FAULTS_MAX + 1:
            self.faults.append(f"chain {self._chain.name}: and more; `trace verify` names all of them")

    def _not_continued(self, problem: str, path: str) -> LogNotContinuedError:
        return LogNotContinuedError(self._chain.name, self._start.seq, problem, path)


def _unsound(hash_before: str | None, prev_hash: str, cut: int) -> str | None:
    """Say what is wrong with a line that does not name the one before it, as far as that one is known."""
    if cut or hash_before is None or hash_before == prev_hash:
        return None
    return "it does not follow the line before it"
