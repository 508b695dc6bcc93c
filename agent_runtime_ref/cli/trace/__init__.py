"""`trace`: what the decision log says about a trace or a record, and whether it can be believed."""

from __future__ import annotations

import argparse
from typing import Any

from agent_runtime_ref.cli.groups import add_group, run_chosen

# Command -> module below this package.
MEMBERS = {
    "inspect": "inspect",
    "verify": "verify",
    "anchor": "anchor",
    "exposure": "exposure",
    "export": "export",
    "reconcile": "reconcile",
}


def add_parser(subparsers: Any) -> None:
    """Add the command and what is below it."""
    add_group(
        subparsers,
        "trace",
        summary="look at what the decision log says, and whether it is the one that was written",
        shown="trace inspect trace-001 --store sqlite:memory.db",
        members=MEMBERS,
    )


def run(args: argparse.Namespace) -> int:
    """Run the command that was chosen and return its exit code."""
    return run_chosen(args, MEMBERS)
