"""`session show`: the constraints in force in a thread."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.options import names_store
from agent_runtime_ref.cli.output import add_format, format_of, print_document, write
from agent_runtime_ref.cli.parsers import example
from agent_runtime_ref.cli.refusals import reported
from agent_runtime_ref.cli.session.thread import add_thread, caller_of, sessions_of, whose_thread
from agent_runtime_ref.cli.terminal import note, shown, warn

if TYPE_CHECKING:
    from agent_runtime_ref.contracts.finding import Finding
    from agent_runtime_ref.session_state import Loaded

_FIELDS = ("polarity", "strength", "category", "domain", "slug", "content", "stated", "amount")


def add_parser(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "show",
        help="the constraints in force in a thread",
        description=(
            "Show the constraints in force in a thread of a user: what is wanted and avoided, the budget,\n"
            "and what the conversation is about. `context` prints them as a prompt holds them. Sessions lie\n"
            "in the folder AGENT_RUNTIME_SESSIONS, else below AGENT_RUNTIME_HOME, else WORKBUDDY_HOME, else\n"
            "the platform's data folder."
        ),
        epilog=example("session show thread-1", "session show thread-1 --user user-42 --tenant tenant-acme"),
    )
    add_thread(parser)
    add_format(parser, "table", "json", "yaml", "context")


def run(args: argparse.Namespace) -> int:
    """Print the constraints and return the exit code."""
    style = format_of(args, otherwise="table")
    caller = caller_of(args)
    with reported(style), sessions_of(args, hands_over=style == "context") as sessions:
        loaded = sessions.look(args.thread, caller=caller)
        _print(loaded, args, style)
        folder = sessions.folder.absolute()
    if loaded.damaged is not None:
        warn(f"the file of `{args.thread}` is damaged ({loaded.damaged}) and read as empty")
    elif loaded.expired:
        note(f"the constraints of `{args.thread}` have expired")
    elif not loaded.state:
        note(f"there are no constraints in {whose_thread(args)}; looked in `{folder}`")
    if loaded.waiting:
        # Which of them were released stands in the store alone.
        more = "" if names_store(args) else "; those that were released are shown with --store"
        note(f"constraints that wait for a review, and are not in force: {loaded.waiting}{more}")
    return DONE


def _print(loaded: Loaded, args: argparse.Namespace, style: str) -> None:
    if style == "table":
        from agent_runtime_ref.cli.tables import print_table

        headings = ["kind", "about", "strength", "domain", "words"]
        caption = f"{len(loaded.state.findings)} constraints in force in {args.thread}"
        print_table(headings, [_row(one) for one in loaded.state.findings], prose=4, caption=caption)
    elif style == "context":
        from agent_runtime_ref.session_state import render

        for line in render(loaded.state).splitlines():
            write(shown(line))
    else:
        print_document(_document(loaded, args), style)


def _document(loaded: Loaded, args: argparse.Namespace) -> dict[str, Any]:
    from datetime import timedelta

    from agent_runtime_ref.clock import timestamp
    from agent_runtime_ref.session_state import TTL
    from agent_runtime_ref.session_state.state import kind_of

    state, caller = loaded.state, caller_of(args)
    saved_us = state.saved_at_us
    ttl_us = TTL // timedelta(microseconds=1)
    return {
        "thread_id": args.thread,
        "tenant_id": caller.tenant_id,
        "user_id": caller.own_subject,
        "saved_at": None if saved_us is None else timestamp(saved_us),
        "expires_at": None if saved_us is None else timestamp(saved_us + ttl_us),
        "expired": loaded.expired,
        "damaged": loaded.damaged,
        "waiting": loaded.waiting,
        "counts": state.counts,
        "constraints": [
            {"kind": kind_of(one)} | {name: one.to_document()[name] for name in _FIELDS}
            for one in state.findings
        ],
    }


def _row(finding: Finding) -> list[str]:
    from agent_runtime_ref.session_state.state import kind_of

    amount = finding.amount
    what = f"{finding.category}: {finding.slug}"
    if amount is not None:
        what = f"{amount.bound} {amount.value} {amount.currency or ''}".rstrip()
    kind = kind_of(finding).partition("_")[0]
    return [kind, what, finding.strength, finding.domain, finding.content]
