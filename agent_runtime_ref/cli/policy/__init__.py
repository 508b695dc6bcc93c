"""`policy`: what the policies decide, how they are tested, and what a change of them would change."""

from __future__ import annotations

import argparse
from typing import Any

from agent_runtime_ref.cli.groups import add_group, run_chosen

# Command -> module below this package.
MEMBERS = {
    "build": "build",
    "decide": "decide",
    "diff": "diff",
    "replay": "replay",
    "review": "review",
    "test": "test",
}


def add_parser(subparsers: Any) -> None:
    """Add the command and what is below it."""
    add_group(
        subparsers,
        "policy",
        summary="decide by the policies, test, review and build them, and see what a change changes",
        shown="policy decide read --input input.json",
        members=MEMBERS,
    )


def run(args: argparse.Namespace) -> int:
    """Run the command that was chosen and return its exit code."""
    return run_chosen(args, MEMBERS)
