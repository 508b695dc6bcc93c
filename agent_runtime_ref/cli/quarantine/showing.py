"""`quarantine show`: one record that waits for its review, in full."""

from __future__ import annotations

import argparse
from typing import Any

from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.options import opened
from agent_runtime_ref.cli.output import add_format, format_of, print_document
from agent_runtime_ref.cli.parsers import example
from agent_runtime_ref.cli.quarantine.queue import add_reviewer, document_of, queued, reasons_of
from agent_runtime_ref.cli.refusals import reported
from agent_runtime_ref.errors import RecordNotFoundError


def add_parser(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "show",
        help="one record in quarantine, in full",
        description="Show one record in quarantine in full, with the decision that put it there.",
        epilog=example("quarantine show mem-0123456789abcdef01234567 --store sqlite:memory.db"),
    )
    parser.add_argument("record", metavar="ID", help="the id of the record")
    add_format(parser, "json", "yaml")
    add_reviewer(parser, without_tenant="all tenants")


def run(args: argparse.Namespace) -> int:
    """Print the record and return the exit code."""
    style = format_of(args)
    with reported(style), opened(args) as memory:
        records = queued(memory, args, 1, (args.record,))
        if not records:
            raise RecordNotFoundError(memory.store_url, f"{args.record}` in quarantine; see `quarantine list")
        print_document(document_of(records[0], reasons_of(memory, {args.record})), style)
    return DONE
