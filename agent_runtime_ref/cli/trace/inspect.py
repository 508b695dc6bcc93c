"""`trace inspect`: what the decision log says about a trace, and why a record entered or did not."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.exit_codes import DONE, REFUSED
from agent_runtime_ref.cli.options import add_settings, names_store, settings_of
from agent_runtime_ref.cli.output import add_format, format_of, print_document, write
from agent_runtime_ref.cli.parsers import example
from agent_runtime_ref.cli.terminal import note, shown, warn
from agent_runtime_ref.cli.trace.fates import fates_of, require_known, sentences_of
from agent_runtime_ref.cli.trace.log_view import Trace, layers_with, traces_of, tree_lines
from agent_runtime_ref.cli.trace.logs import Log, logs_of
from agent_runtime_ref.errors import UsageError

if TYPE_CHECKING:
    from agent_runtime_ref.telemetry.segments import RawLine

_SEAL = '{"seq":'


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    inspect = subparsers.add_parser(
        "inspect",
        help="the decisions and events of a trace as a tree",
        description=(
            "Print the decisions and events of one trace, or of all of them, as a tree. With --record:\n"
            "why that record entered an answer, or did not. A line names some of the records that a read\n"
            "looked at; with --store any other one is looked at as it was then, and judged again. The log\n"
            "is that of a store, or a file: a decision log with its closed segments, a trace, or the\n"
            "decision log of an OPA server. The chain of a sealed log is verified; the exit code is 1\n"
            "where it does not hold."
        ),
        epilog=example(
            "trace inspect --store sqlite:memory.db",
            "trace inspect trace-001 --log decisions.jsonl --record mem-003",
        ),
    )
    inspect.add_argument(
        "trace_id", nargs="?", metavar="TRACE", help="the id of a trace; default: all of them"
    )
    inspect.add_argument("--record", metavar="ID", help="why this record entered or did not")
    add_format(inspect, "tree", "json")
    add_settings(inspect, "store", "engine", "policies", "log")


def run(args: argparse.Namespace) -> int:
    """Print the trace and return the exit code: 1 where the chain of what was read does not hold."""
    with logs_of(args, args.log) as logs:
        code = REFUSED if _warned(logs) else DONE
        traces = traces_of((entry for log in logs for entry in _entries(log, args.trace_id)), args.trace_id)
    if args.trace_id is not None and not traces:
        raise UsageError(f"no trace `{args.trace_id}` in {_looked_at(args)}")
    if not traces:
        names = " and ".join(f"`{log.name}`" for log in logs)
        note(f"no decision and no event in {names}")
    fates = [] if args.record is None else fates_of(args, traces)
    if args.record is not None:
        require_known(args, traces, fates)
    if format_of(args, otherwise="tree") == "json":
        print_document(
            [_document(trace) for trace in traces]
            if args.record is None
            else [_document_of(trace, args.record, fate) for trace, fate in zip(traces, fates, strict=True)]
        )
        return code
    for place, trace in enumerate(traces):
        own = None if args.record is None else fates[place]
        for line in tree_lines(trace, args.record, own, {} if own is None else sentences_of(own)):
            write(shown(line))
    return code


def _looked_at(args: argparse.Namespace) -> str:
    """Return which log was looked at, and what to do where it has no such trace."""
    if args.log is None and not names_store(args) and settings_of(args).log is None:
        return (
            "the log of the bundled seeds, which begins with each command; name yours with --store or --log"
        )
    return "the log; without an id all of them are listed"


def _warned(logs: Sequence[Log]) -> bool:
    """Say on stderr of each log where its chain stops to hold, and return whether one does."""
    from agent_runtime_ref.telemetry import chain
    from agent_runtime_ref.telemetry.segments import first_number

    broken = False
    for log in logs:
        # A file of events is no chain, nor is the log of an OPA server: nothing in it is sealed.
        if not log.is_sealed:
            continue
        seen: list[RawLine] = []
        # Of one closed segment, what comes before it is elsewhere.
        first = first_number(Path(log.name)) if log.chain == "log" else None
        start: dict[str, Any] = {} if first is None else {"seq": first - 1, "prev_hash": None}
        fault = chain.verify(_texts(log, seen), **start)
        if fault is not None:
            broken = True
            place = f"{seen[-1].source}:{seen[-1].number}"
            warn(
                f"{place}: the chain of the log does not hold: {fault.reason}; from here on it proves nothing"
            )
    return broken


def _texts(log: Log, seen: list[RawLine]) -> Iterator[str]:
    """Yield the lines of a log that are not empty; `seen` holds the one that was yielded last."""
    for raw in log.lines():
        if raw.data.strip():
            seen[:] = [raw]
            # Bytes that are no text cannot have been sealed; replaced, they do not fit their hash.
            yield raw.data.decode("utf-8", "replace")


def _entries(log: Log, trace_id: str | None) -> Iterator[tuple[str, Any]]:
    """Yield what stands in a log, each with its place; of sealed lines only those that name the trace."""
    from agent_runtime_ref.telemetry.reader import by_file, read_entries

    def wanted(text: str) -> str:
        return "" if trace_id is not None and text.startswith(_SEAL) and trace_id not in text else text

    for source, texts in by_file(log.lines(), errors="surrogateescape"):
        for number, document in read_entries(map(wanted, texts), source=source):
            yield f"{source}:{number}", document


def _document(trace: Trace) -> dict[str, Any]:
    return {"trace_id": trace.trace_id, "session_id": trace.session_id, "lines": trace.lines}


def _document_of(trace: Trace, record_id: str, fates: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
    layers = ((line, layers_with(line, record_id)) for line in trace.lines)
    return {
        "trace_id": trace.trace_id,
        "session_id": trace.session_id,
        "record_id": record_id,
        "decisions": [
            {"decision_id": line.get("decision_id") or line["payload"].get("decision_id"), **fates[place]}
            for place, line in enumerate(trace.lines)
            if place in fates
        ],
        "contexts": [{"at": line["timestamp"], "layers": found} for line, found in layers if found],
    }
