"""`preferences list`: a user's preferences, all of them or those that a question is about."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.output import add_format, format_of, print_document, print_lines, write
from agent_runtime_ref.cli.parsers import example, positive, worded
from agent_runtime_ref.cli.preferences.whose import add_whose, caller_of, preferences_of, user_in_tenant
from agent_runtime_ref.cli.refusals import reported
from agent_runtime_ref.cli.terminal import note

if TYPE_CHECKING:
    from agent_runtime_ref.preferences import Preference

_HEADINGS = ("key", "strength", "said by", "confidence", "last said", "content")


def add_parser(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "list",
        help="a user's preferences",
        description=(
            "List a user's preferences, newest first, or with --about those that a question is about,\n"
            "nearest first. The format `block` is what an agent puts into its prompt."
        ),
        epilog=example("preferences list", "preferences list --about 'a toiletry bag' --format block"),
    )
    parser.add_argument("--about", type=worded, metavar="TEXT", help="only what this question is about")
    parser.add_argument(
        "--limit", type=positive, metavar="N", help="at most so many; default: all, and 5 with --about"
    )
    parser.add_argument(
        "--domain", type=worded, metavar="DOMAIN", help="only what holds in this domain, or everywhere"
    )
    add_whose(parser)
    add_format(parser, "table", "json", "jsonl", "yaml", "block")


def run(args: argparse.Namespace) -> int:
    """Print the preferences and return the exit code."""
    style = format_of(args, otherwise="table")
    caller = caller_of(args)
    with reported(style), preferences_of(args, hands_over=style == "block") as store:
        if args.about is None:
            found = store.read(caller=caller, domain=args.domain)[: args.limit]
        else:
            found = store.read_relevant(args.about, caller=caller, limit=args.limit or 5, domain=args.domain)
        _print(found, store.address, caller.own_subject, style)
    if not found:
        note(f"no preference of {user_in_tenant(caller)}, in `{store.address}`")
    return DONE


def _print(found: Sequence[Preference], address: str, user_id: str, style: str) -> None:
    if style == "table":
        from agent_runtime_ref.cli.tables import print_table

        print_table(_HEADINGS, [_row(one) for one in found], caption=f"preferences of {user_id} in {address}")
    elif style == "block":
        from agent_runtime_ref.preferences import format_preferences

        block = format_preferences(found)
        if block:
            write(block)
    elif style == "jsonl":
        print_lines([one.to_document() for one in found])
    else:
        envelope = {"source": address, "user_id": user_id, "count": len(found)}
        print_document(envelope | {"preferences": [one.to_document() for one in found]}, style)


def _row(one: Preference) -> list[str]:
    said_by = "user" if one.stated else "inference"
    day = one.updated_at.date().isoformat()
    return [str(one.key), one.strength, said_by, f"{one.confidence:g}", day, one.content]
