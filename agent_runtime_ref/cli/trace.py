"""`trace inspect`: what the decision log says about a trace, and why a record entered or did not."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.log_view import Trace, fate_in, traces_of, tree_lines
from agent_runtime_ref.cli.options import add_settings, opened, settings_of
from agent_runtime_ref.cli.output import add_format, format_of, print_document, write
from agent_runtime_ref.cli.parsers import example
from agent_runtime_ref.cli.terminal import shown
from agent_runtime_ref.errors import UsageError


def add_parser(subparsers: Any) -> None:
    """Add the command and what is below it."""
    parser = subparsers.add_parser(
        "trace",
        help="look at what the decision log says about a trace or a record",
        description="Look at what the decision log says.",
        epilog=example("trace inspect trace-001 --store sqlite:memory.db"),
    )
    below = parser.add_subparsers(dest="trace_command", metavar="COMMAND", required=True)
    inspect = below.add_parser(
        "inspect",
        help="the decisions and events of a trace as a tree",
        description=(
            "Print the decisions and events of one trace, or of all of them, as a tree. With --record:\n"
            "why that record entered an answer, or did not. The log is that of a store, or a JSONL file:\n"
            "a decision log, or a trace."
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
    """Print the trace and return the exit code."""
    traces = traces_of(_lines(args), args.trace_id)
    if args.trace_id is not None and not traces:
        raise UsageError(f"no trace `{args.trace_id}` in the log; without an id all of them are listed")
    if format_of(args, otherwise="tree") == "json":
        print_document([_document(trace, args.record) for trace in traces])
        return DONE
    for trace in traces:
        for line in tree_lines(trace, args.record):
            write(shown(line))
    return DONE


def _document(trace: Trace, record_id: str | None) -> dict[str, Any]:
    document: dict[str, Any] = {"trace_id": trace.trace_id, "session_id": trace.session_id}
    if record_id is None:
        return document | {"lines": trace.lines}
    fates = [(line, fate_in(line, record_id)) for line in trace.lines]
    return document | {
        "record_id": record_id,
        "decisions": [
            {"decision_id": line.get("decision_id") or line["payload"].get("decision_id"), **fate}
            for line, fate in fates
            if fate is not None
        ],
    }


def _lines(args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Yield each line of the log with the place it has there.

    Raises:
        UsageError: no log is named, or the file cannot be read.
    """
    settings = settings_of(args)
    named_store = args.store is not None or (args.log is None and settings.log is None)
    if args.store is not None and args.log is not None:
        raise UsageError("a log is looked at in a store or in a file: name --store or --log, not both")
    file = args.log or settings.log
    if not named_store and file is not None:
        yield from _lines_of_file(Path(file))
        return
    args.log = None
    with opened(args) as memory:
        for kind, read in (("write log", False), ("read log", True)):
            for number, line in enumerate(memory.log_lines(read=read), start=1):
                yield f"{kind}:{number}", line


def _lines_of_file(path: Path) -> Iterator[tuple[str, str]]:
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield f"{path}:{number}", line
    except OSError as error:
        raise UsageError(f"log `{path}` not readable: {(error.strerror or str(error)).lower()}") from error
