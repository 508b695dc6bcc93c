"""The log against the records: what was announced and did not come about is said to have not happened.

A commit writes its log lines first and its records second. A process that ends in between leaves lines that
tell of a change which nobody was told of and no record shows. Content is in no log line, so such a change
cannot be made up for; the log gets a line that takes the word back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from agent_runtime_ref.clock import microseconds
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.telemetry.events import Event
from agent_runtime_ref.telemetry.lines import event_text

# Events that tell of a change of records. A forgetting is ended by the file that was prepared for it; that of
# single records is a change like any other.
_CHANGES = ("memory_persisted", "memory_quarantined", "memory_released", "memory_rejected")
_REMOVED = "memory_forgotten"
_EVENT = b'"event_type":"memory_'
_TAKEN_BACK = "memory_not_persisted"
_WHO = ("session_id", "tenant_id", "principal_id", "agent_id", "decision_id")
_WHAT = ("record_id", "memory_class", "kind")
_NEAR = 1 << 16


def lines_after(path: Path, seq: int) -> Iterator[bytes]:
    """Yield the whole lines of a log behind line `seq`, found by halving: a log is long and its end short."""
    with path.open("rb") as file:
        low, high = 0, file.seek(0, 2)
        while high - low > _NEAR:
            middle = (low + high) // 2
            file.seek(middle)
            file.readline()
            start = file.tell()
            number = _number(file.readline())
            if number is None or start >= high or number > seq:
                high = middle
            else:
                low = start
        file.seek(low)
        for line in file:
            number = _number(line)
            if line.endswith(b"\n") and number is not None and number > seq:
                yield line[:-1]


def takings_back(lines: Iterable[bytes]) -> list[str]:
    """Return the bodies of lines that take back what `lines` tell of and nobody has taken back yet."""
    told: dict[str, Event] = {}
    for line in lines:
        if _EVENT not in line:
            continue
        try:
            document = json.loads(line)
            event = _taken_back(document)
            if event is not None:
                told[event.event_id] = event
            elif document["event_type"] == _TAKEN_BACK:
                told.pop(document["payload"]["event_id"], None)
        except (ValueError, TypeError, KeyError, AttributeError):
            continue  # what is no line of ours tells of nothing; `trace verify` names it
    return [event_text(event) for event in told.values()]


def holds_body(lines: Iterable[bytes], digest: str) -> bool:
    """Tell whether one of `lines` is the one whose body has this digest."""
    for line in lines:
        try:
            if body_digest(chain.body(line.decode("utf-8", "surrogatepass"))) == digest:
                return True
        except ValueError:
            continue
    return False


def body_digest(body: str) -> str:
    """Return the digest by which a line is known before it has its place in the log."""
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()


def _taken_back(document: Mapping[str, Any]) -> Event | None:
    payload = document["payload"]
    one_removed = document["event_type"] == _REMOVED and "record_id" in payload
    if (document["event_type"] not in _CHANGES and not one_removed) or "duplicate_of" in payload:
        return None
    # By the line that it is about: whoever notices first, and whoever notices again, says the same.
    name = hashlib.sha256(f"{_TAKEN_BACK} {document['hash']}".encode()).hexdigest()
    kept = {field: payload[field] for field in (*_WHO, *_WHAT) if field in payload}
    at_us = microseconds(datetime.fromisoformat(document["timestamp"]))
    return Event(
        _TAKEN_BACK,
        document["trace_id"],
        at_us,
        {"event_id": f"evt-{name[:24]}", **kept, "event": document["event_type"]},
    )


def _number(line: bytes) -> int | None:
    found = chain.opened(line[:200]) if line else None
    return None if found is None else found.seq
