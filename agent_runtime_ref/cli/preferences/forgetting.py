"""`preferences forget`: one preference is removed, by its key or by what it is about; or all of them."""

from __future__ import annotations

import argparse
from typing import Any

from agent_runtime_ref.cli.exit_codes import DONE, REFUSED
from agent_runtime_ref.cli.output import add_format, format_of, print_document
from agent_runtime_ref.cli.parsers import example, worded
from agent_runtime_ref.cli.preferences.whose import add_whose, caller_of, preferences_of, user_in_tenant
from agent_runtime_ref.cli.refusals import reported
from agent_runtime_ref.cli.terminal import note
from agent_runtime_ref.errors import UsageError


def add_parser(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "forget",
        help="remove one preference, or all",
        description=(
            "Remove one preference, every wording of it, and print its key. Where the text describes none,\n"
            "or more than one, nothing is removed, the near ones are named, and the exit code is 1.\n"
            "What was forgotten is not inferred anew; the user may state it again. With --all everything\n"
            "about the user goes from where the preferences are, and the receipt is printed."
        ),
        epilog=example(
            "preferences forget dislike:material:general:plastic",
            "preferences forget plastic",
            "preferences forget --all",
        ),
    )
    parser.add_argument(
        "what", type=worded, nargs="?", metavar="KEY-OR-TEXT", help="its key, or what it is about"
    )
    parser.add_argument("--all", action="store_true", help="everything that is kept there about the user")
    add_whose(parser)
    add_format(parser, "json", "yaml")


def run(args: argparse.Namespace) -> int:
    """Remove the preference and return the exit code."""
    style = format_of(args)
    caller = caller_of(args)
    if args.all == (args.what is not None):
        raise UsageError("name one preference by its key or what it is about, or all of them with --all")
    with reported(style), preferences_of(args, removes=True) as store:
        if args.all:
            receipt = store.forget_all(caller=caller)
            print_document(None if receipt is None else receipt.to_document(), style)
            if receipt is None:
                note(f"nothing of {user_in_tenant(caller)} is in `{store.address}`")
            return DONE
        forgotten = store.forget(args.what, caller=caller)
    print_document(forgotten.to_document(), style)
    if forgotten.removed:
        return DONE
    keys = ", ".join(f"`{one.key}`" for one in forgotten.candidates)
    near = f"it may be one of {keys}; name its key" if keys else "see `preferences list`"
    note(f"nothing was removed: `{args.what}` names no single preference of {user_in_tenant(caller)}; {near}")
    return REFUSED
