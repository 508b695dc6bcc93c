"""OpenTelemetry: a span per gate and a log record per event, where the application has set it up.

A library must not choose a provider. An application that has configured one has imported the API, so
the API's modules are in `sys.modules`; where they are not, nobody is listening, and importing them
(140 ms) would buy nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any

from agent_runtime_ref.telemetry import conventions as names
from agent_runtime_ref.telemetry import metrics
from agent_runtime_ref.telemetry.agent_spans import links
from agent_runtime_ref.telemetry.events import CATALOGUE, EVENT_NAME_PREFIX, Event
from agent_runtime_ref.telemetry.spans import current_ids

_OF_ONE_RECORD = frozenset(
    {"memory_persisted", "memory_quarantined", "memory_released", "memory_rejected", "memory_forgotten"}
)
# The span of the gate that is under way in this context: what its events tell is said of it as well.
_SPAN: ContextVar[Any] = ContextVar("agent_runtime_ref_gate_span", default=None)


@contextmanager
def gate_span(operation: str) -> Iterator[None]:
    """Wrap one gate call in a span of the GenAI memory convention, and measure it; without an SDK a no-op."""
    begun = perf_counter()
    failure: BaseException | None = None
    try:
        with _spanned(operation):
            yield
    except BaseException as error:
        failure = error
        raise
    finally:
        metrics.timed(operation, perf_counter() - begun, failure)


@contextmanager
def _spanned(operation: str) -> Iterator[None]:
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        yield
        return
    name = names.OPERATIONS.get(operation, "search_memory")
    attributes = {names.OPERATION_NAME: name, names.OPERATION: operation}
    with trace.get_tracer(names.SCOPE).start_as_current_span(
        name,
        attributes=attributes,
        links=links(trace),
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        token = _SPAN.set(span)
        try:
            yield
        except BaseException as error:
            # The type only: a message may quote what the user wrote.
            span.set_attribute(names.ERROR_TYPE, type(error).__name__)
            span.set_status(trace.Status(trace.StatusCode.ERROR))
            raise
        finally:
            _SPAN.reset(token)


def describe(events: Sequence[Event]) -> None:
    """Say of the span of this gate what its events tell: who, what was decided, and about which records."""
    span = _SPAN.get()
    if span is None or not events or not span.is_recording():
        return
    span.set_attributes(_span_attributes(events))


def _span_attributes(events: Sequence[Event]) -> dict[str, Any]:
    payload = events[0].payload
    found: dict[str, Any] = {
        names.CONVERSATION_ID: payload.get("session_id"),
        names.AGENT_ID: payload.get("agent_id"),
    }
    decided = [one.payload for one in events if "effect" in one.payload]
    if len(decided) == 1:
        found[names.DECISION_ID] = decided[0].get("decision_id")
        found[names.EFFECT] = decided[0]["effect"]
        found[names.RULE_IDS] = list(decided[0].get("rule_ids", ()))
    records = [one.payload["record_id"] for one in events if _is_about_a_record(one)]
    if len(records) == 1:
        found[names.MEMORY_RECORD_ID] = records[0]
    numbers = [*(1 for _ in records), *map(_shown_or_removed, events)]
    told = [one for one in numbers if one is not None]
    found[names.MEMORY_RECORD_COUNT] = sum(told) if told else None
    return {name: value for name, value in found.items() if value is not None}


def _is_about_a_record(event: Event) -> bool:
    return event.event_type in _OF_ONE_RECORD and "record_id" in event.payload


def _shown_or_removed(event: Event) -> int | None:
    """How many records an event tells of that it does not name by themselves."""
    if event.event_type == "retrieval":
        selected = event.payload.get("selected")
        return None if selected is None else len(selected)
    if (
        event.event_type != "memory_forgotten"
        or "record_id" in event.payload
        or "counts" not in event.payload
    ):
        return None
    return 0 if event.payload.get("dry_run") else sum(event.payload["counts"].values())


def span_fields() -> dict[str, str]:
    """Return the fields by which an event names the span it happens in; none where nobody traces."""
    return dict(zip(("otel_trace_id", "otel_span_id"), current_ids() or (), strict=False))


def is_listening() -> bool:
    """Tell whether the application has imported the API that events are handed to."""
    return "opentelemetry._logs" in sys.modules


def emit(events: Iterable[Event]) -> None:
    """Hand `events` to the application's logger provider as log records with an event name."""
    logs = sys.modules.get("opentelemetry._logs")
    if logs is None:
        return
    logger = logs.get_logger(names.SCOPE)
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
    flat: dict[str, Any] = {names.EVENT_TYPE: event_type, names.TRACE_ID: trace_id}
    for name, value in payload.items():
        if value is None:
            continue
        if name == names.ERROR_TYPE:
            flat[names.ERROR_TYPE] = value
            continue
        flat[EVENT_NAME_PREFIX + name] = _flat(value)
    if payload.get("session_id"):
        flat[names.CONVERSATION_ID] = payload["session_id"]
    if payload.get("agent_id"):
        flat[names.AGENT_ID] = payload["agent_id"]
    if payload.get("record_id"):
        flat[names.MEMORY_RECORD_ID] = payload["record_id"]
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
