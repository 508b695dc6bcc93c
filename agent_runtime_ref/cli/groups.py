"""Commands that have commands below them, as `policy` and `trace`; a module each, imported when chosen."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from agent_runtime_ref.cli.parsers import example

__all__ = ["Group"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A command and those below it.

    A member has `add_parser(subparsers)` and `run(args) -> int`; its module is `cli.NAME.MODULE`.
    """

    name: str
    summary: str
    shown: str  # a call of a member, as an example
    members: Mapping[str, str]  # command -> module

    def add_parser(self, subparsers: Any) -> None:
        """Add the command and, below it, what each of its members adds."""
        summary = self.summary
        parser = subparsers.add_parser(
            self.name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=example(self.shown),
        )
        below = parser.add_subparsers(dest="member", metavar="COMMAND", required=True)
        for member in self.members:
            self._module(member).add_parser(below)

    def run(self, args: argparse.Namespace) -> int:
        """Run the member that was chosen and return its exit code."""
        code: int = self._module(args.member).run(args)
        return code

    def _module(self, member: str) -> Any:
        return import_module(f"agent_runtime_ref.cli.{self.name}.{self.members[member]}")
