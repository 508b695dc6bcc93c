"""Which thing a finding speaks of: its category, its domain and its slug, out of words alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from agent_runtime_ref.contracts.key_part import PART_CHARACTERS_MAX, WORD, spelt
from agent_runtime_ref.curator.rules.marker import document, first, tables
from agent_runtime_ref.curator.rules.text import HIDDEN

__all__ = ["Thing", "anchor_in", "domain_of", "is_known", "is_nameless", "several", "slug_of", "thing_of"]

_WORD = re.compile(rf"{WORD}(?:['_.-]{WORD})*")
_HAN = re.compile(r"[\u3400-\u9fff]")
_SLUG_WORDS_MAX = 4
_HAN_CHARACTERS_MAX = 12
# Two things in one breath are two findings; longer phrases are not taken apart, for "and" has other uses too.
_JOINT = re.compile(r"\s*(?:,| and | or | nor |、|和|或者|或|以及)\s*(?:and |or )?")
_PHRASE_WORDS_MAX = 2
_HAN_PHRASE_MAX = 5
_JOINED_MAX = 6
# Only what an item is made of or holds is cut out of its circumstances: "no plastic at home" has to find
# plastic, while "no meetings on Fridays" and "emoji in chats" say something else without them.
_OF_ITEMS = frozenset({"material", "color", "food"})


@dataclass(frozen=True, slots=True)
class Thing:
    """What a preference is about."""

    category: str
    domain: str
    slug: str


def thing_of(text: str, *, category: str | None = None, around: str = "") -> Thing:
    """Return the thing that folded `text` names; `around`, its clause, helps to find the domain."""
    known = _known_in(text) or _known_of_item(text)
    if known is not None:
        return Thing(category or known.category, known.domain, known.slug)
    domain = domain_of(text) or domain_of(around) or "general"
    return Thing(category or "preference", domain, slug_of(_without_circumstance(text)))


def several(text: str) -> list[tuple[int, int]]:
    """Return where in `text` its things stand: one span, or several if it is a list of short names."""
    spans: list[tuple[int, int]] = []
    start = 0
    for match in _JOINT.finditer(text):
        spans.append((start, match.start()))
        start = match.end()
    spans.append((start, len(text)))
    if 1 < len(spans) <= _JOINED_MAX and all(_is_short(text[first:last]) for first, last in spans):
        return spans
    return [(0, len(text))]


def _is_short(text: str) -> bool:
    if _HAN.search(text) is not None:
        return 1 <= len(text) <= _HAN_PHRASE_MAX
    return 1 <= len(_WORD.findall(text)) <= _PHRASE_WORDS_MAX


def domain_of(text: str) -> str | None:
    """Return the domain whose words stand in folded `text`."""
    return next((name for name, pattern in _domains() if pattern.search(text)), None)


def anchor_in(text: str) -> tuple[str, int, int] | None:
    """Return the slug of the first thing in folded `text` that one searches for, and where it stands."""
    match = _anchors()[0].search(text)
    return None if match is None else (_anchors()[1][match.group()], match.start(), match.end())


def is_known(text: str) -> bool:
    """Say whether folded `text` is the name of a material, a colour, a food or the like."""
    return _known_in(text) is not None


def is_nameless(text: str) -> bool:
    """Say whether folded `text` names nothing: "it" and "that" cannot be kept."""
    return not any(word not in _empty() and word not in _pronouns() for word in _WORD.findall(text))


def _known_of_item(text: str) -> Thing | None:
    """Return a known thing that items have, behind words such as "stuff" and before where it holds."""
    head = first(tables("things")["head"], text)
    named = text if head is None else head[1]["what"]
    found = first(tables("things")["noun"], named)
    known = _known_in(named if found is None else found[1]["what"])
    return known if known is not None and known.category in _OF_ITEMS else None


def _without_circumstance(text: str) -> str:
    """Return `text` up to where it holds, if what stands there has a word for what items are made of."""
    head = first(tables("things")["head"], text)
    named = "" if head is None else str(head[1]["what"])
    words = (_known().get(word) for word in _WORD.findall(named))
    return named if any(one is not None and one.category in _OF_ITEMS for one in words) else text


def _known_in(text: str) -> Thing | None:
    """Return a known thing, if `text` is little more than its name: "plastic straws" is no plastic."""
    words = [word for word in _WORD.findall(text) if word not in _empty()]
    bare = " ".join(words)
    if _HAN.search(text) is not None:
        bare = _bare_han("".join(words))
    return _known().get(bare) or _known().get(text.strip())


def _bare_han(text: str) -> str:
    empty = _empty_han()
    while text and text not in _known() and text[-1] in empty:
        text = text[:-1]
    while text and text not in _known() and text[0] in empty:
        text = text[1:]
    return text


def slug_of(text: str) -> str:
    """Return the words that carry the meaning of `text`, joined; one that says so if there is none."""
    text = spelt(text.replace(HIDDEN, " "))
    hollow = first(tables("things")["hollow"], text)
    text = text if hollow is None else hollow[1]["what"]
    words = [word for word in _WORD.findall(text) if word not in _empty()] or _WORD.findall(text)
    if _HAN.search(text) is not None:
        return (_bare_han("".join(words)) or "".join(words) or "unnamed")[:_HAN_CHARACTERS_MAX].strip("-_.'")
    slug = "-".join(word.replace("'", "") for word in words[:_SLUG_WORDS_MAX])
    return slug[:PART_CHARACTERS_MAX].rstrip("-_.") or "unnamed"


@cache
def _known() -> dict[str, Thing]:
    found: dict[str, Thing] = {}
    for category, rows in document("things")["known"].items():
        for slug, words in rows.items():
            if slug != "domain":
                found |= {word: Thing(category, rows["domain"], slug) for word in words}
    return found


@cache
def _anchors() -> tuple[re.Pattern[str], dict[str, str]]:
    slugs = {word: slug for slug, words in document("things")["anchors"].items() for word in words}
    plurals = {_plural(word): slug for word, slug in slugs.items() if _HAN.search(word) is None}
    return _alternatives(plurals | slugs), plurals | slugs


def _plural(word: str) -> str:
    """Return the plural of an English word as it is mostly made; of a plural, a word that nobody says."""
    if word.endswith(("ch", "sh", "s", "x")):
        return f"{word}es"
    return f"{word[:-2]}ves" if word == "knife" else f"{word}s"


@cache
def _domains() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, _alternatives(words)) for name, words in document("things")["domains"].items())


@cache
def _empty() -> frozenset[str]:
    return frozenset(document("things")["words"]["empty"])


@cache
def _pronouns() -> frozenset[str]:
    return frozenset(document("things")["words"]["pronouns"])


@cache
def _empty_han() -> frozenset[str]:
    return frozenset(document("things")["words"]["empty_zh"])


def _alternatives(words: object) -> re.Pattern[str]:
    """Return a pattern of whole words; Chinese, which has no spaces, may stand anywhere."""
    assert isinstance(words, list | dict)
    longest = sorted(words, key=len, reverse=True)
    plain = "|".join(re.escape(word) for word in longest if _HAN.search(word) is None)
    han = "|".join(re.escape(word) for word in longest if _HAN.search(word) is not None)
    return re.compile("|".join(part for part in (rf"\b(?:{plain})\b" if plain else "", han) if part))
