"""What the commands about the review queue share: who looks, what is in the queue, and why it is there."""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.options import ALL_TENANTS, OPERATOR, add_settings, add_tenant, system_user
from agent_runtime_ref.cli.parsers import worded
from agent_runtime_ref.cli.records import record_document
from agent_runtime_ref.cli.terminal import note
from agent_runtime_ref.errors import PolicyDeniedError

if TYPE_CHECKING:
    from agent_runtime_ref.contracts import Caller, MemoryRecord
    from agent_runtime_ref.runtime import GovernedMemory

_EVENT = "memory_quarantined"
_WHY = ("decision_id", "reasons", "rule_ids", "principal_id")


def add_reviewer(parser: argparse.ArgumentParser, *, without_tenant: str) -> None:
    """Add who looks or decides, and the settings: by default the system's user, an operator."""
    group = parser.add_argument_group("who acts")
    add_tenant(group, f"default: {without_tenant}")
    group.add_argument(
        "--principal", type=worded, metavar="PRINCIPAL", help="default: the operating system's user"
    )
    group.add_argument(
        "--role", action="append", metavar="ROLE", help=f"a role; may be repeated; default: {OPERATOR}"
    )
    add_settings(parser)


def reviewer_of(args: argparse.Namespace, tenant_id: str | None) -> Caller:
    """Return who acts, in one tenant or in all of them."""
    from agent_runtime_ref.contracts import Caller

    principal = system_user() if args.principal is None else args.principal
    roles = (OPERATOR,) if args.role is None else tuple(args.role)
    return Caller(ALL_TENANTS if tenant_id is None else tenant_id, principal, roles=roles)


def queued(
    memory: GovernedMemory, args: argparse.Namespace, limit: int, record_ids: tuple[str, ...] = ()
) -> list[MemoryRecord]:
    """Return what waits in quarantine, as whoever acts is shown it."""
    from agent_runtime_ref.enforcement.attributes import Inspection

    caller = reviewer_of(args, args.tenant)
    inspection = Inspection(
        principal_id=caller.principal_id,
        limit=limit,
        tenant_id=args.tenant,
        statuses=("quarantined",),
        record_ids=record_ids,
    )
    try:
        return [hit.record for hit in memory.inspect(inspection, caller=caller).hits]
    except PolicyDeniedError:
        if args.tenant is None:
            note("all tenants are looked at, as an operator may; a reviewer names one: --tenant")
        raise


def reasons_of(memory: GovernedMemory, record_ids: Collection[str]) -> dict[str, dict[str, Any]]:
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


def document_of(record: MemoryRecord, reasons: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a record in quarantine as it is printed."""
    return record_document(record) | {"quarantined": reasons.get(record.memory_id)}
