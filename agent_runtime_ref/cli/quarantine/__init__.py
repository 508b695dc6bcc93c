"""`quarantine`: the review queue of records that were taken in but that nobody reads yet."""

from __future__ import annotations

import argparse
from typing import Any

from agent_runtime_ref.cli.groups import add_group, run_chosen

# Command -> module below this package.
MEMBERS = {"list": "listing", "show": "showing", "release": "releasing", "reject": "rejecting"}


def add_parser(subparsers: Any) -> None:
    """Add the command and what is below it."""
    add_group(
        subparsers,
        "quarantine",
        summary="work the review queue",
        shown="quarantine list --store sqlite:memory.db",
        members=MEMBERS,
    )


def run(args: argparse.Namespace) -> int:
    """Run the command that was chosen and return its exit code."""
    return run_chosen(args, MEMBERS)
