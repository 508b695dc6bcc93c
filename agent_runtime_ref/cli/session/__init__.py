"""`session`: what the decision log and the state of a session say."""

from __future__ import annotations

import argparse
from typing import Any

from agent_runtime_ref.cli.groups import add_group, run_chosen

# Command -> module below this package.
MEMBERS = {
    "export": "export",
}


def add_parser(subparsers: Any) -> None:
    """Add the command and what is below it."""
    add_group(
        subparsers,
        "session",
        summary="what is known of a session",
        shown="session export session-001 --store sqlite:memory.db",
        members=MEMBERS,
    )


def run(args: argparse.Namespace) -> int:
    """Run the command that was chosen and return its exit code."""
    return run_chosen(args, MEMBERS)
