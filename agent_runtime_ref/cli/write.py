"""`write`: one candidate through the write gate."""

from __future__ import annotations

import argparse
from typing import Any

from agent_runtime_ref.cli.documents import checked_document
from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.options import (
    add_caller,
    add_settings,
    caller_of,
    is_volatile,
    opened,
    require_named_store,
)
from agent_runtime_ref.cli.output import add_format, format_of, print_document
from agent_runtime_ref.cli.parsers import example, worded
from agent_runtime_ref.cli.refusals import reported
from agent_runtime_ref.cli.terminal import note


def add_parser(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "write",
        help="offer a memory to the write gate",
        description=(
            "Offer a memory to the write gate and print the receipt. A refusal prints its decision.\n"
            "A record is printed without what stands at its default: confidence 0.5, status active."
        ),
        epilog=example(
            "write --candidate fact.yaml --tenant tenant-acme --principal user-42 --store sqlite:memory.db",
        ),
    )
    parser.add_argument(
        "--candidate", metavar="FILE", required=True, help="a memory_candidate document, - for stdin"
    )
    add_caller(parser)
    parser.add_argument(
        "--subject", type=worded, metavar="SUBJECT", help="the user acted for; default: the principal"
    )
    add_format(parser, "json", "yaml")
    add_settings(parser)


def run(args: argparse.Namespace) -> int:
    """Print the receipt and return the exit code."""
    from agent_runtime_ref.contracts import MemoryCandidate

    require_named_store(args)
    candidate = MemoryCandidate.from_document(checked_document(args.candidate, schema="memory_candidate"))
    style = format_of(args)
    with reported(style), opened(args, creates=True) as memory:
        receipt = memory.write(candidate, caller=caller_of(args, subject=args.subject))
        print_document(receipt.to_document(), style)
        if receipt.effect == "quarantine":
            note(f"quarantined until somebody reviews it: {', '.join(receipt.decision.reasons)}")
        if is_volatile(memory.store_url):
            note(f"store `{memory.store_url}` ends with this command; --store sqlite:FILE keeps memories")
    return DONE
