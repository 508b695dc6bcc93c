"""Decisions read back from a log: from our own lines, or from the decision log of an OPA server.

Three shapes of text are understood: sealed lines as this package writes them, one JSON object a line as OPA
prints them to its console (between other messages of the server), and the JSON array that OPA uploads.
One decision is held at a time, however long the log is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from agent_runtime_ref.compact_json import parsed
from agent_runtime_ref.errors import DocumentUnreadableError
from agent_runtime_ref.telemetry.segments import RAW_BYTES_MAX, RawLine

_BLANK = " \t\r\n"
# How a line begins that our writer made. Its reader is more than twice as fast, and makes a fraction of an
# integer beyond 64 bits: our writer writes none, and an OPA server may.
_SEALED = '{"seq":'
# An own line says its type right behind its place in the chain, so an event need not be parsed to be skipped.
_HEAD_CHARACTERS = 200
_EVENT = '"type":"event"'


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """One decision as a log tells it; what the log does not say is empty or None."""

    decision_id: str
    path: str  # without a leading slash, such as memory/read/decision
    input: Mapping[str, Any]
    result: Mapping[str, Any]  # empty where the answer was undefined or no object
    timestamp: str  # RFC 3339, UTC
    requested_by: str
    trace_id: str | None
    revision: str | None  # of the bundle
    digest: str | None  # of the bundle; an OPA server does not log it
    considered: Mapping[str, Any] | None  # of an own line about a read
    erased: tuple[str, ...]  # JSON pointers to what a mask removed
    masked: tuple[str, ...]  # JSON pointers to what a mask replaced
    source: str
    line: int  # in `source`, from 1
    own: bool  # written by this package
    document: Mapping[str, Any] = field(repr=False)  # the whole entry

    @property
    def gate(self) -> str | None:
        """`read` or `write`, by the path; None of a decision that was about something else."""
        parts = self.path.split("/")
        return parts[1] if parts[0] == "memory" and parts[1:2] in (["read"], ["write"]) else None


def read_decisions(lines: Iterable[str], *, source: str = "log") -> Iterator[LoggedDecision]:
    """Yield the decisions in `lines`, in their order; events and other messages of a server are left out.

    Raises:
        DocumentUnreadableError: a line is neither; it carries `source` and the line's number.
    """
    for number, document in read_entries(lines, source=source, events=False):
        decision = decision_of(document, source=source, line=number)
        if decision is not None:
            yield decision


def read_entries(lines: Iterable[str], *, source: str, events: bool = True) -> Iterator[tuple[int, Any]]:
    """Yield what stands in `lines` as JSON, with the number of the line it ends on; events only if wanted.

    Raises:
        DocumentUnreadableError: a line is no JSON.
    """
    array = _Array(source)
    number = 0
    for number, line in enumerate(lines, start=1):
        if array.open:
            yield from array.more(line, number)
            continue
        text = line.strip(_BLANK)
        if text.startswith("["):
            array.open = True
            yield from array.more(text[1:], number)
        elif text and (events or _EVENT not in text[:_HEAD_CHARACTERS]):
            yield number, _parsed(text, source, number)
    if array.open:
        _refuse(source, number, "a list begins in the log that does not end")


def by_file(raw: Iterable[RawLine], *, errors: str = "strict") -> Iterator[tuple[str, Iterator[str]]]:
    """Yield each source with its lines as text, which are to be used up before the next one is asked for.

    Raises:
        DocumentUnreadableError: a line is no UTF-8, unless `errors` makes text of it.
    """
    lines = iter(raw)
    held = next(lines, None)

    def texts_of(source: str) -> Iterator[str]:
        nonlocal held
        while held is not None and held.source == source:
            try:
                text = held.data.decode("utf-8", errors)
            except UnicodeDecodeError:
                _refuse(source, held.number, "it is no UTF-8")
            held = next(lines, None)
            yield text

    while held is not None:
        yield held.source, texts_of(held.source)


def decision_of(document: object, *, source: str, line: int) -> LoggedDecision | None:
    """Return the decision that an entry of a log is; None of an event or another message of a server.

    Raises:
        DocumentUnreadableError: it is none of these.
    """
    if not isinstance(document, Mapping):
        _refuse(source, line, "it is no JSON object")
    if "decision_id" not in document or document.get("type") == "event" or "event_type" in document:
        if "event_type" in document or {"level", "msg"} <= document.keys():
            return None
        _refuse(source, line, "it is neither a decision nor an event")
    asked, answer = document.get("input", {}), document.get("result", {})
    if not isinstance(asked, Mapping):
        _refuse(source, line, "its input is no JSON object")
    considered = document.get("considered")
    revision, digest = _bundle(document)
    return LoggedDecision(
        decision_id=_text(document, "decision_id", source, line),
        path=_text(document, "path", source, line, otherwise="").strip("/"),
        input=asked,
        result=answer if isinstance(answer, Mapping) else {},
        timestamp=_text(document, "timestamp", source, line),
        requested_by=_text(document, "requested_by", source, line, otherwise=""),
        trace_id=document.get("trace_id") if isinstance(document.get("trace_id"), str) else None,
        revision=revision,
        digest=digest,
        considered=considered if isinstance(considered, Mapping) else None,
        erased=_pointers(document, "erased"),
        masked=_pointers(document, "masked"),
        source=source,
        line=line,
        own=document.get("type") == "decision" and "input_version" in document,
        document=document,
    )


class _Array:
    """The list that OPA uploads, taken apart as its text comes in."""

    def __init__(self, source: str) -> None:
        self.open = False
        self._source = source
        self._text = ""

    def more(self, text: str, number: int) -> Iterator[tuple[int, Any]]:
        """Yield the entries that are complete with `text`, the next part of the list."""
        self._text += text
        if len(self._text) > RAW_BYTES_MAX:
            _refuse(self._source, number, "an entry is larger than 64 MiB")
        place = 0
        while True:
            place = _skipped(self._text, place)
            rest = self._text[place : place + 1]
            if rest == "]":
                self._end(place + 1, number)
                return
            if rest not in ("", "{"):
                _refuse(self._source, number, "an entry of its list is no JSON object")
            try:
                value, place = _DECODER.raw_decode(self._text, place)
            except (ValueError, RecursionError):
                break  # not all of it is there yet
            yield number, value
        self._text = self._text[place:]

    def _end(self, place: int, number: int) -> None:
        if self._text[place:].strip(_BLANK):
            _refuse(self._source, number, "something follows the end of its list")
        self.open, self._text = False, ""


def _skipped(text: str, place: int) -> int:
    """Return the place of the next entry, or of the end of the list."""
    while place < len(text) and text[place] in ", \t\r\n":
        place += 1
    return place


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _parsed(text: str, source: str, number: int) -> Any:
    try:
        return parsed(text) if text.startswith(_SEALED) else _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise _unreadable(source, number, "it is no JSON") from error


def _bundle(document: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return revision and digest of the bundle that decided: the one called memory, or the only one."""
    bundles = document.get("bundles")
    if not isinstance(bundles, Mapping) or not bundles:
        return None, None
    alone = next(iter(bundles.values())) if len(bundles) == 1 else None
    chosen = bundles.get("memory", alone)
    if not isinstance(chosen, Mapping):
        return None, None
    revision, digest = chosen.get("revision"), chosen.get("digest")
    return revision if isinstance(revision, str) else None, digest if isinstance(digest, str) else None


def _pointers(document: Mapping[str, Any], name: str) -> tuple[str, ...]:
    listed = document.get(name)
    return tuple(one for one in listed if isinstance(one, str)) if isinstance(listed, list) else ()


def _text(
    document: Mapping[str, Any], name: str, source: str, line: int, *, otherwise: str | None = None
) -> str:
    value = document.get(name, otherwise)
    if not isinstance(value, str):
        _refuse(source, line, f"its {name} is no text")
    return value


def _unreadable(source: str, line: int, reason: str) -> DocumentUnreadableError:
    return DocumentUnreadableError(f"line of the log not readable: {reason}", source=source, line=line)


def _refuse(source: str, line: int, reason: str) -> NoReturn:
    raise _unreadable(source, line, reason)
