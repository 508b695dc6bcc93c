"""A finding of lint: one place, one rule, one line; made harmless for terminals and logs when it is made."""

from __future__ import annotations

import os
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from agent_runtime_ref.linting.rules import RULES

__all__ = ["Finding", "Report", "finding", "plain", "shown_path"]

MESSAGE_MAX = 1_000  # characters; a finding is a line to read, not a dump


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """What is wrong, where, and what to do. The order is that of every format: path, place, rule."""

    path: str  # as shown: relative to the working folder where it lies below it, with forward slashes
    line: int
    column: int
    rule_id: str
    message: str
    severity: str  # error or warning
    remedy: str


@dataclass(frozen=True, slots=True)
class Report:
    """All findings of a run, in order, and the files that were looked at."""

    findings: tuple[Finding, ...]
    files: tuple[str, ...]

    def count(self, severity: str) -> int:
        """Return how many findings are of a severity."""
        return sum(one.severity == severity for one in self.findings)


def finding(
    rule_id: str,
    path: Path,
    message: str,
    place: tuple[int | None, int | None] | None = None,
    *,
    severity: str | None = None,
) -> Finding:
    """Return a finding; without a place it stands at the beginning of the file."""
    rule = RULES[rule_id]
    line, column = place or (1, 1)
    text = plain(message)
    if len(text) > MESSAGE_MAX:
        text = text[:MESSAGE_MAX] + "..."
    return Finding(
        path=shown_path(path),
        line=line or 1,
        column=column or 1,
        rule_id=rule_id,
        message=text,
        severity=severity or rule.severity,
        remedy=rule.remedy,
    )


def plain(text: str) -> str:
    """Return `text` on one line: what a terminal acts on or an eye cannot see becomes an escape.

    Messages repeat what others wrote. A line break in them would forge a second finding, in every format
    that is read line by line.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _is_seen(char) else _escaped(char) for char in text)


def shown_path(path: Path) -> str:
    """Return a path as findings show it."""
    name = os.path.normpath(path)
    folder = os.path.join(_working_folder(), "")
    if name.startswith(folder):
        name = name[len(folder) :]
    # A file name need not be text; bytes that are none were read as surrogates.
    return plain(Path(name).as_posix())


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "\0"  # it was removed under us; only absolute paths can be shown


def _is_seen(char: str) -> bool:
    return char.isprintable() or unicodedata.category(char) == "Zs"


def _escaped(char: str) -> str:
    code = ord(char)
    if char in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[char]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
