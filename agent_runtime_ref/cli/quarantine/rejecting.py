"""`quarantine reject`: a record is removed from quarantine for good."""

from __future__ import annotations

import argparse
from typing import Any

from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.parsers import example
from agent_runtime_ref.cli.quarantine.review import add_options, reviewed


def add_parser(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "reject",
        help="remove a record from quarantine for good",
        description=(
            "Remove a record from quarantine, if the policy permits it, and print the receipt. Its content\n"
            "is gone; where a detector fired on the content, the same is not taken in again."
        ),
        epilog=example(
            "quarantine reject mem-0123456789abcdef01234567 --reason SEC-1424 --store sqlite:memory.db"
        ),
    )
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    """Reject the record and return the exit code."""
    reviewed(args, lambda memory, caller: memory.reject(args.record, caller=caller, reason=args.reason))
    return DONE
