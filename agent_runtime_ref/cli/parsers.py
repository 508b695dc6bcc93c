"""argparse as this command uses it: no abbreviations, an example in every help, one-line errors."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, NoReturn

from agent_runtime_ref.cli.terminal import shown

PROGRAM = "agent-runtime-ref"


class Help(argparse.RawDescriptionHelpFormatter):
    """Descriptions as they were written, and set anew where the terminal is narrower than they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if all(len(line) <= width for line in text.splitlines()):
            return super()._fill_text(text, width, indent)
        import textwrap

        filled: list[str] = []
        for kept, group in groupby(text.splitlines(), key=lambda line: not line or line[0] == " "):
            # Indented lines are commands and tables, which are copied rather than read.
            lines = list(group)
            filled += lines if kept else textwrap.wrap(" ".join(lines), max(width, 20))
        return "".join(f"{indent}{line}\n" for line in filled)


class Parser(argparse.ArgumentParser):
    """A parser whose mistakes are one line, with the user's words made harmless."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", Help)
        # An abbreviation stops to work on the day an option is added that begins alike.
        options.setdefault("allow_abbrev", False)
        super().__init__(**options)

    def error(self, message: str) -> NoReturn:
        """Print the mistake and where help is, and end with code 2."""
        self.exit(2, f"{PROGRAM}: {shown(message)}; see `{self.prog} --help`\n")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """End with `status` after `message` went to stderr."""
        if message:
            sys.stderr.write(message)
        raise SystemExit(status)


def positive(text: str) -> int:
    """Return the whole number from 1 in `text`."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is no whole number from 1")
    return int(text)


def worded(text: str) -> str:
    """Return `text`, which names somebody or something and therefore is not empty."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it must not be empty")
    return text


def instant(text: str) -> datetime:
    """Return the instant in `text`; a date is its first moment in UTC."""
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        value = None
    if value is not None and value.tzinfo is None and len(text) == len("2026-01-31"):
        value = value.replace(tzinfo=UTC)
    if value is None or value.tzinfo is None:
        raise argparse.ArgumentTypeError(
            f"`{text}` is no date and no instant with a zone; for example 2026-01-31 or 2026-01-31T12:00:00Z"
        )
    return value


def example(*lines: str) -> str:
    """Return the epilog that shows how a command is called."""
    return "\n".join(["example:", *(f"  {PROGRAM} {line}" for line in lines)])
