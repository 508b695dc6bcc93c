"""Kinds of things: whoever is allergic to nuts is shown no walnuts, although no walnut is called a nut.

The table beside this module has the common food allergens and a few materials. It goes one way: a kind holds
for what belongs to it, and what belongs to a kind holds for itself alone.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from agent_runtime_ref.session_state.words import TEXT_CHARACTERS_MAX, folded, same_thing, speaks_of

__all__ = ["speaks_of_kind"]


@dataclass(frozen=True, slots=True)
class _Kind:
    """The words of what belongs to a kind, and phrases in which they are something else."""

    words: tuple[str, ...]
    innocent: re.Pattern[str] | None


def speaks_of_kind(text: str, slug: str) -> bool:
    """Tell whether `text` says that the thing called `slug`, or anything that belongs to it, is there."""
    if speaks_of(text, slug):
        return True
    kind = _kinds().get(same_thing(slug))
    if kind is None:
        return False
    plain = folded(text[:TEXT_CHARACTERS_MAX])
    if kind.innocent is not None:
        plain = kind.innocent.sub(" ; ", plain)
    return any(speaks_of(plain, word) for word in kind.words)


@cache
def _kinds() -> Mapping[str, _Kind]:
    text = files(__package__).joinpath("kinds.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)["kind"]
    by_name = {same_thing(name): row for row in rows for name in row["names"]}
    return {name: _kind(row, by_name) for name, row in by_name.items()}


def _kind(row: Mapping[str, Any], by_name: Mapping[str, Mapping[str, Any]]) -> _Kind:
    words = dict.fromkeys(_all_of(row, "of", by_name))
    innocent = sorted(dict.fromkeys(_all_of(row, "innocent", by_name)), key=len, reverse=True)
    return _Kind(tuple(words), re.compile("|".join(map(_pattern, innocent))) if innocent else None)


def _all_of(row: Mapping[str, Any], part: str, by_name: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a part of a row, with the names and parts of the kinds that belong to it."""
    found = list(row.get(part, ()))
    for name in row.get("kinds", ()):
        inner = by_name[same_thing(name)]
        found += (inner["names"] if part == "of" else []) + _all_of(inner, part, by_name)
    return found


def _pattern(phrase: str) -> str:
    if not phrase.isascii():
        return re.escape(phrase)
    words = r"[ -]".join(map(re.escape, phrase.split()))
    return rf"(?<![^\W_]){words}s?(?![^\W_])"
