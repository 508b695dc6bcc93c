"""`read`: one retrieval query through the read gate."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.documents import checked_document
from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.options import (
    add_caller,
    add_settings,
    caller_of,
    opened,
    operator_of,
    system_user,
)
from agent_runtime_ref.cli.output import add_format, format_of, print_document
from agent_runtime_ref.cli.parsers import example, worded
from agent_runtime_ref.cli.refusals import reported
from agent_runtime_ref.cli.terminal import note

if TYPE_CHECKING:
    from agent_runtime_ref.contracts import Caller, RetrievalQuery
    from agent_runtime_ref.runtime import GovernedMemory


def add_parser(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "read",
        help="run a retrieval query through the read gate",
        description="Run a retrieval query through the read gate and print the retrieval_result document.",
        epilog=example(
            "read --query query.yaml --text 'support queue' --tenant tenant-acme --principal user-42",
        ),
    )
    parser.add_argument(
        "--query", metavar="FILE", required=True, help="a retrieval_query document, - for stdin"
    )
    parser.add_argument(
        "--text", metavar="TEXT", help="what to look for; without it, the most trusted come first"
    )
    parser.add_argument(
        "--explain", action="store_true", help="also say what becomes of each record of the tenant"
    )
    add_caller(parser)
    parser.add_argument(
        "--subject", type=worded, metavar="SUBJECT", help="the user acted for; default: the principal"
    )
    add_format(parser, "json", "yaml")
    add_settings(parser)


def run(args: argparse.Namespace) -> int:
    """Print the result and return the exit code."""
    from agent_runtime_ref.contracts import RetrievalQuery

    query = RetrievalQuery.from_document(checked_document(args.query, schema="retrieval_query"))
    caller = caller_of(args, subject=args.subject)
    style = format_of(args)
    with reported(style), opened(args) as memory:
        result = memory.read(query, caller=caller, text=args.text)
        document: dict[str, Any] = result.to_document()
        if args.explain:
            selected = {hit.record.memory_id for hit in result.hits}
            document = {"result": document, "explanation": _explanation(memory, query, caller, selected)}
        print_document(document, style)
    return DONE


def _explanation(
    memory: GovernedMemory, query: RetrievalQuery, caller: Caller, selected: set[str]
) -> list[dict[str, Any]]:
    """Return what becomes of each record of the tenant, as its operator may see; no content."""
    from agent_runtime_ref.enforcement.attributes import Inspection

    most = memory.bundle.settings["limits"]["inspection_max"]
    everything = Inspection(principal_id=system_user(), limit=most, tenant_id=query.tenant_id)
    explanations = memory.explain(everything, query, operator=operator_of(query.tenant_id), caller=caller)
    if len(explanations) == most:
        note(f"the first {most} records of the tenant are explained")
    return [
        {
            "record_id": one.record.memory_id,
            "memory_class": one.record.memory_class,
            "kind": one.record.kind,
            "trust_level": one.record.trust_level,
            "selected": one.record.memory_id in selected,
            "decision": one.to_document(),
        }
        for one in explanations
    ]
