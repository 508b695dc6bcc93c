"""What every page is made of: paragraphs, sentences one a line, tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

MARK = "<!-- Written by `make docs` from {origin}; changes made here are lost. -->"
_END = re.compile(r"(?<=[.?!]) (?=[A-Z])")

Part = str | Iterable[str]


def page(*parts: Part) -> str:
    """Return a page; each part is a paragraph, a heading, a list or a table, a string or lines."""
    texts = (part if isinstance(part, str) else "\n".join(part) for part in parts)
    return "\n\n".join(text for text in texts if text) + "\n"


def sentences(text: str) -> list[str]:
    """Return the sentences of the first paragraph of `text`, the last one with its full stop."""
    first = " ".join(text.split("\n\n")[0].split())
    return _END.split(first if first.endswith(".") else first + ".") if first else []


def names(words: Iterable[str]) -> str:
    """Return `words` as code, in one line."""
    return ", ".join(f"`{word}`" for word in words)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table; an empty cell gets a dash."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return lines + ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]


def _cell(text: str) -> str:
    return text.replace("|", "\\|") or "-"
