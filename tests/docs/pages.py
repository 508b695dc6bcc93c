"""The Markdown pages of the project, and what can be run or followed in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
TAUGHT = ("README.md", "docs/tutorial", "docs/how-to")

_BLOCK = re.compile(
    r"(?P<before>[^\n]*)\n\n?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_FILE = re.compile(r"\b[Ss]ave .*`(?P<name>[\w./-]+)`:$")
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ (?P<title>.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page; `file` is where the sentence before it says to save it."""

    language: str
    text: str
    line: int
    file: str | None


def pages() -> list[Path]:
    """Every page of the project."""
    return sorted([*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md")])


def taught() -> list[Path]:
    """Every page whose examples a reader is meant to run."""
    return [page for page in pages() if page.relative_to(CHECKOUT).as_posix().startswith(TAUGHT)]


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        file = _FILE.search(found["before"])
        line = text.count("\n", 0, found.start("text")) + 1
        yield Block(found["language"], found["text"], line, file["name"] if file else None)


def links(page: Path) -> Iterator[str]:
    """Yield the targets of the links of a page, code left out."""
    text = re.sub(r"`[^`\n]*`", "", _BLOCK.sub("", page.read_text(encoding="utf-8")))
    yield from (found["target"] for found in _LINK.finditer(text))


def anchors(page: Path) -> set[str]:
    """The anchors that the headings of a page have, as a forge makes them."""
    # A heading may be the line before a block.
    text = _BLOCK.sub(lambda block: block["before"], page.read_text(encoding="utf-8"))
    titles = (found["title"] for found in _HEADING.finditer(text))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
