"""`session clear`: the constraints and turns of a thread are removed."""

from __future__ import annotations

import argparse
from typing import Any

from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.options import names_store
from agent_runtime_ref.cli.output import add_format, format_of, print_document
from agent_runtime_ref.cli.parsers import example
from agent_runtime_ref.cli.refusals import reported
from agent_runtime_ref.cli.session.thread import add_thread, caller_of, sessions_of, whose_thread
from agent_runtime_ref.cli.terminal import note


def add_parser(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "clear",
        help="remove the constraints and turns of a thread",
        description=(
            "Remove the constraints and turns of a thread of a user, if the policy permits it: their files,\n"
            "damaged ones too, and their records in the store that is named. Name it at once: what a store\n"
            "holds of the thread is found by the files."
        ),
        epilog=example("session clear thread-1", "session clear thread-1 --store sqlite:memory.db"),
    )
    add_thread(parser)
    add_format(parser, "json", "yaml")


def run(args: argparse.Namespace) -> int:
    """Clear the thread and return the exit code."""
    style = format_of(args)
    with reported(style), sessions_of(args, removes=True) as sessions:
        caller = caller_of(args)
        cleared = sessions.clear(args.thread, caller=caller)
    document = {"thread_id": args.thread, "tenant_id": caller.tenant_id, "user_id": caller.own_subject}
    print_document(document | {"cleared": cleared}, style)
    if not cleared:
        note(f"there is nothing kept of {whose_thread(args)}")
    elif not names_store(args):
        # The files said which records are of this thread, so nothing can find them from here on.
        note("the files are gone; what a store holds of the thread stays there until it expires")
    return DONE
