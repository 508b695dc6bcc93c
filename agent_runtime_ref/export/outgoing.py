"""An event on its way out of the log: what its line says, less what may not leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent_runtime_ref.clock import EPOCH, microseconds
from agent_runtime_ref.compact_json import parsed
from agent_runtime_ref.telemetry.chain import Position
from agent_runtime_ref.telemetry.events import CATALOGUE, EVENT_NAME_PREFIX, event_document
from agent_runtime_ref.telemetry.otel import display, flat_attributes
from agent_runtime_ref.telemetry.places import PLACE_FIELDS, place_of

# Without these a delivered event could be neither told from another nor found in the log.
KEPT = frozenset({"event_id", "decision_id", *PLACE_FIELDS})
REDACTED = EVENT_NAME_PREFIX + "redacted_fields"
_TYPE = b'"type":"event"'
_HEAD_BYTES = 256
_DEPTH_MAX = 32


@dataclass(frozen=True, slots=True)
class Outgoing:
    """An event that is to be delivered."""

    event_type: str
    trace_id: str
    at_us: int
    payload: Mapping[str, Any]
    redacted: tuple[str, ...]  # names of the fields that were left out, in order

    @property
    def event_id(self) -> str:
        """The id by which a duplicate is known."""
        return str(self.payload["event_id"])

    @property
    def severity(self) -> str:
        """How bad it is, by the catalogue; of an event that this version does not know, INFO."""
        known = CATALOGUE.get(self.event_type)
        return "INFO" if known is None else known.severity

    @property
    def body(self) -> str:
        """What is shown of it."""
        return display(self.event_type, self.payload)

    def attributes(self) -> dict[str, Any]:
        """The attributes of its log record; ids come last, since an SDK drops the first of too many."""
        flat = flat_attributes(self.event_type, self.trace_id, self.payload)
        if self.redacted:
            flat[REDACTED] = list(self.redacted)
        last = [EVENT_NAME_PREFIX + name for name in (*PLACE_FIELDS, "event_id")]
        return flat | {name: flat.pop(name) for name in last if name in flat}

    def to_document(self) -> dict[str, Any]:
        """Return it as a line of a JSONL trace."""
        return event_document(self.event_type, self.trace_id, self.at_us, self.payload, self.redacted)


class AllowList:
    """The payload fields that may leave: those of the catalogue, or fewer."""

    def __init__(self, only: frozenset[str] | None = None) -> None:
        """Let `only` these pass, beside the ids that an event is known by; None: all of the catalogue."""
        self._only = only

    def of(self, event_type: str) -> frozenset[str]:
        """The fields that an event of this type may carry; of one that is not known, its ids alone."""
        known = CATALOGUE.get(event_type)
        if known is None:
            return KEPT
        return known.allowed if self._only is None else (known.allowed & self._only) | KEPT


def is_event(line: bytes) -> bool:
    """Tell whether a log line is that of an event."""
    return _TYPE in line[:_HEAD_BYTES]


def outgoing(line: bytes, position: Position, allowed: AllowList) -> Outgoing:
    """Return the event in a sealed line, with its place in the log.

    Raises:
        ValueError: it is no event.
    """
    document = parsed(line)
    if not isinstance(document, dict) or document.get("type") != "event":
        raise ValueError("it is no event")
    event_type, trace_id, payload = (document.get(name) for name in ("event_type", "trace_id", "payload"))
    if not isinstance(event_type, str) or not isinstance(trace_id, str) or not isinstance(payload, dict):
        raise ValueError("its event_type, trace_id or payload is missing")
    if not isinstance(payload.get("event_id"), str):
        raise ValueError("it has no event_id")
    _require_sendable(payload)
    fields = allowed.of(event_type)
    before = document.get("redacted_fields")
    redacted = {name for name in before if isinstance(name, str)} if isinstance(before, list) else set()
    redacted |= payload.keys() - fields
    return Outgoing(
        event_type=event_type,
        trace_id=trace_id,
        at_us=_instant(document.get("timestamp")),
        payload={name: value for name, value in payload.items() if name in fields} | place_of(position),
        redacted=tuple(sorted(redacted)),
    )


def _instant(text: object) -> int:
    moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    if moment is None or moment.tzinfo is None or moment < EPOCH:
        raise ValueError("its timestamp is no instant that a log record can have")
    return microseconds(moment)


def _require_sendable(value: object, depth: int = 0) -> None:
    """Return if OTLP has a form for a value; one that had none would hold up all that come after it.

    Raises:
        ValueError: a number needs more than 64 bits, or there are lists in lists without end.
    """
    if depth > _DEPTH_MAX:
        raise ValueError("it is nested too deeply")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("it has a number of more than 64 bits")
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for one in inner:
        _require_sendable(one, depth + 1)
