"""Commands that have commands below them, as `policy` and `trace`; a module each, imported when chosen."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from agent_runtime_ref.cli.parsers import example

__all__ = ["add_group", "run_chosen"]


def add_group(subparsers: Any, name: str, *, summary: str, shown: str, members: Mapping[str, str]) -> None:
    """Add the command `name` and, below it, what each module of `members` adds.

    A member has `add_parser(subparsers)` and `run(args) -> int`; its module is `cli.NAME.MODULE`.
    """
    parser = subparsers.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", epilog=example(shown)
    )
    below = parser.add_subparsers(dest="member", metavar="COMMAND", required=True)
    for module in members.values():
        _module(name, module).add_parser(below)


def run_chosen(args: argparse.Namespace, members: Mapping[str, str]) -> int:
    """Run the member that was chosen and return its exit code."""
    code: int = _module(args.command, members[args.member]).run(args)
    return code


def _module(group: str, name: str) -> Any:
    return import_module(f"agent_runtime_ref.cli.{group}.{name}")
