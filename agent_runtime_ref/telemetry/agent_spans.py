"""The spans of a turn: the agent, each step of its model and each call of a tool, and what is done behind it.

Names and attributes are those of the GenAI conventions for agents. As with the gates, nothing is made where
the application has not imported the API, and no text of anybody's is on a span.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from agent_runtime_ref.telemetry import conventions as names
from agent_runtime_ref.telemetry.events import Event

__all__ = [
    "describe_turn",
    "links",
    "model_span",
    "origin",
    "tool_span",
    "turn_failed",
    "turn_span",
    "working_for",
]

_TURN: ContextVar[Any] = ContextVar("agent_runtime_ref_turn_span", default=None)
_ORIGIN: ContextVar[Any] = ContextVar("agent_runtime_ref_turn_origin", default=None)


@contextmanager
def turn_span() -> Iterator[None]:
    """Wrap a turn from its admission to its end; what its gates do is below it."""
    with _span(names.INVOKE_AGENT, "", {}, "INTERNAL") as span:
        token = _TURN.set(span)
        try:
            yield
        finally:
            _TURN.reset(token)


@contextmanager
def model_span(model: str) -> Iterator[None]:
    """Wrap one step of a model."""
    with _span(names.CHAT, model, {names.REQUEST_MODEL: model}, "CLIENT"):
        yield


@contextmanager
def tool_span(tool: str) -> Iterator[None]:
    """Wrap a call of a tool; `tool` is empty where the model named one that there is not."""
    with _span(names.EXECUTE_TOOL, tool, {names.TOOL_NAME: tool} if tool else {}, "INTERNAL"):
        yield


def turn_failed(error: BaseException) -> None:
    """Say of the turn's span that the turn failed, and by which type of error."""
    span = _TURN.get()
    if span is not None:
        _failed(span, error)


def describe_turn(events: Sequence[Event]) -> None:
    """Say of the turn's span what its events tell: the session, the agent, and what the precheck decided."""
    span = _TURN.get()
    if span is None or not events or not span.is_recording():
        return
    payload = events[0].payload
    found = {names.CONVERSATION_ID: payload.get("session_id"), names.AGENT_ID: payload.get("agent_id")}
    for event in events:
        if event.event_type == "policy_precheck":
            found |= {names.DECISION_ID: event.payload["decision_id"], names.EFFECT: event.payload["effect"]}
    span.set_attributes({name: value for name, value in found.items() if value is not None})


def origin() -> Any:
    """Return what stands for the span of the turn that is under way; None where nobody traces."""
    span = _TURN.get()
    return None if span is None else span.get_span_context()


@contextmanager
def working_for(turn: Any) -> Iterator[None]:
    """Have the spans of the block, which is behind a turn's reply, link to the span of that turn."""
    token = _ORIGIN.set(turn)
    try:
        yield
    finally:
        _ORIGIN.reset(token)


def links(trace: Any) -> list[Any]:
    """Return the links of a span that is to begin: to the turn that it works for."""
    turn = _ORIGIN.get()
    return [] if turn is None or not turn.is_valid else [trace.Link(turn)]


@contextmanager
def _span(operation: str, about: str, attributes: Mapping[str, str], kind: str) -> Iterator[Any]:
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        yield None
        return
    with trace.get_tracer(names.SCOPE).start_as_current_span(
        f"{operation} {about}".rstrip(),
        kind=trace.SpanKind[kind],
        attributes={names.OPERATION_NAME: operation, **attributes},
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield span
        except BaseException as error:
            _failed(span, error)
            raise


def _failed(span: Any, error: BaseException) -> None:
    trace: Any = sys.modules["opentelemetry.trace"]
    # The type only: a message may quote what the user wrote.
    span.set_attribute(names.ERROR_TYPE, type(error).__name__)
    span.set_status(trace.Status(trace.StatusCode.ERROR))
