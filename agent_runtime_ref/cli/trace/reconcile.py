"""`trace reconcile`: whether what a collector wrote down is what the decision log says."""

from __future__ import annotations

import argparse
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.exit_codes import DONE, REFUSED
from agent_runtime_ref.cli.options import add_settings
from agent_runtime_ref.cli.output import print_document
from agent_runtime_ref.cli.parsers import example
from agent_runtime_ref.cli.records import counted
from agent_runtime_ref.cli.terminal import warn
from agent_runtime_ref.cli.trace.opening import opened_log

if TYPE_CHECKING:
    from agent_runtime_ref.export import Reconciliation


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    reconcile = subparsers.add_parser(
        "reconcile",
        help="compare a decision log with what a collector wrote down",
        description=(
            "Compare the events of a decision log with what a collector's file exporter wrote: which are\n"
            "missing, there twice, altered (with the names of what differs, never a value) or in another\n"
            "order, and how complete each hour is. Fields that an event says were left out of it are\n"
            "named and are no alteration. The exit code is 1 where events are missing or altered."
        ),
        epilog=example(
            "trace reconcile --store sqlite:memory.db --collector collected.jsonl",
            "trace reconcile --log decisions.jsonl --collector monday.jsonl --collector tuesday.jsonl",
        ),
    )
    reconcile.add_argument(
        "--collector",
        metavar="FILE",
        action="append",
        required=True,
        help="OTLP in JSON lines, as the file exporter writes it; may be repeated, oldest first",
    )
    add_settings(reconcile, "store", "log")


def run(args: argparse.Namespace) -> int:
    """Print how they differ and return the exit code: 1 where events are missing or altered."""
    from agent_runtime_ref.export import Reconciler, arrived_in

    with ExitStack() as stack:
        reader, _ = opened_log(args)
        stack.callback(reader.close)
        reconciler = stack.enter_context(closing(Reconciler()))
        reconciler.expect(reader.chains())
        for name in args.collector:
            reconciler.arrive(arrived_in(Path(name)))
        result = reconciler.result()
    print_document(_document(result))
    if result.unreadable:
        lines = counted(result.unreadable, "event line")
        warn(f"{lines} of the log cannot be compared: not what was written; `trace verify` names them")
    if result.unexpected:
        events = counted(len(result.unexpected), "event")
        warn(f"the collector has {events} that this log does not have: another log's, or made up")
    return REFUSED if result.missing or result.altered else DONE


def _document(result: Reconciliation) -> dict[str, Any]:
    from agent_runtime_ref.export.reconcile import share

    return {
        "expected": result.expected,
        "received": result.received,
        "missing": result.missing,
        "duplicated": result.duplicated,
        "altered": list(result.altered),
        "reordered": result.reordered,
        "completeness": result.completeness,
        "altered_fields": result.altered,
        "redacted": dict(sorted(result.redacted.items())),
        "unexpected": result.unexpected,
        "unreadable": result.unreadable,
        "cut": result.cut,
        "hours": [
            {
                "hour": hour,
                "expected": expected,
                "received": received,
                "completeness": share(received, expected),
            }
            for hour, expected, received in result.hours
        ],
    }
