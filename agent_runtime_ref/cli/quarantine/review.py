"""What `quarantine release` and `quarantine reject` share: the options, the tenant, the receipt."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from agent_runtime_ref.cli.options import is_volatile, opened, require_named_store
from agent_runtime_ref.cli.output import add_format, format_of, print_document
from agent_runtime_ref.cli.parsers import worded
from agent_runtime_ref.cli.quarantine.queue import add_reviewer, queued, reviewer_of
from agent_runtime_ref.cli.refusals import reported
from agent_runtime_ref.cli.terminal import note
from agent_runtime_ref.errors import NotInQuarantineError, UsageError

if TYPE_CHECKING:
    from agent_runtime_ref.contracts import Caller, ReviewReceipt
    from agent_runtime_ref.runtime import GovernedMemory

Step = Callable[["GovernedMemory", "Caller"], "ReviewReceipt"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what both steps take."""
    parser.add_argument("record", metavar="ID", help="the id of the record")
    parser.add_argument(
        "--reason",
        type=worded,
        metavar="TEXT",
        required=True,
        help="why; in the log it stands as a digest, unless it is one plain word such as a ticket's number",
    )
    add_format(parser, "table", "json", "yaml")
    add_reviewer(parser, without_tenant="the one that has a record of this id in quarantine")


def reviewed(args: argparse.Namespace, step: Step) -> ReviewReceipt:
    """Take the step, print its receipt and return it."""
    require_named_store(args)
    style = format_of(args, otherwise="table")
    with reported(style), opened(args) as memory:
        tenant_id = _tenant(memory, args)
        receipt = step(memory, reviewer_of(args, tenant_id))
        if style == "table":
            _print_table(receipt)
        else:
            print_document(receipt.to_document(), style)
        if is_volatile(memory.store_url):
            note(f"store `{memory.store_url}` ends with this command; nothing else was changed")
    return receipt


def _tenant(memory: GovernedMemory, args: argparse.Namespace) -> str:
    """Return the tenant that was named, else the one in which the record waits.

    Raises:
        NotInQuarantineError: no tenant has a record of that id in quarantine.
        UsageError: several have one.
    """
    if args.tenant is not None:
        return str(args.tenant)
    found = [record.tenant_id for record in queued(memory, args, 2, (args.record,))]
    if not found:
        raise NotInQuarantineError(memory.store_url, f"{args.record}` in quarantine; see `quarantine list")
    if len(found) > 1:
        tenants = ", ".join(f"`{name}`" for name in sorted(found))
        raise UsageError(f"several tenants have a record `{args.record}`: {tenants}; name one with --tenant")
    return found[0]


def _print_table(receipt: ReviewReceipt) -> None:
    from agent_runtime_ref.cli.tables import print_table

    caption = f"decision {receipt.decision.decision_id}"
    print_table(["what", "before", "now"], list(_rows(receipt)), prose=2, caption=caption)


def _rows(receipt: ReviewReceipt) -> Iterator[list[str]]:
    document = receipt.to_document()
    yield ["record", document["record_id"], "removed" if receipt.record is None else document["record_id"]]
    for name, (before, now) in document["changes"].items():
        yield [name, _cell(before), _cell(now)]
    if receipt.supersedes is not None:
        yield ["supersedes", "nothing", receipt.supersedes]
    readable = receipt.readable
    if readable is not None:
        whom = "everybody in the tenant" if readable.subject is None else readable.subject
        yield ["read by", "nobody", whom if readable.purposes else "nobody"]
        yield ["read for", "nothing", ", ".join(readable.purposes) or "nothing"]
        kept = [f"{purpose} ({', '.join(reasons)})" for purpose, reasons in readable.kept_from.items()]
        yield ["not read for", "every purpose", ", ".join(kept) or "nothing"]
    else:
        stays = "stays: the same content is refused when it comes again"
        yield ["tombstone", "none", stays if receipt.tombstone else "none: no detector fired on the content"]


def _cell(value: object) -> str:
    return "none" if value is None else str(value)
