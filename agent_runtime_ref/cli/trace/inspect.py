"""`trace inspect`: what the decision log says about a trace, and why a record entered or did not."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from agent_runtime_ref.cli.exit_codes import DONE, REFUSED
from agent_runtime_ref.cli.options import add_settings, opened, settings_of
from agent_runtime_ref.cli.output import add_format, format_of, print_document, write
from agent_runtime_ref.cli.parsers import example
from agent_runtime_ref.cli.terminal import note, shown, warn
from agent_runtime_ref.cli.trace.log_view import Trace, fate_in, traces_of, tree_lines
from agent_runtime_ref.errors import UsageError

Log = tuple[str, Callable[[], Iterable[str]]]
READS = ".reads"  # what a SQLite store appends to its own name for its log of reads
_SEAL = '{"seq":'


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    inspect = subparsers.add_parser(
        "inspect",
        help="the decisions and events of a trace as a tree",
        description=(
            "Print the decisions and events of one trace, or of all of them, as a tree. With --record:\n"
            "why that record entered an answer, or did not. The log is that of a store, or a JSONL file:\n"
            "a decision log, or a trace. The chain of a sealed log is verified; the exit code is 1 where it\n"
            "does not hold."
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
    with _logs(args) as logs:
        code = REFUSED if _warned(logs) else DONE
        lines = (placed for name, read in logs for placed in _placed(name, read()))
        traces = traces_of(lines, args.trace_id)
    if args.trace_id is not None and not traces:
        raise UsageError(f"no trace `{args.trace_id}` in the log; without an id all of them are listed")
    if format_of(args, otherwise="tree") == "json":
        print_document([_document(trace, args.record) for trace in traces])
        return code
    for trace in traces:
        for line in tree_lines(trace, args.record):
            write(shown(line))
    return code


def _warned(logs: Sequence[Log]) -> bool:
    """Say on stderr of each log where its chain stops to hold, and return whether one does."""
    from agent_runtime_ref.telemetry import chain

    broken = False
    for name, read in logs:
        # A file of events is no chain: nothing in it is sealed.
        if not any(line.startswith(_SEAL) for line in read()):
            continue
        places = [number for number, line in enumerate(read(), start=1) if line.strip()]
        # Bytes that are no text cannot have been sealed; replaced, they do not fit their hash.
        fault = chain.verify(
            line.encode("utf-8", "replace").decode("utf-8") for line in read() if line.strip()
        )
        if fault is not None:
            broken = True
            place = f"{name}:{places[fault.position - 1]}"
            warn(
                f"{place}: the chain of the log does not hold: {fault.reason}; from here on it proves nothing"
            )
    return broken


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


@contextmanager
def _logs(args: argparse.Namespace) -> Iterator[list[Log]]:
    """Give the logs of a store, or the one in a file, each by its name and a function that reads it.

    Raises:
        UsageError: no log is named, or the file cannot be read.
    """
    settings = settings_of(args)
    named_store = args.store is not None or (args.log is None and settings.log is None)
    if args.store is not None and args.log is not None:
        raise UsageError("a log is looked at in a store or in a file: name --store or --log, not both")
    file = args.log or settings.log
    if not named_store and file is not None:
        path = Path(file)
        yield [(str(path), partial(_lines_of_file, path))]
        return
    args.log = None
    with opened(args) as memory:
        kinds = [("write log", False)]
        if not _reads_missing(settings.store):
            kinds.append(("read log", True))
        elif next(iter(memory.log_lines()), None) is not None:
            reads = settings.store.partition(":")[2] + READS
            note(f"no `{reads}` beside the store: nobody has read from it yet, or its log of reads is gone")
        yield [(name, partial(memory.log_lines, read=read)) for name, read in kinds]


def _reads_missing(address: str) -> bool:
    """Tell whether a store that keeps its log of reads in a file of its own has none; asking makes none."""
    scheme, _, name = address.partition(":")
    return scheme == "sqlite" and not Path(name + READS).exists()


def _placed(name: str, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each line with the place it has in its log; empty ones are left out."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield f"{name}:{number}", line


def _lines_of_file(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            for line in file:
                yield line.removesuffix("\n")
    except OSError as error:
        raise UsageError(f"log `{path}` not readable: {(error.strerror or str(error)).lower()}") from error
