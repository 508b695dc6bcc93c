"""`policy diff`: which rules, settings and controls two sets of policies differ in."""

from __future__ import annotations

import argparse
from typing import Any

from agent_runtime_ref.cli.exit_codes import DONE, REFUSED
from agent_runtime_ref.cli.output import add_format, format_of, print_document, write
from agent_runtime_ref.cli.parsers import example
from agent_runtime_ref.cli.terminal import warn


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    diff = subparsers.add_parser(
        "diff",
        help="what differs between two sets of policies; 1 where something does",
        description=(
            "Compare two sets of policies: rules by id, settings by path, controls by id, and what belongs\n"
            "to no rule. Each is a folder, a bundle (.tar.gz) or a git revision, REV or REV:PATH; without a\n"
            "PATH the folder `policies` of that revision is meant. The exit code is 1 where they differ."
        ),
        epilog=example(
            "policy diff policies my-policies", "policy diff main:policies policies --format markdown"
        ),
    )
    diff.add_argument("old", metavar="OLD", help="what is compared with")
    diff.add_argument("new", metavar="NEW", help="what is looked at")
    add_format(diff, "text", "json", "markdown")


def run(args: argparse.Namespace) -> int:
    """Print the difference and return the exit code."""
    from agent_runtime_ref.replay.difference import difference
    from agent_runtime_ref.replay.formats.difference import difference_markdown, difference_text
    from agent_runtime_ref.replay.sources import policies_at

    old, new = policies_at(args.old), policies_at(args.new)
    found = difference(old, new)
    for policies in (old, new):
        if policies.fault is not None:
            warn(f"no memory can be opened with the policies in `{policies.name}`: {policies.fault}")
    style = format_of(args, otherwise="text")
    if style == "json":
        print_document(found.to_document())
    else:
        for line in (difference_markdown if style == "markdown" else difference_text)(found):
            write(line)
    return REFUSED if found else DONE
