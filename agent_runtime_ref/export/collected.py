"""What a collector wrote down: log records of OTLP in JSON lines, as its file exporter makes them.

Whoever can write the file can write anything into it. What is no record of ours is passed over, and what
claims to be one is held to the log.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from agent_runtime_ref.errors import DocumentUnreadableError
from agent_runtime_ref.telemetry.events import EVENT_NAME_PREFIX
from agent_runtime_ref.telemetry.segments import RawLine, raw_lines

_SIGNALS = ("resourceLogs", "resourceSpans", "resourceMetrics", "resourceProfiles")
_DEPTH_MAX = 8


@dataclass(frozen=True, slots=True)
class Arrived:
    """A log record whose event name is one of ours."""

    event_name: str
    time_ns: int | None
    severity: str
    body: Any
    attributes: Mapping[str, Any]  # of a name that stands twice, the last

    @property
    def event_id(self) -> str | None:
        """The id that it gives as its own; None where that could not be one."""
        given = self.named("event_id")
        # Half of a surrogate pair is no text that anybody can look for.
        return given if isinstance(given, str) and given == given.encode(errors="ignore").decode() else None

    def named(self, name: str) -> Any:
        """The attribute of a payload field."""
        return self.attributes.get(EVENT_NAME_PREFIX + name)


def arrived_in(path: Path) -> Iterator[Arrived]:
    """Yield the records of ours in a collector's file, in the order in which they stand there.

    A last line without an end is left out: the collector is in the middle of it.

    Raises:
        DocumentUnreadableError: the file cannot be read, or a line of it is no OTLP in JSON.
    """
    for raw in raw_lines(path):
        if raw.whole and raw.data.strip():
            yield from _arrived(_document(raw))


def _document(raw: RawLine) -> Mapping[str, Any]:
    try:
        document = json.loads(raw.data)
    except (ValueError, RecursionError):
        _refuse(raw, "it is no JSON; does the file exporter write another format, or compress it?")
    if not isinstance(document, dict) or document.keys().isdisjoint(_SIGNALS):
        _refuse(raw, "it is no OTLP in JSON, as the file exporter of a collector writes it")
    return document


def _refuse(raw: RawLine, reason: str) -> NoReturn:
    raise DocumentUnreadableError(
        f"line of the collector's file not readable: {reason}", source=raw.source, line=raw.number
    )


def _arrived(document: Mapping[str, Any]) -> Iterator[Arrived]:
    for resource in _mappings(document.get("resourceLogs")):
        for scope in _mappings(resource.get("scopeLogs")):
            for record in _mappings(scope.get("logRecords")):
                name = record.get("eventName")
                if isinstance(name, str) and name.startswith(EVENT_NAME_PREFIX):
                    yield Arrived(
                        event_name=name,
                        time_ns=_whole(record.get("timeUnixNano")),
                        severity=str(record.get("severityText", "")),
                        body=_value(record.get("body"), 0),
                        attributes=dict(_pairs(_mappings(record.get("attributes")), 0)),
                    )


def _pairs(entries: Iterable[Mapping[str, Any]], depth: int) -> Iterator[tuple[str, Any]]:
    for entry in entries:
        if isinstance(entry.get("key"), str):
            yield entry["key"], _value(entry.get("value"), depth)


def _value(value: object, depth: int) -> Any:
    """Return what a value of OTLP says; a kind that we never send as it stands, so that it equals nothing."""
    if not isinstance(value, dict) or len(value) != 1 or depth > _DEPTH_MAX:
        return value
    ((kind, held),) = value.items()
    if kind == "intValue":
        number = _whole(held)
        return value if number is None else number
    if kind == "arrayValue" and isinstance(held, dict):
        return [_value(one, depth + 1) for one in held.get("values") or () if isinstance(one, dict)]
    if kind == "kvlistValue" and isinstance(held, dict):
        return dict(_pairs(_mappings(held.get("values")), depth + 1))
    return held if kind in ("stringValue", "boolValue", "doubleValue") else value


def _whole(value: object) -> int | None:
    """Return a whole number, which OTLP writes as text; None of anything else."""
    if type(value) is int:
        return value
    if isinstance(value, str) and len(value) < 25 and value.removeprefix("-").isdecimal() and value.isascii():
        return int(value)
    return None


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
