"""`demo`: a guided tour over a store that is removed afterwards.

Each step does a real operation on a SQLite store and reports what came back; nothing is pretended.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.options import add_settings, settings_of
from agent_runtime_ref.cli.output import add_format, format_of, print_document, write
from agent_runtime_ref.cli.parsers import example
from agent_runtime_ref.cli.terminal import shown

if TYPE_CHECKING:
    from agent_runtime_ref.cli.demo_steps import Told

_INTRODUCTION = (
    "Governed memory: nothing is read or written except through two gates, and each decision is kept.\n"
    "Every line below was produced just now, on a SQLite store that is removed at the end."
)


def add_parser(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "demo",
        help="a guided tour over a store that is removed afterwards",
        description=__doc__,
        epilog=example("demo", "demo --format json"),
    )
    add_format(parser, "text", "json")
    add_settings(parser, "engine", "policies")


def run(args: argparse.Namespace) -> int:
    """Run the tour and return the exit code."""
    from agent_runtime_ref.cli.demo_steps import STEPS
    from agent_runtime_ref.runtime import GovernedMemory

    settings = settings_of(args)
    as_json = format_of(args, otherwise="text") == "json"
    if not as_json:
        write(_INTRODUCTION)
    with (
        tempfile.TemporaryDirectory(prefix="agent-runtime-demo-") as folder,
        GovernedMemory.open(
            f"sqlite:{Path(folder) / 'memory.db'}",
            engine=settings.engine,
            policies=settings.policies,
            policies_digest=settings.policies_digest,
        ) as memory,
    ):
        told = [_told(number, title, step(memory), as_json) for number, (title, step) in enumerate(STEPS, 1)]
    if as_json:
        print_document({"steps": told})
    else:
        write("\nThe store is gone. Next: `agent-runtime-ref inspect-memory --explain`, and the README.")
    return DONE


def _told(number: int, title: str, result: Told, as_json: bool) -> dict[str, Any]:
    """Return a step as data; for a reader it is printed right away, since a tour is watched."""
    lines, data = result
    if not as_json:
        write(f"\n{number}. {title}")
        for line in lines:
            write(f"   {shown(line)}")
    return {"step": number, "title": title, "data": data}
