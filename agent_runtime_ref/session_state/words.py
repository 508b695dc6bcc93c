"""Whether a text speaks of a thing: words matched whole, in every script, and denials left alone.

A constraint must not kill the innocent: `plastic` is in "plastics" and in "a plastic box", not in
"plasticity" nor in "plastic-free". Stemmers know no such border (they make "plastic" of "plasticity"), so
only the ending of a plural or of a possessive is taken off here. Chinese writes no borders at all: a longer
word is found wherever it stands, unless another common word straddles its end, and a single character only
beside what makes it the thing itself.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from agent_runtime_ref.contracts.key_part import VOWEL_SIGNS, spelt
from agent_runtime_ref.enforcement.homoglyphs import LOOK_ALIKES
from agent_runtime_ref.session_state import lexicon

__all__ = ["folded", "reads_backwards", "same_thing", "speaks_of"]

_UNSPACED = "\u3005-\u3007\u3041-\u309f\u30a1-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_SPACED = rf"[^\W_{_UNSPACED}]+(?:[{VOWEL_SIGNS}]+[^\W_{_UNSPACED}]*)*"
_TOKEN = re.compile(rf"[{_UNSPACED}]+|{_SPACED}(?:'{_SPACED})?")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
# Accents, and the points by which Hebrew and Arabic may show vowels that they mostly leave out.
_POINTS = (*range(0x591, 0x5C8), *range(0x610, 0x61B), *range(0x64B, 0x660), 0x670)
_MARKS = dict.fromkeys((*range(0x300, 0x370), *_POINTS))
# Strokes and rings upon letters; in other scripts such marks are letters themselves.
_ON_LATIN = re.compile(r"(?<=[a-z])[\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+")
# What takes no room, or the room of nothing, and is no format character by its category.
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufffc") | frozenset(
    map(chr, range(0xFE00, 0xFE10))
)
_OVERRIDES = re.compile("[\u202d\u202e]")
# Tags within a word; every other one divides words.
_INLINE = re.compile(
    r"</?(?:a|b|big|em|font|i|mark|s|small|span|strong|sub|sup|u|wbr)(?:\s[^<>]*)?/?>", re.IGNORECASE
)
_PLURALS = {
    "mice": "mouse",
    "geese": "goose",
    "feet": "foot",
    "teeth": "tooth",
    "men": "man",
    "women": "woman",
    "children": "child",
}
_DIGITS = "0123456789"
_LOOK_ALIKES = str.maketrans(LOOK_ALIKES)
_DENIED = re.compile(f"(?:{'|'.join(lexicon.CHINESE_DENIALS)})$")
_NOT_DENIED = re.compile(f"(?:{'|'.join(lexicon.CHINESE_NO_DENIALS)})$")
TEXT_CHARACTERS_MAX = 20_000  # of an item; what is behind is a mistake or a disguise


@dataclass(frozen=True, slots=True)
class _Token:
    """A word of a text, and what divides it from the word before."""

    word: str
    gap: str


def speaks_of(text: str, slug: str) -> bool:
    """Tell whether `text` says that the thing called `slug` is there."""
    read = _read(text[:TEXT_CHARACTERS_MAX])
    return any(_found(read, word) for word in _names(slug))


def same_thing(slug: str) -> str:
    """Return one word for all words that name the same thing: plurals, and what the lexicon knows."""
    return min(_names(slug))


def folded(text: str) -> str:
    """Return `text` with signs spelt, and folded: forms, case, accents, look-alikes, the invisible."""
    if "<" in text or "&" in text:
        text = html.unescape(_INLINE.sub("", text))
    text = spelt(text if text.isascii() else "".join(one for one in text if one not in _UNSEEN))
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKC", text).casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    plain = "".join(one for one in plain if not _is_unseen(one)).translate(_LOOK_ALIKES)
    plain = unicodedata.normalize("NFD", plain).translate(_MARKS)
    return unicodedata.normalize("NFC", _ON_LATIN.sub("", plain))


def reads_backwards(text: str) -> bool:
    """Tell whether a text is shown in another order than it is written: nobody reads what stands there."""
    return _OVERRIDES.search(text) is not None


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) == "Cf" or character in _UNSEEN


@lru_cache(maxsize=1024)
def _names(slug: str) -> frozenset[str]:
    """Return every word for the thing, each folded and in its singular, words of a phrase one blank apart."""
    words = [token.word for token in _tokens(folded(slug))]
    phrase = " ".join(_singulars(word)[-1] for word in words)
    for name in (" ".join(words), phrase):
        if name in lexicon.SAME:
            return lexicon.SAME[name]
    return frozenset([phrase])


@dataclass(frozen=True, slots=True)
class _Read:
    """A text as it is looked through: by many words, so that each has to look at few places only."""

    tokens: tuple[_Token, ...]
    runs: tuple[str, ...]  # of characters without borders
    places: Mapping[str, Sequence[int]]  # word, or what it may be the plural of -> where it stands


@lru_cache(maxsize=256)
def _read(text: str) -> _Read:
    tokens = _tokens(folded(text))
    runs = tuple(token.word for token in tokens if _IS_UNSPACED.match(token.word) is not None)
    places: dict[str, list[int]] = {}
    for at, token in enumerate(tokens):
        for form in _singulars(token.word):
            places.setdefault(form, []).append(at)
    return _Read(tokens, runs, places)


def _tokens(text: str) -> tuple[_Token, ...]:
    found, end = [], 0
    for match in _TOKEN.finditer(text):
        found.append(_Token(match[0], text[end : match.start()]))
        end = match.end()
    return tuple(found)


def _found(read: _Read, name: str) -> bool:
    if _IS_UNSPACED.search(name) is not None and " " not in name:
        return any(name in run and _in_run(run, name) for run in read.runs)
    first, *others = name.split(" ")
    return any(
        all(at in _places_of(read, word) for at, word in enumerate(others, start + 1))
        and not _is_denied(read.tokens, start, start + 1 + len(others))
        for start in _places_of(read, first)
    )


def _places_of(read: _Read, word: str) -> set[int]:
    return {at for form in _singulars(word) for at in read.places.get(form, ())}


@lru_cache(maxsize=4096)
def _singulars(word: str) -> tuple[str, ...]:
    """Return the words of which `word` may be the plural or the possessive; the likeliest comes last."""
    word = word.removesuffix("'s").removesuffix("s'")
    bare = word.strip(_DIGITS)
    if bare not in (word, ""):  # plastic2, 2plastic
        return (word, *_singulars(bare))
    if word in _PLURALS:
        return (word, _PLURALS[word])
    if not word.isascii() or len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return (word,)
    if word.endswith("ies"):
        return (word, word[:-1], word[:-3] + "y")
    if word.endswith("ves"):
        return (word, word[:-3] + "f", word[:-3] + "fe", word[:-1])
    if word.endswith(("sses", "xes", "ches", "shes", "zes", "oes")):
        return (word, word[:-1], word[:-2])
    return (word, word[:-1])


def _is_denied(tokens: tuple[_Token, ...], start: int, end: int) -> bool:
    """Tell whether the words from `start` to `end` are said not to be there."""
    after = tokens[end].word if end < len(tokens) else ""
    if after in lexicon.DENIALS_AFTER and tokens[end].gap.strip(" -_") == "":
        behind = tokens[end + 1].word if end + 1 < len(tokens) else ""
        return behind not in lexicon.NOT_A_DENIAL and not _is_turned(tokens, start)
    before = start - 1
    while before >= 0 and tokens[before + 1].gap.strip(" -_") == "":
        word = tokens[before].word
        if word in lexicon.DENIALS_BEFORE or word in lexicon.IMITATIONS:
            return not _is_turned(tokens, before)
        if before > 0 and (tokens[before - 1].word, word) in lexicon.DENIALS_OF_TWO:
            return True
        if word == "or":  # "without plastic or rubber"
            before -= 2
        elif word in lexicon.FILLERS:
            before -= 1
        else:
            return False
    return False


def _is_turned(tokens: tuple[_Token, ...], start: int) -> bool:
    """Tell whether what denies is itself denied: "not plastic-free", "no longer without plastic"."""
    return start > 0 and tokens[start].gap.strip(" ") == "" and tokens[start - 1].word in lexicon.TURNS


def _in_run(run: str, name: str) -> bool:
    """Tell whether a run of characters without borders has `name` as a word of its own."""
    for start in _places(run, name):
        end = start + len(name)
        before, after = run[:start], run[end:]
        if _DENIED.search(before) is not None and _NOT_DENIED.search(before) is None:
            continue
        if len(name) == 1:
            if _stands_alone(before, name, after):
                return True
        elif (
            name[-1] + after[:1] not in lexicon.STRADDLING and before[-1:] + name[0] not in lexicon.STRADDLING
        ):
            return True
    return False


def _stands_alone(before: str, name: str, after: str) -> bool:
    if name + after[:1] in lexicon.UNRELATED or before[-1:] + name in lexicon.UNRELATED:
        return False
    if name in lexicon.EATEN or (not before and not after):
        return True
    return before[-1:] in lexicon.MADE_OF or after[:1] in lexicon.QUALITIES or after[:1] in lexicon.BEARERS


def _places(run: str, name: str) -> Iterator[int]:
    start = run.find(name)
    while start >= 0:
        yield start
        start = run.find(name, start + 1)
