"""`quarantine list`: the records that wait for their review, and why."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.options import note_more, opened, within_limit
from agent_runtime_ref.cli.output import add_format, format_of, print_document, print_lines
from agent_runtime_ref.cli.parsers import example, positive
from agent_runtime_ref.cli.quarantine.queue import add_reviewer, document_of, queued, reasons_of
from agent_runtime_ref.cli.records import counted, table_headings, table_rows
from agent_runtime_ref.cli.refusals import reported
from agent_runtime_ref.cli.terminal import note

if TYPE_CHECKING:
    from agent_runtime_ref.contracts import MemoryRecord
    from agent_runtime_ref.runtime import GovernedMemory


def add_parser(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "list",
        help="the records in quarantine, and why they are there",
        description="List the records in quarantine, and why they are there.",
        epilog=example("quarantine list --store sqlite:memory.db --tenant tenant-acme"),
    )
    parser.add_argument("--limit", type=positive, metavar="N", help="default: as many as the policy allows")
    add_format(parser, "table", "json", "jsonl", "yaml")
    add_reviewer(parser, without_tenant="all tenants")


def run(args: argparse.Namespace) -> int:
    """Print the queue and return the exit code."""
    style = format_of(args, otherwise="table")
    with reported(style), opened(args) as memory:
        most = memory.bundle.settings["limits"]["inspection_max"]
        limit = within_limit(args.limit, most)
        records = queued(memory, args, min(limit + 1, most))
        reasons = reasons_of(memory, {record.memory_id for record in records})
        _print(memory, records[:limit], reasons, style)
        note_more(len(records), limit, most)
        if not records:
            tenant = "" if args.tenant is None else f" of tenant {args.tenant}"
            note(f"nothing{tenant} is in quarantine in `{memory.store_url}`")
    return DONE


def _print(
    memory: GovernedMemory, records: list[MemoryRecord], reasons: dict[str, dict[str, Any]], style: str
) -> None:
    if style == "table":
        from agent_runtime_ref.cli.tables import print_table

        why = [", ".join((reasons.get(record.memory_id) or {}).get("reasons") or ()) for record in records]
        caption = f"{counted(len(records))} in quarantine in {memory.store_url}"
        print_table(table_headings("because"), table_rows(records, why), prose=2, caption=caption)
        return
    documents = [document_of(record, reasons) for record in records]
    if style == "jsonl":
        print_lines(documents)
    else:
        envelope = {"source": memory.store_url, "count": len(documents), "records": documents}
        print_document(envelope, style)
