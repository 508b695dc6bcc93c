"""`inspect-memory`: the records of a store, and why a principal is shown each of them or not.

Looking is a governed read like any other. Without `--as` the operating system's user looks as an operator;
with it, the answer is what that principal would be shown.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.options import (
    add_settings,
    add_tenant,
    note_more,
    opened,
    operator_of,
    system_user,
    within_limit,
)
from agent_runtime_ref.cli.output import add_format, format_of, print_document, print_lines
from agent_runtime_ref.cli.parsers import example, instant, positive, worded
from agent_runtime_ref.cli.records import (
    counted,
    record_document,
    table_headings,
    table_rows,
    verdict_sentence,
)
from agent_runtime_ref.cli.refusals import reported
from agent_runtime_ref.cli.terminal import note
from agent_runtime_ref.errors import UsageError

if TYPE_CHECKING:
    from agent_runtime_ref.contracts import Caller, MemoryRecord, RetrievalQuery
    from agent_runtime_ref.enforcement.attributes import Inspection
    from agent_runtime_ref.enforcement.explain import Explanation
    from agent_runtime_ref.runtime import GovernedMemory

SESSION = "inspect-memory"
DEFAULT_PURPOSE = "answer_generation"


def add_parser(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "inspect-memory",
        help="show records, governed, and why each one is let in or kept out",
        description=__doc__,
        epilog=example(
            "inspect-memory --explain",
            "inspect-memory --tenant tenant-acme --as user-42 --purpose personalization --explain",
            "inspect-memory --store sqlite:memory.db --as user-42 --purpose planning --as-of 2026-05-01",
        ),
    )
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--config", metavar="FILE", help="a memory.yaml; the same as --store seeds:FILE")
    place.add_argument("--config-dir", metavar="DIR", help="a folder with a memory.yaml in it")
    _add_choice(parser)
    _add_principal(parser)
    parser.add_argument(
        "--explain", action="store_true", help="for each record: the decision, rules, and a change"
    )
    add_format(parser, "table", "json", "jsonl", "yaml")
    add_settings(parser)


def _add_choice(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose records."""
    chosen = parser.add_argument_group("which records")
    add_tenant(chosen, "default: all tenants")
    chosen.add_argument("--memory-class", action="append", metavar="CLASS", help="may be repeated")
    chosen.add_argument("--kind", action="append", metavar="KIND", help="may be repeated")
    chosen.add_argument("--source", action="append", metavar="SOURCE", help="may be repeated")
    chosen.add_argument("--trust-min", choices=("low", "medium", "high"), help="the least trust")
    chosen.add_argument("--limit", type=positive, metavar="N", help="default: as many as the policy allows")


def _add_principal(parser: argparse.ArgumentParser) -> None:
    """Add the options that say whose view it is, and of when."""
    who = parser.add_argument_group("for whom")
    who.add_argument(
        "--as",
        dest="principal",
        type=worded,
        metavar="PRINCIPAL",
        help="show what this principal would be shown",
    )
    who.add_argument(
        "--purpose", metavar="PURPOSE", help=f"for this purpose; with --explain: {DEFAULT_PURPOSE}"
    )
    who.add_argument("--subject", type=worded, metavar="SUBJECT", help="the user that the principal acts for")
    who.add_argument(
        "--role", action="append", metavar="ROLE", help="a role of the principal; may be repeated"
    )
    who.add_argument(
        "--as-of",
        metavar="TIME",
        type=instant,
        help="what it would have been shown then; with --policies under those (a git revision, too)",
    )


def run(args: argparse.Namespace) -> int:
    """Print the records and return the exit code."""
    _check(args)
    _place(args)
    if args.as_of is not None:
        from agent_runtime_ref.cli import inspect_as_of

        return inspect_as_of.run(args)
    from agent_runtime_ref.telemetry.turns import looking

    style = format_of(args, otherwise="table")
    with reported(style), looking(), opened(args) as memory:
        inspects = args.principal is None or args.explain
        most = memory.bundle.settings["limits"]["inspection_max" if inspects else "query_max"]
        limit = within_limit(args.limit, most)
        args.limit = min(limit + 1, most)  # one more, to know whether there is one
        if args.explain:
            explanations = _explained(memory, args)
            records = [one.record for one in explanations]
        else:
            explanations, records = [], _seen(memory, args)
        _print(memory, args, records[:limit], explanations[:limit], style)
        note_more(len(records), limit, most)
        if not records:
            note(_nothing(args, memory.store_url))
    return DONE


def _nothing(args: argparse.Namespace, store_url: str) -> str:
    """Return the sentence for an answer without records: where, and by which options."""
    named = {
        "--tenant": args.tenant,
        "--memory-class": args.memory_class,
        "--kind": args.kind,
        "--source": args.source,
        "--trust-min": args.trust_min,
        "--as": args.principal,
        "--purpose": args.purpose,
        "--subject": args.subject,
        "--role": args.role,
    }
    chosen = [
        f"{option} {value}"
        for option, values in named.items()
        if values is not None
        for value in (values if isinstance(values, list) else [values])
    ]
    where = f"nothing found in `{store_url}`" + (f" with {', '.join(chosen)}" if chosen else "")
    return f"{where}; --explain says what is kept out" if args.principal and not args.explain else where


def _check(args: argparse.Namespace) -> None:
    if args.principal is not None and args.purpose is None:
        raise UsageError("--as needs --purpose: what a principal is shown depends on what it is for")
    if args.purpose is not None and args.principal is None and not args.explain:
        raise UsageError("--purpose needs --as PRINCIPAL or --explain: without them an operator inspects")
    if (args.role or args.subject) and args.principal is None:
        raise UsageError("--role and --subject describe the principal of --as; name it")
    if (args.config or args.config_dir) and args.store:
        raise UsageError("--config and --config-dir name a store of seeds; leave --store out")


def _place(args: argparse.Namespace) -> None:
    """Turn a memory.yaml named directly into the store address that means it."""
    if args.config_dir is not None:
        args.config = str(Path(args.config_dir) / "memory.yaml")
    if args.config is not None:
        args.store = f"seeds:{args.config}"


def _seen(memory: GovernedMemory, args: argparse.Namespace) -> list[MemoryRecord]:
    """Return what the operator, or the principal of `--as`, is shown."""
    if args.principal is None:
        result = memory.inspect(_inspection(args), caller=operator_of(args.tenant))
    else:
        tenant_id = tenant_of(memory, args)
        query = query_of(memory.bundle.settings, args, tenant_id, narrowed=True)
        result = memory.read(query, caller=principal_of(args, tenant_id), operation="list")
    return [hit.record for hit in result.hits]


def _explained(memory: GovernedMemory, args: argparse.Namespace) -> list[Explanation]:
    """Return a verdict for each record that an operator sees, in the order in which he sees them."""
    if args.principal is not None:
        args.tenant = tenant_of(memory, args)
    result = memory.inspect(_inspection(args), caller=operator_of(args.tenant))
    places = {(hit.record.tenant_id, hit.record.memory_id): hit.rank for hit in result.hits}
    explanations: list[Explanation] = []
    for tenant_id in dict.fromkeys(tenant_id for tenant_id, _ in places):
        ids = tuple(memory_id for tenant, memory_id in places if tenant == tenant_id)
        explanations += memory.explain(
            _inspection(args, tenant_id=tenant_id, record_ids=ids),
            query_of(memory.bundle.settings, args, tenant_id, narrowed=False),
            operator=operator_of(tenant_id),
            caller=principal_of(args, tenant_id),
        )
    return sorted(explanations, key=lambda one: places[one.record.tenant_id, one.record.memory_id])


def _inspection(
    args: argparse.Namespace, *, tenant_id: str | None = None, record_ids: tuple[str, ...] = ()
) -> Inspection:
    from agent_runtime_ref.enforcement.attributes import Inspection

    return Inspection(
        principal_id=system_user(),
        limit=args.limit,
        tenant_id=args.tenant if tenant_id is None else tenant_id,
        classes=None if args.memory_class is None else tuple(args.memory_class),
        kinds=tuple(args.kind or ()),
        sources=tuple(args.source or ()),
        trust_min=args.trust_min,
        record_ids=record_ids,
    )


def query_of(
    settings: Mapping[str, Any], args: argparse.Namespace, tenant_id: str, *, narrowed: bool
) -> RetrievalQuery:
    """Return the query that stands for `--as` and `--purpose`: every class that the purpose may read.

    Where it is to be explained, the options that choose records chose what is explained, not what is asked.
    """
    from agent_runtime_ref.contracts import RetrievalQuery

    purpose = args.purpose or DEFAULT_PURPOSE
    permitted = settings["purposes"].get(purpose, {}).get("classes", {})
    # A purpose that the policy does not know is for the policy to refuse, with its reason.
    classes = [name for name, may in permitted.items() if may] or sorted(settings["classes"])
    return RetrievalQuery(
        SESSION,
        SESSION,
        tenant_id,
        args.principal or system_user(),
        purpose,
        tuple(args.memory_class) if narrowed and args.memory_class else tuple(classes),
        # An inspection may show more than a query may ask for; each of its records is explained all the same.
        args.limit if narrowed else min(args.limit, settings["limits"]["query_max"]),
        trust_min=args.trust_min if narrowed else None,
        kinds=tuple(args.kind or ()) if narrowed else (),
        sources=tuple(args.source or ()) if narrowed else (),
    )


def principal_of(args: argparse.Namespace, tenant_id: str) -> Caller:
    """Return the principal of `--as`; without one, the system's user."""
    from agent_runtime_ref.contracts import Caller

    return Caller(
        tenant_id=tenant_id,
        principal_id=args.principal or system_user(),
        subject=args.subject,
        roles=tuple(args.role or ()),
    )


def tenant_of(memory: GovernedMemory, args: argparse.Namespace) -> str:
    """Return the tenant of `--as`: the named one, or the only one there is.

    Finding out which there are is an inspection across tenants, decided and logged as one.
    """
    if args.tenant is not None:
        return str(args.tenant)
    from agent_runtime_ref.enforcement.attributes import Inspection

    most = memory.bundle.settings["limits"]["inspection_max"]
    result = memory.inspect(Inspection(principal_id=system_user(), limit=most), caller=operator_of(None))
    tenants = {hit.record.tenant_id for hit in result.hits}
    if len(tenants) != 1 or len(result.hits) == most:
        raise UsageError("--as needs --tenant: the store may hold more than one tenant, or none")
    return tenants.pop()


def _print(
    memory: GovernedMemory,
    args: argparse.Namespace,
    records: Sequence[MemoryRecord],
    explanations: Sequence[Explanation],
    style: str,
) -> None:
    if style == "table":
        from agent_runtime_ref.cli.tables import print_table

        sentences = [verdict_sentence(one, memory.bundle.settings) for one in explanations]
        headings = table_headings("decision") if args.explain else table_headings()
        rows = table_rows(records, sentences if args.explain else None)
        caption = f"{counted(len(records))} in {memory.store_url}"
        print_table(headings, rows, prose=2 if args.explain else 1, caption=caption)
        return
    documents = [record_document(record) for record in records]
    for document, explanation in zip(documents, explanations, strict=False):
        document["decision"] = explanation.to_document()
    if style == "jsonl":
        print_lines(documents)
        return
    envelope: dict[str, Any] = {"source": memory.store_url, "count": len(documents)}
    if args.explain:
        envelope["explained_for"] = {
            "principal_id": args.principal or system_user(),
            "purpose": args.purpose or DEFAULT_PURPOSE,
        }
    print_document(envelope | {"records": documents}, style)
