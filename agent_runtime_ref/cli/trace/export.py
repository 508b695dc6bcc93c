"""`trace export`: deliver the events of a decision log that have not been delivered."""

from __future__ import annotations

import argparse
import logging
import os
import select
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.exit_codes import DONE, REFUSED
from agent_runtime_ref.cli.options import add_settings
from agent_runtime_ref.cli.output import add_format, format_of, json_text, print_document, print_lines
from agent_runtime_ref.cli.parsers import example
from agent_runtime_ref.cli.terminal import note, warn
from agent_runtime_ref.cli.trace.opening import opened_log
from agent_runtime_ref.errors import UsageError

if TYPE_CHECKING:
    from agent_runtime_ref.export import AllowList, Cursor, Delivery, Sender
    from agent_runtime_ref.runtime import LogReader

EVERY_SECONDS = 1.0
_NICER = 10  # what follows a log takes the time that those who write to it leave
_SUFFIXES = {"otlp": ".export", "jsonl": ".export-jsonl"}


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    export = subparsers.add_parser(
        "export",
        help="deliver the events of a decision log to an OpenTelemetry collector",
        description=(
            "Deliver the events of a decision log that have not been delivered: to an OpenTelemetry\n"
            "collector, or as JSON lines. How far the delivery came is kept in a small file beside the\n"
            "log, the cursor, which moves when the collector has acknowledged events. An event may arrive\n"
            "twice, under the same agent_memory.event_id. The variables OTEL_* are followed. With jsonl\n"
            "and without --output the report goes to standard error. The exit code is 1 where something\n"
            "is left or was refused, and 0 where OTEL_SDK_DISABLED=true or OTEL_LOGS_EXPORTER=none says\n"
            "that nothing is to be sent."
        ),
        epilog=example(
            "trace export --store sqlite:memory.db --endpoint http://127.0.0.1:4318",
            "trace export --log decisions.jsonl --follow",
            "trace export --log decisions.jsonl --format jsonl -o events.jsonl",
        ),
    )
    _add_options(export)


def _add_options(export: argparse.ArgumentParser) -> None:
    export.add_argument(
        "--endpoint",
        metavar="URL",
        help="the collector; default: OTEL_EXPORTER_OTLP_ENDPOINT, else port 4318 here",
    )
    add_format(export, "otlp", "jsonl")
    export.add_argument("-o", "--output", metavar="FILE", help="with jsonl: append to this file")
    export.add_argument("--follow", action="store_true", help="go on with what is written, until it is ended")
    export.add_argument("--cursor", metavar="FILE", help="how far the delivery came; default: beside the log")
    export.add_argument(
        "--only",
        metavar="FIELD",
        action="append",
        help="a payload field that may leave, beside the ids; may be repeated; default: all of the catalogue",
    )
    add_settings(export, "store", "log")


def run(args: argparse.Namespace) -> int:
    """Deliver, print the report and return the exit code: 1 where something is left or was refused."""
    from agent_runtime_ref.export import Cursor

    kind = format_of(args, otherwise="otlp")
    _require_fitting(args, kind)
    switched_off = _switched_off() if kind == "otlp" else None
    with ExitStack() as stack:
        reader, beside = opened_log(args)
        stack.callback(reader.close)
        cursor = stack.enter_context(Cursor(_cursor_path(args.cursor, beside, kind)))
        if switched_off is not None:
            return _report_nothing(reader, cursor, switched_off)
        sender = _sender(args, kind)
        stack.callback(sender.close)
        ending = stack.enter_context(_ending())
        delivery = _delivery(args, kind, cursor, sender, ending)
        if args.follow:
            os.nice(_NICER)
            delivery.follow(reader.chains, wait=ending.wait, every=_every(kind))
        else:
            delivery.drain(reader.chains())
        pending = delivery.pending(reader.chains())
    _print_report(delivery, pending, to_stderr=kind == "jsonl" and args.output is None)
    if delivery.report.unavailable is not None:
        warn(f"{pending} events were not delivered{_towards(args, kind)}: {delivery.report.unavailable}")
    return DONE if args.follow or not (pending or delivery.report.failed) else REFUSED


def _towards(args: argparse.Namespace, kind: str) -> str:
    if kind != "otlp":
        return ""
    from agent_runtime_ref.export.otlp import collector_of

    where = collector_of(args.endpoint)
    return f" to {where}" if args.endpoint else f" to {where} (--endpoint names another collector)"


def _require_fitting(args: argparse.Namespace, kind: str) -> None:
    if kind == "otlp" and args.output is not None:
        raise UsageError("--output is for --format jsonl; a collector is named with --endpoint")
    if kind == "jsonl" and args.endpoint is not None:
        raise UsageError("--endpoint is for --format otlp; JSON lines go to standard output, or to --output")


def _switched_off() -> str | None:
    from agent_runtime_ref.export.otlp import is_switched_off

    return is_switched_off()


def _cursor_path(named: str | None, beside: Path | None, kind: str) -> Path:
    if named is not None:
        return Path(named)
    if beside is None:
        raise UsageError("a store that is no file has no place for the cursor: name a file with --cursor")
    return beside.with_name(beside.name + _SUFFIXES[kind])


def _sender(args: argparse.Namespace, kind: str) -> Sender:
    if kind == "jsonl":
        from agent_runtime_ref.export import FileSender, StreamSender

        return StreamSender(_print_now) if args.output is None else FileSender(Path(args.output))
    from agent_runtime_ref.export.otlp import otlp_sender

    # What its exporter has to say is said by the report, once.
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
    logging.getLogger("opentelemetry").propagate = False
    return otlp_sender(args.endpoint)


def _delivery(
    args: argparse.Namespace, kind: str, cursor: Cursor, sender: Sender, ending: _Ending
) -> Delivery:
    from agent_runtime_ref.export import Delivery
    from agent_runtime_ref.export.delivery import EVENTS_MAX
    from agent_runtime_ref.export.otlp import events_max

    most = events_max() if kind == "otlp" else None
    return Delivery(
        cursor,
        sender,
        say=warn,
        allowed=_allowed(args.only),
        events_max=most or EVENTS_MAX,
        is_ending=lambda: ending.asked,
    )


def _allowed(only: Sequence[str] | None) -> AllowList:
    from agent_runtime_ref.export import AllowList
    from agent_runtime_ref.telemetry.events import CATALOGUE

    if only is None:
        return AllowList()
    names = frozenset(part.strip() for one in only for part in one.split(","))
    known = frozenset().union(*(row.allowed for row in CATALOGUE.values()))
    if names - known:
        raise UsageError(
            f"no event has a field `{min(names - known)}`; `docs/reference/events.md` lists those there are"
        )
    return AllowList(names)


def _every(kind: str) -> float:
    from agent_runtime_ref.export.otlp import schedule_seconds

    asked = schedule_seconds() if kind == "otlp" else None
    return EVERY_SECONDS if asked is None else asked


def _report_nothing(reader: LogReader, cursor: Cursor, variable: str) -> int:
    from agent_runtime_ref.export import AllowList
    from agent_runtime_ref.export.batches import Walk

    pending = sum(
        Walk(chain, cursor.of(chain.name), allowed=AllowList(), events_max=1).pending()
        for chain in reader.chains()
    )
    print_document({"sent": 0, "pending": pending, "failed": 0, "cut": 0})
    note(f"nothing is sent: {variable} says so" + (", and what is pending stays so" if pending else ""))
    return DONE  # it was switched off, so leaving everything pending is what was asked for


def _print_now(documents: Sequence[Any]) -> None:
    print_lines(documents)
    sys.stdout.flush()


def _print_report(delivery: Delivery, pending: int, *, to_stderr: bool) -> None:
    report = delivery.report
    document = {"sent": report.sent, "pending": pending, "failed": report.failed, "cut": report.cut}
    if to_stderr:
        print(json_text(document, indent=None), file=sys.stderr)
    else:
        print_document(document)


class _Ending:
    """Whether somebody asked for an end: by Ctrl-C, or by the signal that a supervisor sends."""

    def __init__(self) -> None:
        self.asked = False
        self._read, self._write = os.pipe()

    def ask(self, *_: object) -> None:
        """Ask for the end; called by a signal, so it takes no lock."""
        self.asked = True
        os.write(self._write, b".")

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until an end is asked for, and tell whether it is."""
        if not self.asked:
            select.select([self._read], [], [], seconds)
        return self.asked

    def close(self) -> None:
        os.close(self._read)
        os.close(self._write)


@contextmanager
def _ending() -> Iterator[_Ending]:
    """Let the batch under way end before the process does."""
    ending = _Ending()
    before = {one: signal.signal(one, ending.ask) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        ending.close()
