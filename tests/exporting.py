"""Logs and receivers that many tests of the export share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent_runtime_ref.export import AllowList, Answer, Cursor, Delivery, Outgoing, Sender
from agent_runtime_ref.export.otlp import otlp_sender
from agent_runtime_ref.export.outgoing import outgoing
from agent_runtime_ref.runtime import Chain
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.telemetry.chain import Position
from agent_runtime_ref.telemetry.logfile import LogFile, Rotation
from agent_runtime_ref.telemetry.tail import LogTail


def event_body(number: int, event_type: str = "memory_persisted", **payload: Any) -> str:
    """The body of an event line, as the gates write it."""
    return json.dumps(
        {
            "type": "event",
            "event_id": f"evt-{number:03d}",
            "schema_version": "1.0",
            "event_type": event_type,
            "trace_id": "trace-001",
            "timestamp": "2026-11-30T09:00:00.000001Z",
            "payload": {"event_id": f"evt-{number:03d}", "tenant_id": "tenant-acme", **payload},
            "redacted_fields": [],
        },
        separators=(",", ":"),
    )


def decision_body(number: int) -> str:
    """The body of a decision line, which is not exported."""
    return json.dumps({"type": "decision", "event_id": f"evt-d{number}", "n": number}, separators=(",", ":"))


def log_of(path: Path, count: int, *, begin: int = 1, rotation: Rotation | None = None) -> Path:
    """Append `count` events, each behind a decision line, to the log at `path`."""
    file = LogFile(path, rotation=rotation)
    for number in range(begin, begin + count):
        file.append([decision_body(number), event_body(number)])
    return path


def ids(*numbers: int) -> list[str]:
    """The ids of events by their numbers."""
    return [f"evt-{number:03d}" for number in numbers]


def sealed(*bodies: str) -> list[bytes]:
    """The lines of a log."""
    return [line.encode() for _, line in chain.seal_all(bodies, seq=0, prev_hash=chain.GENESIS)]


def chain_of(lines: Sequence[bytes], name: str = "log") -> Chain:
    """A chain that holds these lines, whatever they are."""

    def raw(after: int = 0) -> Iterator[bytes]:
        return chain.behind(lines, after)

    return Chain(name, None, raw)


class Recipient:
    """A receiver within the process: `decide` gives its answer to the ids of a batch."""

    def __init__(self, decide: Callable[[list[str]], Answer] = lambda _: Answer("taken")) -> None:
        self.decide = decide
        self.events: list[Outgoing] = []  # what was taken
        self.asked: list[list[str]] = []  # the ids of every batch, taken or not

    @property
    def ids(self) -> list[str]:
        """The ids of what was taken, in the order in which it came."""
        return [event.event_id for event in self.events]

    def send(self, events: Sequence[Outgoing]) -> Answer:
        """Take a batch, or not."""
        self.asked.append([event.event_id for event in events])
        answer = self.decide(self.asked[-1])
        if answer.outcome == "taken":
            self.events += events
        return answer

    def close(self) -> None:
        """Nothing is held."""


class Export:
    """One run of an export from a log file; a run more is another one of these."""

    def __init__(self, log: Path, sender: Sender, *, cursor: Cursor, **options: Any) -> None:
        self.said: list[str] = []
        self._tail = LogTail(log)
        self.cursor = cursor
        self.delivery = Delivery(cursor, sender, say=self.said.append, **options)
        self.report = self.delivery.report

    def chains(self) -> list[Chain]:
        """The only chain."""
        return [Chain("log", None, self._tail)]

    def drain(self) -> bool:
        """Deliver what there is."""
        return self.delivery.drain(self.chains())

    def pending(self) -> int:
        """What is left."""
        return self.delivery.pending(self.chains())


@contextmanager
def export_of(
    log: Path, sender: Sender, *, only: frozenset[str] | None = None, **options: Any
) -> Iterator[Export]:
    """An export whose cursor lies beside the log."""
    with Cursor(log.with_name(f"{log.name}.export")) as cursor:
        yield Export(log, sender, cursor=cursor, allowed=AllowList(only), **options)


def events(*bodies: str) -> list[Outgoing]:
    """Events as they leave the log."""
    lines = enumerate(sealed(*bodies), start=1)
    return [outgoing(line, Position("log", seq, "0" * 64), AllowList()) for seq, line in lines]


def sent(url: str | None, *batch: Outgoing) -> Answer:
    """The answer to a batch."""
    sender = otlp_sender(url)
    try:
        return sender.send(batch or events(event_body(1)))
    finally:
        sender.close()
