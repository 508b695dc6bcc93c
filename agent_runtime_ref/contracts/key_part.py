"""A word of a person's as a part of a key: whoever compares categories, domains or things compares parts."""

from __future__ import annotations

import hashlib
import re
import unicodedata

__all__ = ["PART_CHARACTERS_MAX", "part"]

PART_CHARACTERS_MAX = 64
_DIGEST_CHARACTERS = 8
_WORDS = re.compile(r"[^\W_]+")


def part(text: str) -> str:
    """Return `text` as a part of a key: folded, its words joined by hyphens; empty where it has no word.

    What is too long is cut, and ends in a digest of the whole: two long texts that begin alike are two parts.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    whole = "-".join(_WORDS.findall(folded))
    if len(whole) <= PART_CHARACTERS_MAX:
        return whole
    digest = hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:_DIGEST_CHARACTERS]
    room = PART_CHARACTERS_MAX - len(digest) - 1
    # Whole words are kept as far as they go; one that alone is too long is cut.
    begun = whole[:room] if whole[room] == "-" else whole[:room].rpartition("-")[0]
    return f"{(begun or whole[:room]).strip('-')}-{digest}"
