"""`preferences add`: the user states a preference himself."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.output import add_format, format_of, print_document
from agent_runtime_ref.cli.parsers import example, worded
from agent_runtime_ref.cli.preferences.whose import add_whose, caller_of, preferences_of
from agent_runtime_ref.cli.refusals import reported
from agent_runtime_ref.cli.terminal import note
from agent_runtime_ref.errors import PolicyDeniedError, UsageError


def add_parser(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "add",
        help="state a preference",
        description=(
            "State a preference, and print what became of it. Its key is derived from polarity, category,\n"
            "domain and slug; said again it takes the later words and is surer. What it contradicts goes."
        ),
        epilog=example("preferences add 'I always hate plastic' --dislike --category material --hard"),
    )
    parser.add_argument(
        "content", type=worded, metavar="TEXT", help="the preference, in the user's own words"
    )
    polarity = parser.add_mutually_exclusive_group(required=True)
    polarity.add_argument("--like", action="store_true", help="it is liked")
    polarity.add_argument("--dislike", action="store_true", help="it is disliked")
    parser.add_argument(
        "--category", type=worded, metavar="WORD", required=True, help="what kind of thing: material, color"
    )
    parser.add_argument("--domain", type=worded, metavar="WORD", help="where it holds; default: everywhere")
    parser.add_argument("--slug", type=worded, metavar="WORD", help="which thing; default: from the text")
    parser.add_argument("--hard", action="store_true", help="it is a condition, not only a wish")
    parser.add_argument(
        "--instead-of", action="append", metavar="KEY", help="the key of what it replaces; may be repeated"
    )
    add_whose(parser)
    add_format(parser, "json", "yaml")


def run(args: argparse.Namespace) -> int:
    """Hand the preference to the curator and return the exit code."""
    style = format_of(args)
    caller = caller_of(args)
    superseded = tuple(map(_key, args.instead_of or ()))
    offered = {
        "content": args.content,
        "category": args.category,
        "polarity": "like" if args.like else "dislike",
        "domain": args.domain,
        "slug": args.slug,
        "strength": "hard" if args.hard else "soft",
        "stated": True,
        "keys_to_supersede": superseded,
    }
    with reported(style), preferences_of(args, creates=True) as store:
        told = store.write(offered, caller=caller)
        if told.outcome == "refused" and told.decision is not None:
            raise PolicyDeniedError(told.decision)
        memory = store.memory_of(caller)  # of a folder, the user's own file: a command names that
        place = store.address if memory is None else memory.store_url
    print_document(told.to_document(), style)
    if told.outcome == "quarantined" and told.decision is not None:
        note(
            f"quarantined until somebody reviews it: {', '.join(told.decision.reasons)}; "
            f"see `quarantine list --store {shlex.quote(place)}`"
        )
    return DONE


def _key(text: str) -> str:
    """Return a key as it was given.

    Raises:
        UsageError: it is none, and would replace nothing without a word.
    """
    from agent_runtime_ref.preferences.keys import Key

    if Key.read(text) is None:
        raise UsageError(
            f"--instead-of: `{text}` is no key; `preferences list` shows them: polarity:category:domain:slug"
        )
    return text
