"""`session`: what a user asked for in one thread, and what the log holds of a session."""

from __future__ import annotations

import argparse
from typing import Any

from agent_runtime_ref.cli.groups import add_group, run_chosen

# Command -> module below this package.
MEMBERS = {"show": "showing", "clear": "clearing", "export": "export"}


def add_parser(subparsers: Any) -> None:
    """Add the command and what is below it."""
    add_group(
        subparsers,
        "session",
        summary="what is known of a session: its constraints, and what the log holds of it",
        shown="session show thread-1",
        members=MEMBERS,
    )


def run(args: argparse.Namespace) -> int:
    """Run the command that was chosen and return its exit code."""
    return run_chosen(args, MEMBERS)
