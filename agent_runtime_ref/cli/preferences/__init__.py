"""`preferences`: what a user likes and dislikes beyond one conversation, for the user himself."""

from __future__ import annotations

import argparse
from typing import Any

from agent_runtime_ref.cli.groups import add_group, run_chosen

# Command -> module below this package.
MEMBERS = {
    "list": "listing",
    "add": "adding",
    "forget": "forgetting",
    "export": "exporting",
    "clean": "cleaning",
}


def add_parser(subparsers: Any) -> None:
    """Add the command and what is below it."""
    add_group(
        subparsers,
        "preferences",
        summary="a user's long-term preferences: what he likes and dislikes beyond one conversation",
        shown="preferences list",
        members=MEMBERS,
    )


def run(args: argparse.Namespace) -> int:
    """Run the command that was chosen and return its exit code."""
    return run_chosen(args, MEMBERS)
