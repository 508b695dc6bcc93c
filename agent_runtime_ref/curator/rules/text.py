"""An utterance as the rules read it: folded, with what is quoted hidden, cut into clauses.

Every step keeps the length of the text, so that a place in what the rules read is the same place in what the
user wrote; the words of a finding are always cut out of the latter.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from agent_runtime_ref.curator.rules.marker import first as first_of
from agent_runtime_ref.curator.rules.marker import tables

__all__ = ["CHARACTERS_MAX", "HIDDEN", "Clause", "asks_to_forget", "clauses", "folded", "hidden", "is_said"]

# What a person types in a turn is far shorter; what is longer was pasted, and its end is not looked at.
CHARACTERS_MAX = 8_000
CLAUSE_CHARACTERS_MAX = 300
# Stands for each character that somebody else said: a private-use character, which no pattern has.
HIDDEN = "\ue000"

# Capital and small letters, and digits: what is written without capitals may be written without spaces too.
_JOINED = frozenset({"Lu", "Ll", "Nd"})

_LOOKS = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "「": '"', "」": '"', "『": '"', "』": '"'})


def folded(text: str) -> str:
    """Return `text` in small letters and compatibility forms, character by character."""
    return "".join(_folded_character(character) for character in text.translate(_LOOKS))


def _folded_character(character: str) -> str:
    if character in "\t\r\u00a0\u3000":
        return " "
    form = unicodedata.normalize("NFKC", character).lower()
    return form if len(form) == 1 else character


# --- what somebody else said ----------------------------------------------------------------------


def hidden(text: str) -> str:
    """Return folded `text` with what is quoted, pasted, worked on or to be forgotten made unreadable."""
    for marker in (*tables("foreign")["foreign"], *tables("foreign")["forgotten"]):
        for pattern in marker.patterns:
            text = pattern.sub(lambda match: HIDDEN * len(match.group()), text)
    return text


def is_said(quote: str, user_text: str, own: str) -> bool:
    """Say whether the user says it himself: whole words stand in his text, and not in what he quotes.

    `own` is his text folded, and with what he quotes hidden.
    """
    start = user_text.find(quote) if quote.strip() else -1
    while start >= 0:
        end = start + len(quote)
        if HIDDEN not in own[start:end] and not (_cuts(user_text, start) or _cuts(user_text, end)):
            return True
        start = user_text.find(quote, start + 1)
    return False


def _cuts(text: str, place: int) -> bool:
    """Say whether a word or number goes on over `place`: "like it" is not what "dislike it" says.

    Only of scripts that part their words; of Chinese nothing is said.
    """
    around = text[max(0, place - 1) : place + 1]
    return 0 < place < len(text) and all(unicodedata.category(one) in _JOINED for one in around)


def asks_to_forget(user_text: str) -> bool:
    """Say whether an utterance asks, in words that the rules know, to have something forgotten."""
    return first_of(tables("foreign")["forgotten"], folded(user_text[:CHARACTERS_MAX])) is not None


# --- clauses --------------------------------------------------------------------------------------

_SENTENCE_END = re.compile(r"[!?。;\n|]+|\.(?=\s|$|[\u4e00-\u9fff])|…+|\s/\s|/(?=[\u4e00-\u9fff])")
_ABBREVIATION = re.compile(r"\b(?:dr|mr|mrs|ms|st|vs|rs|approx|e\.g|i\.e|no|etc|max|min|prof)$")
# A comma divides; so does a conjunction behind which a new statement begins.
_FRAGMENT_END = re.compile(
    r"(?<!\d\.\d{3}),(?!\d{3}\b)(?! ever\b)|(?<=\d\.\d{3}),(?!\d{2}(?!\d))"
    r"|\s[-–—]{1,2}\s|--|——|:(?=\s|[\u4e00-\u9fff])|[()（）]"
    r"|\s(?=(?:but|though|although|however|yet|whereas|because|while i|since i(?:'m| am| never| don't))\b)"
    r"|\s(?=(?:and|so|or|plus)\s(?:i|i'm|i've|i'd|my|please|this|today|tonight|for|never|always|no|not|only|keep"
    r"|make|don't|find|give|in|from|also|ideally|preferably|it|maybe|use|show|book|get|usually|generally)\b)"
    r"|(?<=\S)(?=但是|不过|可是|虽然|所以|另外|还有|而且|然而|只是|因为|尽管|但(?!凡))"
)


@dataclass(frozen=True, slots=True)
class Clause:
    """A stretch of one sentence that says at most one thing."""

    start: int
    end: int
    text: str  # folded and hidden, without the space around it
    sentence: int  # which sentence of the utterance, from 0
    is_question: bool  # a question mark follows directly
    body: int  # how much of the text is the statement itself, without a mark that was put back behind it


def clauses(text: str) -> list[Clause]:
    """Return the clauses of folded and hidden `text`, in order."""
    found: list[Clause] = []
    for number, (start, end, mark) in enumerate(_sentences(text)):
        pieces = [_stripped(text, *piece) for piece in _pieces(text, start, end, _FRAGMENT_END)]
        pieces = [(first, last) for first, last in pieces if first < last]
        for place, (first, last) in enumerate(pieces):
            asked = "?" in mark and place == len(pieces) - 1
            last = min(last, first + CLAUSE_CHARACTERS_MAX)
            found.append(Clause(first, last, text[first:last], number, asked, last - first))
    return found


def _sentences(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and closing mark of each sentence."""
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if match.group() == "." and _ABBREVIATION.search(text, max(start, match.start() - 8), match.start()):
            continue
        yield start, match.start(), match.group()
        start = match.end()
    yield start, len(text), ""


def _pieces(text: str, start: int, end: int, divider: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    for match in divider.finditer(text, start, end):
        yield start, match.start()
        start = match.end()
    yield start, end


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and not text[start].isalnum() and text[start] not in "$€£¥#<[{" + HIDDEN:
        start += 1
    while start < end and text[end - 1] in " ,.:;!?~-\"'":
        end -= 1
    return start, end
