"""`session export`: the runs, decisions and events of one session, from the decision log."""

from __future__ import annotations

import argparse
from typing import Any

from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.options import opened, require_named_store
from agent_runtime_ref.cli.output import json_text
from agent_runtime_ref.cli.parsers import example, worded
from agent_runtime_ref.cli.quarantine.queue import add_reviewer, reviewer_of
from agent_runtime_ref.cli.refusals import reported
from agent_runtime_ref.cli.reports import print_report, require_target


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "export",
        help="the runs, decisions and events of a session",
        description=(
            "Export what the decision log holds of one session: its runs, its decisions and its events, as\n"
            "JSON. Fields leave by an allow-list, and each line names in `redacted_fields` which were left\n"
            "out. Looking is an inspection of the tenant, decided and logged as one."
        ),
        epilog=example("session export session-001 --store sqlite:memory.db -o session-001.json"),
    )
    parser.add_argument("session", type=worded, metavar="SESSION", help="the id of the session")
    parser.add_argument("-o", "--output", metavar="FILE", help="write it there; default: standard output")
    add_reviewer(parser, without_tenant="the one that has the session")


def run(args: argparse.Namespace) -> int:
    """Print the session and return the exit code."""
    from agent_runtime_ref.exposure import session_export

    require_target(args.output)
    require_named_store(args, only_looks=True)
    with reported(), opened(args) as memory:
        memory.look_into_log(caller=reviewer_of(args, args.tenant), tenant_id=args.tenant)
        session = session_export(memory, args.session, args.tenant)
        print_report(args.output, json_text(session.to_document()) + "\n")
    return DONE
