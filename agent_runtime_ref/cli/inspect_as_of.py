"""`inspect-memory --as-of`: what a principal would have been shown then, under these or other policies."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.exit_codes import DONE, REFUSED
from agent_runtime_ref.cli.options import opened, operator_of, require_named_store, within_limit
from agent_runtime_ref.cli.output import format_of, print_document, print_lines
from agent_runtime_ref.cli.records import counted, record_document, table_headings
from agent_runtime_ref.cli.refusals import reported
from agent_runtime_ref.cli.terminal import note, warn
from agent_runtime_ref.errors import UsageError

if TYPE_CHECKING:
    from agent_runtime_ref.clock import Clock
    from agent_runtime_ref.contracts import MemoryRecord
    from agent_runtime_ref.policy.bundle import Bundle
    from agent_runtime_ref.replay.as_of import Judged, Shown
    from agent_runtime_ref.runtime import GovernedMemory

# So many records are asked for at once: as many rows as fit into one line of the log.
_AT_ONCE = 50
# Their records belong to a stretch of a thread, which is the subject of its reads; a principal's question is
# about his own subject, and stops at that wall.
_NOT_COVERED = "what was asked for in sessions, which `trace inspect` of a turn shows"


def run(args: argparse.Namespace) -> int:
    """Print what would have been shown and return the exit code: 1 where all would have been refused."""
    from agent_runtime_ref.cli.inspect_memory import principal_of, query_of, tenant_of
    from agent_runtime_ref.clock import SystemClock
    from agent_runtime_ref.replay.as_of import shown_as_of

    clock = SystemClock()
    at_us = _checked_instant(args, clock)
    style = format_of(args, otherwise="table")
    # The policies in force decide who may look; those that are asked about decide nothing now.
    with reported(style), opened(argparse.Namespace(**{**vars(args), "policies": None})) as memory:
        bundle = memory.bundle if args.policies is None else _bundle(args.policies)
        args.limit = within_limit(args.limit, bundle.settings["limits"]["query_max"])
        tenant_id = tenant_of(memory, args)
        shown = shown_as_of(
            memory,
            bundle,
            query_of(bundle.settings, args, tenant_id, narrowed=True),
            caller=principal_of(args, tenant_id),
            operator=operator_of(None),
            at_us=at_us,
            clock=clock,
        )
        _print(memory, args, tenant_id, shown, style, lambda: _envelope(memory, args, shown, bundle, at_us))
    return REFUSED if shown.denied else DONE


def _checked_instant(args: argparse.Namespace, clock: Clock) -> int:
    """Return the instant of `--as-of` in microseconds, where the other options let it be told of."""
    from agent_runtime_ref.clock import microseconds, timestamp

    if args.principal is None:
        raise UsageError("--as-of tells what a principal would have been shown: name it with --as")
    require_named_store(args, only_looks=True)
    at_us = microseconds(args.as_of)
    if at_us > clock.now_us():
        raise UsageError(f"--as-of {timestamp(at_us)} has not come yet")
    return at_us


def _print(
    memory: GovernedMemory,
    args: argparse.Namespace,
    tenant_id: str,
    shown: Shown,
    style: str,
    envelope: Callable[[], dict[str, Any]],
) -> None:
    """Print the records, and beside them what is no record; only a whole document has an envelope."""
    judged = [one for one in shown.judged if one.shown or args.explain]
    records = _records(memory, tenant_id, [one.record_id for one in judged])
    documents = [_document(one, records, explain=args.explain) for one in judged]
    if style == "table":
        _print_table(memory, judged, records)
    elif style == "jsonl":
        print_lines(documents)
    else:
        print_document(envelope() | {"count": len(documents), "records": documents}, style)
    _say(shown, style)


def _bundle(name: str) -> Bundle:
    from agent_runtime_ref.replay.sources import policies_at

    return policies_at(name).bundle()


def _records(memory: GovernedMemory, tenant_id: str, ids: Sequence[str]) -> dict[str, MemoryRecord]:
    """Return the records of those ids as the operator is shown them now; their content never changes."""
    from agent_runtime_ref.cli.options import system_user
    from agent_runtime_ref.runtime import Inspection

    found: dict[str, MemoryRecord] = {}
    for start in range(0, len(ids), _AT_ONCE):
        part = tuple(ids[start : start + _AT_ONCE])
        look = Inspection(principal_id=system_user(), limit=len(part), tenant_id=tenant_id, record_ids=part)
        for hit in memory.inspect(look, caller=operator_of(tenant_id)).hits:
            found[hit.record.memory_id] = hit.record
    return found


def _envelope(
    memory: GovernedMemory, args: argparse.Namespace, shown: Shown, bundle: Bundle, at_us: int
) -> dict[str, Any]:
    from agent_runtime_ref.clock import timestamp
    from agent_runtime_ref.replay.as_of import digest_in_force

    logs = (memory.log_lines(read=read) for read in (False, True))
    return {
        "source": memory.store_url,
        "as_of": {
            "at": timestamp(at_us),
            "principal_id": args.principal,
            "purpose": args.purpose,
            "policies": {
                "name": args.policies,
                "revision": bundle.revision,
                "digest": bundle.digest,
                "digest_in_force": digest_in_force(logs, at_us),
            },
            "log_line": shown.revision,
            "denied": [{"rule_id": row["rule_id"], "reason": row["reason"]} for row in shown.denied],
            "unknowable": [{"record_id": one, "reason": "erased"} for one in shown.unknowable],
            "not_covered": [_NOT_COVERED],
        },
    }


def _document(one: Judged, records: dict[str, MemoryRecord], *, explain: bool) -> dict[str, Any]:
    """Return a record as it was; where its id is a digest in the log, only what the log says of it."""
    record = records.get(one.record_id)
    document: dict[str, Any] = (
        {"memory_id": one.record_id, "memory_class": one.memory_class, "kind": one.kind}
        if record is None
        else record_document(record)
    )
    document["status"] = one.status
    if explain:
        document["decision"] = {
            "effect": "allow" if one.shown else "deny",
            "reasons": list(one.reasons),
            "rule_ids": list(one.rule_ids),
        }
    return document


def _print_table(memory: GovernedMemory, judged: Sequence[Judged], records: dict[str, MemoryRecord]) -> None:
    from agent_runtime_ref.cli.tables import print_table

    rows = []
    for one in judged:
        record = records.get(one.record_id)
        known = ["", "", ""] if record is None else [record.tenant_id, record.trust_level, record.content]
        why = f"kept out: {', '.join(one.reasons) or 'its rank'} ({', '.join(one.rule_ids)})"
        verdict = "shown" if one.shown else why.removesuffix(" ()")
        cells = [one.record_id, known[0], one.memory_class, one.kind, known[1], one.status, known[2]]
        rows.append([*cells, verdict])
    caption = f"{counted(len(judged))} in {memory.store_url}, as of then"
    print_table(table_headings("then"), rows, prose=2, caption=caption)


def _say(shown: Shown, style: str) -> None:
    if shown.denied:
        why = ", ".join(sorted({f"{row['reason']} ({row['rule_id']})" for row in shown.denied}))
        warn(f"nothing would have been shown: {why}")
    elif not any(one.shown for one in shown.judged):
        note("no record would have been shown")
    if style in ("table", "jsonl"):
        note(f"not looked at: {_NOT_COVERED}")
    if shown.unknowable and style in ("table", "jsonl"):
        count = counted(len(shown.unknowable))
        note(f"{count} may have been there and are erased since, so nothing can be said of them")
