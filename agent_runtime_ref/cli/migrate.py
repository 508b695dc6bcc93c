"""`migrate`: make or migrate the schema of a PostgreSQL store, as its owner."""

from __future__ import annotations

import argparse
from typing import Any

from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.options import add_settings, require_named_store, settings_of
from agent_runtime_ref.cli.output import add_format, format_of, print_document
from agent_runtime_ref.cli.parsers import example, worded


def add_parser(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "migrate",
        help="make or migrate the schema of a PostgreSQL store, as its owner",
        description=(
            "Bring the schema of a PostgreSQL store to this version, in one transaction, and print what was\n"
            "done. Log in as the owner of the database; the two roles must exist, and get what they need.\n"
            "A schema that is newer than this version is left as it is."
        ),
        epilog=example("migrate --store postgresql://agent_memory_owner@127.0.0.1/memory"),
    )
    for name, default, holds in (
        ("--application", "agent_memory_app", "of services, which is held to one tenant at a time"),
        ("--inspection", "agent_memory_inspection", "that sees all tenants, and changes nothing"),
    ):
        parser.add_argument(name, type=worded, metavar="ROLE", help=f"the role {holds}; default: {default}")
    add_format(parser, "json", "yaml")
    add_settings(parser, "store")


def run(args: argparse.Namespace) -> int:
    """Print what was done and return the exit code."""
    from agent_runtime_ref.runtime import migrate_store

    require_named_store(args)
    style = format_of(args)
    done = migrate_store(settings_of(args).store, application=args.application, inspection=args.inspection)
    print_document(done, style)
    return DONE
