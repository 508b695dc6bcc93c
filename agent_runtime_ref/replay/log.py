"""The log that is replayed, read from front to back: decisions of a time, and the records they led to."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from agent_runtime_ref.enforcement.survey import SURVEY_SESSION
from agent_runtime_ref.errors import DocumentUnreadableError
from agent_runtime_ref.telemetry.anchors import Anchors
from agent_runtime_ref.telemetry.chain import verify
from agent_runtime_ref.telemetry.reader import LoggedDecision, read_decisions
from agent_runtime_ref.telemetry.segments import RawLine, raw_lines
from agent_runtime_ref.telemetry.verify import verify_chain

__all__ = [
    "Span",
    "chain_problem",
    "chain_problem_of_file",
    "decisions_in",
    "decisions_in_file",
    "event_of",
    "payload_of",
    "refuse_trace",
]

Named = Callable[[str, str], None]  # told the id of a decision and that of the record it led to
_SEAL = '{"seq":'
# Events that tell which record a write led to; they follow its decision.
_KEPT = ('"event_type":"memory_persisted"', '"event_type":"memory_quarantined"')


class Span(NamedTuple):
    """The time that is replayed: from `since` on, up to but without `until`."""

    since: datetime | None = None
    until: datetime | None = None

    def holds(self, decision: LoggedDecision) -> bool:
        """Say whether a decision was made in this time.

        Raises:
            DocumentUnreadableError: nobody can tell when it was made.
        """
        if self.since is None and self.until is None:
            return True
        try:
            at = datetime.fromisoformat(decision.timestamp)
            early = self.since is not None and at < self.since
            return not early and (self.until is None or at < self.until)
        except (ValueError, TypeError) as error:
            raise DocumentUnreadableError(
                "decision not readable: its timestamp is no instant with a zone",
                source=decision.source,
                line=decision.line,
            ) from error


def decisions_in_file(path: Path, span: Span, named: Named) -> Iterator[LoggedDecision]:
    """Yield the decisions of the log at `path`, those of its closed segments first.

    Raises:
        DocumentUnreadableError: a line of it is no line of a log; it says which.
    """
    for source, group in itertools.groupby(raw_lines(path), key=lambda raw: raw.source):
        yield from decisions_in((_text(raw) for raw in group), source, span, named)


def decisions_in(lines: Iterable[str], source: str, span: Span, named: Named) -> Iterator[LoggedDecision]:
    """Yield the decisions in `lines`; `named` is told what a write led to, right after its decision.

    The looks that replays took at a store are left out: they showed nobody a record.
    """
    for decision in read_decisions(_listened(lines, source, named), source=source):
        if span.holds(decision) and not _is_survey(decision):
            yield decision


def _is_survey(decision: LoggedDecision) -> bool:
    """Tell whether an answered inspection handed out no record that it looked at, or looked at the log alone.

    A caller names its session itself, so the name alone takes nothing out of a replay.
    """
    seen = decision.considered
    if not decision.own or decision.input.get("operation") != "inspect":
        return False
    if seen is None:
        return decision.result.get("allow") is True
    if seen.get("returned") != [] or seen.get("kept_out") != []:
        return False
    return bool(seen.get("considered")) or decision.document.get("session_id") == SURVEY_SESSION


def refuse_trace(path: Path) -> None:
    """Return if the file at `path` does not begin as a trace does, which holds events only.

    Raises:
        DocumentUnreadableError: it does.
    """
    first = next(raw_lines(path), None)
    try:
        value = None if first is None else json.loads(first.data)
    except (ValueError, RecursionError):
        return  # whoever reads the log says which line is damaged
    if isinstance(value, dict) and "event_type" in value and "seq" not in value:
        raise DocumentUnreadableError(
            "this is a trace: it holds events and no decisions; name the decision log", source=str(path)
        )


def chain_problem_of_file(path: Path) -> str | None:
    """Return where and how the chain of a sealed log does not hold; None where it does, or there is none."""
    first = next(raw_lines(path), None)
    if first is None or not first.data.startswith(_SEAL.encode()):
        return None
    account = verify_chain(raw_lines(path), chain=str(path), anchors=Anchors())
    if account.ok:
        return None
    worst = account.findings[0]
    place = f"{worst.source or path}:{worst.place or worst.line}"
    return f"{place}: the chain of the log does not hold: {worst.kind}, {worst.detail}"


def chain_problem(lines: Iterable[str], source: str) -> str | None:
    """Return where and how the chain of a store's log does not hold."""
    fault = verify(lines)
    return None if fault is None else f"{source}:{fault.position}: the chain does not hold: {fault.reason}"


def _listened(lines: Iterable[str], source: str, named: Named) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        yield line
        if _KEPT[0] in line or _KEPT[1] in line:
            payload = payload_of(event_of(line, source, number))
            decision_id, record_id = payload.get("decision_id"), payload.get("record_id")
            if isinstance(decision_id, str) and isinstance(record_id, str):
                named(decision_id, record_id)


def event_of(line: str, source: str, number: int) -> Mapping[str, Any]:
    """Return the event in a line of a log, which nobody else has read: decisions are all that is looked for.

    Raises:
        DocumentUnreadableError: the line holds none.
    """
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, Mapping):
        raise DocumentUnreadableError(
            "line of the log not readable: it is no JSON object", source=source, line=number
        )
    return event


def payload_of(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what an event says; nothing where it has no payload, or one that is none."""
    payload = event.get("payload")
    return payload if isinstance(payload, Mapping) else {}


def _text(raw: RawLine) -> str:
    try:
        return raw.data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DocumentUnreadableError(
            "line of the log not readable: it is no UTF-8", source=raw.source, line=raw.number
        ) from error
