"""A decision log that is made while it is read, for what needs more or other lines than gates write."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from agent_runtime_ref.runtime import Chain


class FakeLog:
    """What a memory says of its log: up to two chains, of writes and of reads, and names as they are."""

    def __init__(self, *chains: Iterable[bytes]) -> None:
        self._chains = chains

    def log_chains(self, *, read: bool) -> Iterator[Chain]:
        """One of the two, if there is one."""
        for lines in self._chains[read : read + 1]:
            yield Chain("log", None, lambda lines=lines: iter(lines))  # type: ignore[misc]

    def log_name(self, name: str) -> str:
        """The name."""
        return name

    def pseudonym(self, tenant_id: str, subject: str) -> str:
        """A name that nothing has."""
        return f"subject:{tenant_id}:{subject}"


def event_line(event_type: str, payload: dict[str, Any], *, trace_id: str, at: str) -> bytes:
    """Return an event as a line of a log, without a seal."""
    event = {
        "type": "event",
        "event_type": event_type,
        "trace_id": trace_id,
        "timestamp": at,
        "payload": payload,
    }
    return json.dumps(event, separators=(",", ":")).encode()
