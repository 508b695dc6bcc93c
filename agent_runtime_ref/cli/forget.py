"""`forget`: everything about a subject, removed in one call."""

from __future__ import annotations

import argparse
from typing import Any

from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.options import (
    OPERATOR,
    add_caller,
    add_settings,
    caller_of,
    is_volatile,
    opened,
    require_named_store,
)
from agent_runtime_ref.cli.output import add_format, format_of, print_document
from agent_runtime_ref.cli.parsers import example, worded
from agent_runtime_ref.cli.refusals import reported
from agent_runtime_ref.cli.terminal import note


def add_parser(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "forget",
        help="remove everything about a subject, and print the receipt",
        description=(
            "Remove everything about a subject within a tenant, and print the receipt: counts and digests\n"
            "by class, and what it does not cover. Whoever holds the store is its operator: that is the\n"
            "role unless --role names others. What the subject asked for in threads of the tenant goes too,\n"
            "those in the folder of --sessions, else of the environment, and the receipt counts it; and so\n"
            "does what a killed agent left."
        ),
        epilog=example(
            "forget --subject person-7 --tenant acme --principal dpo --store sqlite:memory.db --dry-run",
        ),
    )
    parser.add_argument("--subject", type=worded, metavar="SUBJECT", required=True, help="whom to forget")
    parser.add_argument("--dry-run", action="store_true", help="count what would go, and remove nothing")
    parser.add_argument(
        "--sessions",
        type=worded,
        metavar="FOLDER",
        help="where the subject's threads lie; default: AGENT_RUNTIME_SESSIONS, else below the data folder",
    )
    add_caller(parser)
    add_format(parser, "json", "yaml")
    add_settings(parser)


def run(args: argparse.Namespace) -> int:
    """Print the receipt and return the exit code."""
    from agent_runtime_ref.background.ends import late_end, of_nobody
    from agent_runtime_ref.background.pending import forget_waiting
    from agent_runtime_ref.background.places import pending_folder
    from agent_runtime_ref.clock import SystemClock, timestamp
    from agent_runtime_ref.session_state import Sessions
    from agent_runtime_ref.session_state.forgetting import with_threads

    require_named_store(args)
    style = format_of(args)
    with reported(style), opened(args) as memory:
        caller = caller_of(args, roles=(OPERATOR,))
        # Before the records: a decision about somebody who was forgotten makes his name a new key in the log.
        sessions = Sessions(memory, folder=args.sessions)
        gone = sessions.forget_threads(args.subject, caller=caller, dry_run=args.dry_run)
        receipt = memory.forget(subject=args.subject, caller=caller, dry_run=args.dry_run)
        folder = pending_folder(memory)
        if folder is not None and not args.dry_run:
            forget_waiting(
                folder,
                args.tenant,
                args.subject,
                end=lambda waiting: memory.end_run(late_end(of_nobody(waiting))),
            )
        # Whoever files the receipt needs to know where and when as well.
        filed = {
            "store": memory.store_url,
            "tenant_id": args.tenant,
            "at": timestamp(SystemClock().now_us()),
            "threads": gone.threads,
            "sessions": str(sessions.folder.absolute()),
        }
        print_document(filed | with_threads(receipt, gone).to_document(), style)
        if not gone.threads:
            note(
                f"no thread of the subject in `{sessions.folder.absolute()}`; constraints and turns that lie"
                f" elsewhere are still there: name their folder with --sessions or AGENT_RUNTIME_SESSIONS"
            )
        if is_volatile(memory.store_url):
            note(f"store `{memory.store_url}` ends with this command; nothing else was changed")
    return DONE
