"""`trace exposure`: every context that a record, or anything derived from it, entered."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.options import opened, require_named_store
from agent_runtime_ref.cli.output import json_text, write
from agent_runtime_ref.cli.parsers import example, worded
from agent_runtime_ref.cli.quarantine.queue import add_reviewer, reviewer_of
from agent_runtime_ref.cli.refusals import reported
from agent_runtime_ref.cli.terminal import note
from agent_runtime_ref.errors import UsageError

if TYPE_CHECKING:
    from agent_runtime_ref.enforcement.descent import Descent
    from agent_runtime_ref.runtime import GovernedMemory


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "exposure",
        help="every context that a record, or anything derived from it, entered",
        description=(
            "List what was derived from a record, over any number of steps, and every context that any of\n"
            "these entered, by the decision log: whose it was, when, and by which record (`via`). Looking\n"
            "is an inspection within one tenant, decided and logged as one. Of a record that is gone the\n"
            "log still tells; name its tenant. With --quarantine what is still active of them goes before a\n"
            "reviewer in one step: each record is a decision, and who does it cannot let it go again.\n"
            "Who wrote a record that was active can, with a role that reviews; the log says who it was."
        ),
        epilog=example(
            "trace exposure mem-0123456789abcdef01234567 --store sqlite:memory.db",
            "trace exposure mem-0123456789abcdef01234567 --store sqlite:memory.db --quarantine all "
            "--reason SEC-1425 --apply",
        ),
    )
    parser.add_argument("record", type=worded, metavar="RECORD", help="the id of the record")
    step = parser.add_argument_group("what to do about it")
    step.add_argument(
        "--quarantine",
        choices=("descendants", "all"),
        help="put what is active of its descendants, or of these and itself, into quarantine: all or none",
    )
    step.add_argument("--reason", type=worded, metavar="TEXT", help="why; in the log it stands as a digest")
    step.add_argument("--apply", action="store_true", help="do it; else it is only said what would be done")
    add_reviewer(parser, without_tenant="the one that has a record of this id")


def run(args: argparse.Namespace) -> int:
    """Print the exposure and return the exit code."""
    from agent_runtime_ref.exposure import contexts_of

    require_named_store(args, only_looks=args.quarantine is None)
    if args.quarantine is None and (args.apply or args.reason):
        raise UsageError("--apply and --reason are about what goes into quarantine: say it with --quarantine")
    if args.apply and args.reason is None:
        raise UsageError("--apply needs --reason: a review says why")
    with reported(), opened(args) as memory, TemporaryFile("w+", encoding="utf-8") as spool:
        tenant_id = _tenant(memory, args)
        descent = memory.descent(args.record, caller=reviewer_of(args, tenant_id))
        descendants = [record.memory_id for record in descent.descendants]
        # First all of them, then the answer: a log that is damaged further on must not leave half of one.
        for context in contexts_of(memory, [args.record, *descendants], tenant_id):
            spool.write(json_text(context.to_document(), indent=None) + "\n")
        if descent.record is None and not descendants and not spool.tell():
            raise UsageError(
                f"tenant `{tenant_id}` has no record `{args.record}`, and its log names no context that one "
                "of that id entered"
            )
        spool.seek(0)
        step = None if args.quarantine is None else _quarantined(memory, args, tenant_id, descent)
        _print(args.record, descendants, spool, step)
        if descent.record is None:
            note(f"tenant `{tenant_id}` has no record `{args.record}` now; what the log says of it is listed")
    return DONE


def _quarantined(
    memory: GovernedMemory, args: argparse.Namespace, tenant_id: str, descent: Descent
) -> dict[str, Any]:
    """Put what is active into quarantine, if that is to be done, and return what was or would be done."""
    own = [descent.record] if args.quarantine == "all" and descent.record is not None else []
    chosen = [*own, *descent.descendants]
    active = [record.memory_id for record in chosen if record.status == "active"]
    decisions = []
    if args.apply:
        caller = reviewer_of(args, tenant_id)
        decisions = memory.quarantine(active, caller=caller, reason=args.reason)
    else:
        note("nothing was put into quarantine; --apply does it")
    return {
        "applied": args.apply,
        "records": active,
        "left": [
            {"record_id": record.memory_id, "status": record.status}
            for record in chosen
            if record.status != "active"
        ],
        "decision_ids": [decision.decision_id for decision in decisions],
    }


def _tenant(memory: GovernedMemory, args: argparse.Namespace) -> str:
    """Return the tenant that was named, else the one that has the record.

    Raises:
        UsageError: no tenant has it, or several have one of that id.
    """
    from agent_runtime_ref.runtime import Inspection

    if args.tenant is not None:
        return str(args.tenant)
    caller = reviewer_of(args, None)
    look = Inspection(principal_id=caller.principal_id, limit=2, record_ids=(args.record,))
    found = sorted({hit.record.tenant_id for hit in memory.inspect(look, caller=caller).hits})
    if not found:
        raise UsageError(
            f"no tenant has a record `{args.record}`; of one that is gone, name the tenant with --tenant"
        )
    if len(found) > 1:
        raise UsageError(
            f"several tenants have a record `{args.record}`: {', '.join(f'`{one}`' for one in found)}; "
            "name one with --tenant"
        )
    return found[0]


def _print(
    record_id: str, descendants: list[str], contexts: Iterable[str], step: dict[str, Any] | None
) -> None:
    """Print one JSON document; of the contexts, which may be a million, one at a time."""
    head = json_text({"record_id": record_id, "descendants": descendants})
    write(head.removesuffix("\n}") + ',\n  "contexts": [')
    before = ""
    for context in contexts:
        if before:
            write(f"    {before},")
        before = context.rstrip("\n")
    if before:
        write(f"    {before}")
    if step is None:
        write("  ]\n}")
    else:
        write("  ]," + json_text({"quarantine": step}).removeprefix("{"))
