"""A word of a person's as a part of a key: whoever compares categories, domains or things compares parts."""

from __future__ import annotations

import hashlib
import re
import unicodedata

__all__ = ["PART_CHARACTERS_MAX", "VOWEL_SIGNS", "WORD", "part", "spelt", "words_of"]

PART_CHARACTERS_MAX = 64
_DIGEST_CHARACTERS = 8
# Scripts that write vowels as marks on their letters, from Devanagari over Thai and Burmese to Khmer: without
# them half of a word is gone, and what is left is another word's half too. Two Khmer signs are never seen.
_SCRIPTS = ((0x900, 0x10A0), (0x1700, 0x1800), (0x1A00, 0x1AB0), (0x1B00, 0x1C50), (0xA800, 0xAC00))
_NEVER_SEEN = "\u17b4\u17b5"
VOWEL_SIGNS = "".join(
    sign
    for sign in (chr(code) for first, end in _SCRIPTS for code in range(first, end))
    if unicodedata.category(sign) in ("Mn", "Mc") and sign not in _NEVER_SEEN
)
WORD = rf"[^\W_]+(?:[{VOWEL_SIGNS}]+[^\W_]*)*"
_WORDS = re.compile(WORD)
# Where the signs stand two characters may be joined by one that nobody sees.
_JOINED = re.compile(rf"(?<=[{VOWEL_SIGNS}])[\u200c\u200d]")
# Behind a letter they make another word of it: C, C++ and C# are three languages.
_SIGNS = re.compile(r"(?<=[^\W_])[+#]++(?![^\W_])")
_FIRST_PICTURE = "\u2600"
_NAMES = {"+": " plus", "#": " sharp"}


def spelt(text: str) -> str:
    """Return `text` with the signs in words that are a part of what is named: "c++", and pictures."""
    text = _SIGNS.sub(lambda signs: "".join(_NAMES[one] for one in signs[0]) + " ", text)
    return text if text.isascii() else "".join(map(_named, text))


def _named(character: str) -> str:
    if character < _FIRST_PICTURE or unicodedata.category(character) != "So":
        return character
    return f" {unicodedata.name(character, '').lower()} "


def words_of(text: str) -> list[str]:
    """Return the words of `text`; accents that are no part of a letter, and points over it, are left out."""
    text = spelt(text)
    if not text.isascii():
        marked = (one for one in _JOINED.sub("", text) if one in VOWEL_SIGNS or not _is_mark(one))
        text = unicodedata.normalize("NFKC", "".join(marked))
    return _WORDS.findall(text)


def _is_mark(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Mc", "Me")


def part(text: str) -> str:
    """Return `text` as a part of a key: folded, its words joined by hyphens; empty where it has no word.

    What is too long is cut, and ends in a digest of the whole: two long texts that begin alike are two parts.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    whole = "-".join(words_of(folded))
    if len(whole) <= PART_CHARACTERS_MAX:
        return whole
    digest = hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:_DIGEST_CHARACTERS]
    room = PART_CHARACTERS_MAX - len(digest) - 1
    # Whole words are kept as far as they go; one that alone is too long is cut.
    begun = whole[:room] if whole[room] == "-" else whole[:room].rpartition("-")[0]
    return f"{(begun or whole[:room]).strip('-')}-{digest}"
