"""Values that an attribute of an item is known by: only with one of them does it speak for the whole item.

"Goes well with blue jeans" makes no red bag blue, because its color says so. But `color: see photo` says
nothing, and an item whose color is no color must not get past "no blue please" by having one. Brands cannot
be listed, so no attribute speaks for an item there.
"""

from __future__ import annotations

import re

from agent_runtime_ref.session_state.words import folded, speaks_of

__all__ = ["is_decisive"]

# The lexicon finds each of them in the other language too.
_COLORS = tuple(
    "red blue green black white yellow pink purple grey brown beige orange neutral gold silver".split()
)
_NUMBER = r"\d{1,4}(?:[.,]\d{1,2})?(?: ?(?:cm|mm|in))?"
_SIZE = rf"(?:x{{0,4}}[sml]|[2-9]xl|(?:extra[ -]?)?(?:small|large)|medium|{_NUMBER})"
_SIZES = re.compile(rf"(?:size |eu |us |uk )?{_SIZE}(?: ?[/,x-] ?{_SIZE})*|[加特]?[大中小]号|均码")


def is_decisive(category: str, values: tuple[str, ...]) -> bool:
    """Tell whether all that an item says in the attribute `category` are values known there."""
    known = {"color": _is_color, "colour": _is_color, "size": _is_size}.get(category.lower())
    return known is not None and values != () and all(map(known, values))


def _is_color(text: str) -> bool:
    return any(speaks_of(text, color) for color in _COLORS)


def _is_size(text: str) -> bool:
    return _SIZES.fullmatch(folded(text).strip()) is not None
