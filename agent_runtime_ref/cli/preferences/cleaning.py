"""`preferences clean`: records of preferences that stand under no derived key."""

from __future__ import annotations

import argparse
from typing import Any

from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.output import add_format, format_of, print_document
from agent_runtime_ref.cli.parsers import example
from agent_runtime_ref.cli.preferences.whose import add_whose, caller_of, preferences_of
from agent_runtime_ref.cli.refusals import reported
from agent_runtime_ref.cli.terminal import note


def add_parser(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "clean",
        help="remove preferences that stand under no derived key",
        description=(
            "List a user's preferences that stand under no derived key, such as a hash: nothing can repeat,\n"
            "contradict or forget them by their key. With --apply they are removed, each by a decision."
        ),
        epilog=example("preferences clean", "preferences clean --apply"),
    )
    parser.add_argument("--apply", action="store_true", help="remove them; without it they are only listed")
    add_whose(parser)
    add_format(parser, "json", "yaml")


def run(args: argparse.Namespace) -> int:
    """List the records, remove them if that is wanted, and return the exit code."""
    style = format_of(args)
    caller = caller_of(args)
    with reported(style), preferences_of(args, removes=args.apply) as store:
        found = store.without_derived_key(caller=caller)
        removed = set(store.clean(caller=caller)) if args.apply else set()
    records = [
        {
            "record_id": one.memory_id,
            "key": one.key,
            "content": one.content,
            "removed": one.memory_id in removed,
        }
        for one in found
    ]
    print_document({"source": store.address, "applied": args.apply, "records": records}, style)
    if found and not args.apply:
        note(f"{len(found)} without a derived key; nothing was changed, --apply removes them")
    return DONE
