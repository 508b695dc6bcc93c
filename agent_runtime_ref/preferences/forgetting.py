"""Which preference somebody means who wants one forgotten: exactly one, or none.

A wrong removal cannot be taken back, and a question can be asked again. So a description has to be of the
same words as what a preference is about; whatever is only near is named, and stays.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.preferences.keys import Key, slug_of
from agent_runtime_ref.preferences.preference import Preference
from agent_runtime_ref.preferences.relevance import NEAR, nearest
from agent_runtime_ref.recall.analysis import normalize_text
from agent_runtime_ref.recall.embedding import Vectors

__all__ = ["Forgotten", "meant"]

NAMED_MAX = 5
# How somebody asks for it: never what he means.
_ASKING = re.compile(
    r"\b(?:please|forget|delete|remove|drop|erase|about|that|preferences?|anymore|any more|longer)\b"
)
_ASKING_BEFORE = re.compile(
    "^(?:请|帮我|把|忘掉|忘记|忘了|删掉|删除|去掉|移除|别再记|不用记|不要记|记住的|关于|那条|这条)+"
)
_ASKING_AFTER = re.compile(
    "(?:这件事|这个事|这一点|这条|那条|的事|的偏好|偏好|忘掉|忘记|忘了|删掉|删除|去掉)+$"
)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was removed, by key; where nothing was, what might have been meant."""

    removed: tuple[str, ...]
    candidates: tuple[Preference, ...]

    def to_document(self) -> dict[str, Any]:
        """Return it as a mapping of plain values."""
        return {
            "removed": list(self.removed),
            "candidates": [{"key": str(one.key), "content": one.content} for one in self.candidates],
        }


def meant(
    text_or_key: str, preferences: Sequence[Preference], vectors: Vectors
) -> tuple[Preference | None, tuple[Preference, ...]]:
    """Return the one preference that is meant, or None, and those that are near where it is None."""
    text = text_or_key.strip()
    key = Key.read(text)
    if key is not None:
        same = [one for one in preferences if one.key == key]
    else:
        same = [one for one in preferences if _is_described(text, one)]
    if len(same) == 1:
        return same[0], ()
    if same:
        return None, tuple(same[:NAMED_MAX])
    if not text:
        return None, ()
    near = [
        one.preference for one in nearest(text.replace(":", " "), preferences, vectors) if one.score >= NEAR
    ]
    return None, tuple(near[:NAMED_MAX])


def _is_described(text: str, preference: Preference) -> bool:
    if normalize_text(text) == normalize_text(preference.content):
        return True
    return _words(_about(text)) == _words(preference.key.slug)


def _about(text: str) -> str:
    """Return what a request to forget is about, as a slug."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    bare = _ASKING_AFTER.sub("", _ASKING_BEFORE.sub("", folded.strip(" 。.!！?？")))
    bare = _ASKING.sub(" ", bare)
    return slug_of(bare) if bare.strip() else ""


def _words(slug: str) -> frozenset[str]:
    return frozenset(slug.split("-"))
