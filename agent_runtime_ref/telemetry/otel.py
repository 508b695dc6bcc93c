"""OpenTelemetry: a span per gate and a log record per event, where the application has set it up.

A library must not choose a provider. An application that has configured one has imported the API, so
the API's modules are in `sys.modules`; where they are not, nobody is listening, and importing them
(140 ms) would buy nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from agent_runtime_ref.telemetry.events import CATALOGUE, EVENT_NAME_PREFIX, Event

SCOPE = "agent_runtime_ref"
OPERATIONS = {
    "search": "search_memory",
    "get": "search_memory",
    "list": "search_memory",
    "inspect": "search_memory",
    "write": "upsert_memory",
    "delete": "delete_memory",
    "release": "upsert_memory",
    "reject": "delete_memory",
}


@contextmanager
def gate_span(operation: str, *, caller_attributes: Mapping[str, str]) -> Iterator[None]:
    """Wrap one gate call in a span of the GenAI memory convention; a no-op without an SDK."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        yield
        return
    name = OPERATIONS.get(operation, "search_memory")
    attributes = {"gen_ai.operation.name": name, **caller_attributes}
    with trace.get_tracer(SCOPE).start_as_current_span(
        name, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield
        except BaseException as error:
            # The type only: a message may quote what the user wrote.
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(trace.Status(trace.StatusCode.ERROR))
            raise


def span_fields() -> dict[str, str]:
    """Return the fields by which an event names the span it happens in; none where nobody traces."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return {}
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return {}
    return {
        "otel_trace_id": trace.format_trace_id(span.trace_id),
        "otel_span_id": trace.format_span_id(span.span_id),
    }


def is_listening() -> bool:
    """Tell whether the application has imported the API that events are handed to."""
    return "opentelemetry._logs" in sys.modules


def emit(events: Iterable[Event]) -> None:
    """Hand `events` to the application's logger provider as log records with an event name."""
    logs = sys.modules.get("opentelemetry._logs")
    if logs is None:
        return
    logger = logs.get_logger(SCOPE)
    for event in events:
        severity = CATALOGUE[event.event_type].severity
        logger.emit(
            event_name=EVENT_NAME_PREFIX + event.event_type,
            timestamp=event.at_us * 1000,
            severity_number=logs.SeverityNumber[severity],
            severity_text=severity,
            body=display(event.event_type, event.payload),
            attributes=attributes_of(event),
        )


def attributes_of(event: Event) -> dict[str, Any]:
    """Return the flat attributes of an event; nested values become JSON text, which back ends keep."""
    return flat_attributes(event.event_type, event.trace_id, event.payload)


def flat_attributes(event_type: str, trace_id: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of an event that may also have been read back from a log."""
    flat: dict[str, Any] = {EVENT_NAME_PREFIX + "event_type": event_type}
    flat[EVENT_NAME_PREFIX + "trace_id"] = trace_id
    for name, value in payload.items():
        if value is None:
            continue
        if name == "error.type":
            flat["error.type"] = value
            continue
        flat[EVENT_NAME_PREFIX + name] = _flat(value)
    if payload.get("session_id"):
        flat["gen_ai.conversation.id"] = payload["session_id"]
    if payload.get("agent_id"):
        flat["gen_ai.agent.id"] = payload["agent_id"]
    if payload.get("record_id"):
        flat["gen_ai.memory.record.id"] = payload["record_id"]
    return flat


def _flat(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return list(value)
    if isinstance(value, (Mapping, list, tuple)):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return value


def display(event_type: str, payload: Mapping[str, Any]) -> str:
    """Return the body of an event's log record: a short text to be shown."""
    effect = payload.get("effect")
    return f"{event_type} {effect}" if effect else event_type
