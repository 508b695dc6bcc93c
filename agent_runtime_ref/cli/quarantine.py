"""`quarantine`: the review queue of records that were taken in but that nobody reads yet."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.options import (
    add_settings,
    note_more,
    opened,
    operator_of,
    system_user,
    within_limit,
)
from agent_runtime_ref.cli.output import add_format, format_of, print_document, print_lines
from agent_runtime_ref.cli.parsers import example, positive, worded
from agent_runtime_ref.cli.records import counted, record_document, table_headings, table_rows
from agent_runtime_ref.cli.refusals import reported
from agent_runtime_ref.cli.terminal import note
from agent_runtime_ref.errors import RecordNotFoundError

if TYPE_CHECKING:
    from agent_runtime_ref.contracts import MemoryRecord
    from agent_runtime_ref.runtime import GovernedMemory

_EVENT = "memory_quarantined"
_WHY = ("decision_id", "reasons", "rule_ids", "principal_id")


def add_parser(subparsers: Any) -> None:
    """Add the command and what is below it."""
    parser = subparsers.add_parser(
        "quarantine",
        help="look at the review queue",
        description="Look at the records that were quarantined when they were written.",
        epilog=example("quarantine list --store sqlite:memory.db"),
    )
    below = parser.add_subparsers(dest="quarantine_command", metavar="COMMAND", required=True)
    listing = below.add_parser(
        "list",
        help="the records in quarantine, and why they are there",
        description="List the records in quarantine, and why they are there.",
        epilog=example("quarantine list --store sqlite:memory.db --tenant tenant-acme"),
    )
    listing.add_argument("--limit", type=positive, metavar="N", help="default: as many as the policy allows")
    add_format(listing, "table", "json", "jsonl", "yaml")
    showing = below.add_parser(
        "show",
        help="one record in quarantine, in full",
        description="Show one record in quarantine in full, with the decision that put it there.",
        epilog=example("quarantine show mem-0123456789abcdef01234567 --store sqlite:memory.db"),
    )
    showing.add_argument("record", metavar="ID", help="the id of the record")
    add_format(showing, "json", "yaml")
    for one in (listing, showing):
        one.add_argument(
            "--tenant",
            "--tenant-id",
            dest="tenant",
            type=worded,
            metavar="TENANT",
            help="default: all tenants",
        )
        add_settings(one)


def run(args: argparse.Namespace) -> int:
    """Print the queue, or one record of it, and return the exit code."""
    showing = args.quarantine_command == "show"
    style = format_of(args, otherwise="json" if showing else "table")
    with reported(style), opened(args) as memory:
        most = memory.bundle.settings["limits"]["inspection_max"]
        limit = 1 if showing else within_limit(args.limit, most)
        asked = 1 if showing else min(limit + 1, most)
        records = _queue(memory, args.tenant, asked, (args.record,) if showing else ())
        if showing and not records:
            raise RecordNotFoundError(memory.store_url, f"{args.record}` in quarantine; see `quarantine list")
        reasons = _reasons(memory, {record.memory_id for record in records})
        if showing:
            print_document(_document(records[0], reasons), style)
        else:
            _print_list(memory, records[:limit], reasons, style)
            note_more(len(records), limit, most)
            if not records:
                tenant = "" if args.tenant is None else f" of tenant {args.tenant}"
                note(f"nothing{tenant} is in quarantine in `{memory.store_url}`")
    return DONE


def _queue(
    memory: GovernedMemory, tenant_id: str | None, limit: int, record_ids: tuple[str, ...]
) -> list[MemoryRecord]:
    from agent_runtime_ref.enforcement.attributes import Inspection

    inspection = Inspection(
        principal_id=system_user(),
        limit=limit,
        tenant_id=tenant_id,
        statuses=("quarantined",),
        record_ids=record_ids,
    )
    return [hit.record for hit in memory.inspect(inspection, caller=operator_of(tenant_id)).hits]


def _reasons(memory: GovernedMemory, record_ids: set[str]) -> dict[str, dict[str, Any]]:
    """Return for each record the decision that quarantined it, from the decision log."""
    found: dict[str, dict[str, Any]] = {}
    if not record_ids:
        return found
    for line in memory.log_lines():
        if _EVENT not in line:  # most lines are not about this, and reading JSON is not free
            continue
        event = json.loads(line)
        if event.get("event_type") == _EVENT and event["payload"]["record_id"] in record_ids:
            payload = event["payload"]
            found[payload["record_id"]] = {name: payload.get(name) for name in _WHY} | {
                "at": event["timestamp"]
            }
    return found


def _document(record: MemoryRecord, reasons: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return record_document(record) | {"quarantined": reasons.get(record.memory_id)}


def _print_list(
    memory: GovernedMemory, records: list[MemoryRecord], reasons: dict[str, dict[str, Any]], style: str
) -> None:
    if style == "table":
        from agent_runtime_ref.cli.tables import print_table

        why = [", ".join((reasons.get(record.memory_id) or {}).get("reasons") or ()) for record in records]
        caption = f"{counted(len(records))} in quarantine in {memory.store_url}"
        print_table(table_headings("because"), table_rows(records, why), prose=2, caption=caption)
        return
    documents = [_document(record, reasons) for record in records]
    if style == "jsonl":
        print_lines(documents)
    else:
        envelope = {"source": memory.store_url, "count": len(documents), "records": documents}
        print_document(envelope, style)
