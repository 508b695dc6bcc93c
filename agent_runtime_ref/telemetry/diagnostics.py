"""Diagnostics: what an operator should hear about, through structlog, without content.

structlog takes half a second to import, so it is imported when there is something to say. The library
never configures it; the command says with `told_by` how its lines look, and an application configures
structlog for itself. Where nobody did, a line goes to standard error: standard output belongs to data.

Only the fields that are named here are said, whoever configured what: a list of what may leave cannot be
outgrown by a new argument.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from agent_runtime_ref.telemetry.spans import current_ids

# Field -> what it says. Ids of tenants, principals, sessions and records are none of them.
FIELDS: Mapping[str, str] = {
    "operation": "what was asked of a gate",
    "call_trace_id": "the trace that the caller named, as the decision log has it",
    "reason": "why, as a word or the class of an error",
    "code": "the code of one of this package's errors",
    "detail": "the sentence of an error about policies, a judge or a server",
    "path": "the file that it is about",
    "place": "file and line of the innermost frame of an error",
    "tool": "a tool of the application, by its name",
    "aside": "where a damaged file was put",
    "size": "bytes that were cut off",
    "lines": "lines that could not be read",
    "changes": "changes that were taken back",
    "metric": "the metric that could not be looked up",
    "job": "the job after a reply",
    "attempts": "how often it was tried",
    "status": "what became of it",
    "command": "the command that runs",
    "trace_id": "of the span that is current, where the application traces",
    "span_id": "of that span",
}
_TEXT_MAX = 500

Say = Callable[[str, str, Mapping[str, object]], None]  # level, name, fields
# Shows an error whole, its sentence and so perhaps content: for a developer who asked for it.
Trace = Callable[[BaseException], None]

_say: Say | None = None
_trace: Trace | None = None
_context: ContextVar[Mapping[str, object]] = ContextVar("agent_runtime_ref_diagnostics", default={})  # noqa: B039


def warning(name: str, **fields: object) -> None:
    """Report something that went wrong without changing what was decided."""
    _told("warning", name, fields)


def error(name: str, **fields: object) -> None:
    """Report an alarm: a gate refused because something is broken."""
    _told("error", name, fields)


def failed(name: str, failure: BaseException, **fields: object) -> None:
    """Report an error that ends a step and is not raised on: its class and place, never its sentence."""
    place, code = place_of(failure), getattr(type(failure), "code", None)
    said = {"reason": type(failure).__name__, "code": code if isinstance(code, str) else None, "place": place}
    _told("error", name, {**said, **fields})
    if _trace is not None:
        _trace(failure)


def place_of(failure: BaseException) -> str | None:
    """Return `file:line` of the innermost frame of an error that was raised; None of another."""
    trace = failure.__traceback__
    if trace is None:
        return None
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


@contextmanager
def told_by(say: Say, *, trace: Trace | None = None) -> Iterator[None]:
    """Have every line of this process told by `say`, until the block ends; `trace` shows errors whole."""
    global _say, _trace
    before = _say, _trace
    _say, _trace = say, trace
    try:
        yield
    finally:
        _say, _trace = before


@contextmanager
def bound(**fields: object) -> Iterator[None]:
    """Have every line of this context carry `fields` as well, until the block ends."""
    token = _context.set({**_context.get(), **fields})
    try:
        yield
    finally:
        _context.reset(token)


def _told(level: str, name: str, fields: Mapping[str, object]) -> None:
    span = zip(("trace_id", "span_id"), current_ids() or (), strict=False)
    allowed = _allowed({**_context.get(), **dict(span), **fields})
    if _say is not None:
        _say(level, name, allowed)
        return
    import structlog

    if structlog.is_configured():
        logger = structlog.get_logger("agent_runtime_ref")
    else:
        logger = structlog.wrap_logger(structlog.PrintLogger(file=sys.stderr))
    getattr(logger, level)(name, **allowed)


def _allowed(fields: Mapping[str, object]) -> dict[str, object]:
    """The fields that may be said, in the order of the list, as numbers and short texts."""
    return {name: _shown(fields[name]) for name in FIELDS if fields.get(name) is not None}


def _shown(value: object) -> object:
    if isinstance(value, bool | int | float):
        return value
    text = str(value)
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}..."
