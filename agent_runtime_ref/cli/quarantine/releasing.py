"""`quarantine release`: a record is let out of quarantine."""

from __future__ import annotations

import argparse
from typing import Any

from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.parsers import example
from agent_runtime_ref.cli.quarantine.review import add_options, reviewed
from agent_runtime_ref.cli.terminal import note


def add_parser(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "release",
        help="let a record out of quarantine",
        description=(
            "Let a record out of quarantine, if the policy permits it, and print the receipt: what trust\n"
            "and life it is left, and who reads it now. Who wrote a record cannot release it."
        ),
        epilog=example(
            "quarantine release mem-0123456789abcdef01234567 --reason SEC-1423 --store sqlite:memory.db"
        ),
    )
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    """Release the record and return the exit code."""
    receipt = reviewed(
        args, lambda memory, caller: memory.release(args.record, caller=caller, reason=args.reason)
    )
    assert receipt.readable is not None
    if not receipt.readable.purposes:
        note("it is released, and no purpose reads it all the same; the receipt says why")
    return DONE
