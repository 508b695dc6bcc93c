"""The tables of markers: what to look for, what follows from it, and why.

They are data beside the code. A table is a list of rows with a `reason` and the patterns `any` of which may
be found; `<name>` in a pattern stands for one word of the list of that name, and a pattern that is written
over several lines is read as one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from agent_runtime_ref.contracts.finding import Polarity, Strength

__all__ = ["Marker", "document", "earliest", "first", "tables"]

_INDENTATION = re.compile(r"\A {4}|\n\s*")
_LIST = re.compile(r"<([a-z_]+)>")


@dataclass(frozen=True, slots=True)
class Marker:
    """One row: patterns over folded text; the group `what`, if there is one, is the thing spoken of."""

    reason: str
    patterns: tuple[re.Pattern[str], ...]
    polarity: Polarity = "like"
    strength: Strength = "soft"
    category: str | None = None  # where the pattern itself says what kind of thing it speaks of
    is_habit: bool = False  # tells what somebody does, so that somebody must be the speaker

    def search(self, text: str) -> re.Match[str] | None:
        """Return the match of the first pattern that is found in `text`."""
        found = (pattern.search(text) for pattern in self.patterns)
        return next((match for match in found if match is not None), None)


def first(markers: Iterable[Marker], text: str) -> tuple[Marker, re.Match[str]] | None:
    """Return the first marker that is found in `text`, in the order of the table, and its match."""
    for marker in markers:
        match = marker.search(text)
        if match is not None:
            return marker, match
    return None


def earliest(markers: Iterable[Marker], text: str) -> tuple[Marker, re.Match[str]] | None:
    """Return the marker whose match begins first in `text`, and its match; of two, that of the first row."""
    found = [(marker, match) for marker in markers if (match := marker.search(text)) is not None]
    return min(found, key=lambda one: one[1].start(), default=None)


@cache
def document(name: str) -> Mapping[str, Any]:
    """Return the file `name`.toml beside this module."""
    text = files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def tables(name: str) -> Mapping[str, tuple[Marker, ...]]:
    """Return the tables of the file `name`.toml, compiled once."""
    read = document(name)
    lists = {key: _joined(words) for key, words in read.get("lists", {}).items()}
    return {
        key: tuple(_marker(row, lists) for row in rows)
        for key, rows in read.items()
        if isinstance(rows, list)
    }


def _joined(words: list[str]) -> str:
    return "(?:" + "|".join(_on_one_line(one) for one in words) + ")"


def _on_one_line(pattern: str) -> str:
    return _INDENTATION.sub("", pattern)


def _marker(row: Mapping[str, Any], lists: Mapping[str, str]) -> Marker:
    patterns = tuple(re.compile(_expanded(one, lists)) for one in row["any"])
    rest = {key: value for key, value in row.items() if key not in ("any", "reason")}
    return Marker(row["reason"], patterns, **rest)


def _expanded(pattern: str, lists: Mapping[str, str]) -> str:
    """Return `pattern` on one line, its lists put in; a name that is no list stays as it is."""
    return _LIST.sub(lambda match: lists.get(match[1], match[0]), _on_one_line(pattern))
