"""The shapes that a text may hide in, each with a way back to the characters that were written.

A detector reads every form, and a finding in any of them is given as a span of the text as written: what is
redacted is what was stored, not a copy of it.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agent_runtime_ref.enforcement.decoding import Decoded, decoded_segments
from agent_runtime_ref.enforcement.homoglyphs import LOOK_ALIKES

__all__ = ["DEPTH_MAX", "Form", "is_plain", "normal_forms"]

DEPTH_MAX = 2

Tells: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SEPARATOR = r"[ \t.\-_*|/\\,~+\u00b7\u2022]"
_SPACED = re.compile(rf"(?<![^\W_])[^\W_](?:{_SEPARATOR}{{1,3}}[^\W_](?![^\W_])){{3,}}")
_HAN_GAP = re.compile(r"(?<=[\u4e00-\u9fff])[ \t.\-_*|~+\u00b7\u2022]{1,3}(?=[\u4e00-\u9fff])")
_MAYBE_SPACED = re.compile(rf"{_SEPARATOR}[^\W_]{_SEPARATOR}")
_MAYBE_MARK = re.compile(r"[-_.*~|^`/+][A-Za-z\"' ]")
_MAYBE_LEET = re.compile(r"[013457$@!]")
_INNER_MARK = re.compile(r"(?<=[A-Za-z])(?:[-_.*~|^`/]|[\"'] ?\+ ?[\"'])(?=[A-Za-z])")
_LEET = re.compile(
    r"[A-Za-z][013457$@!][A-Za-z]|(?<!\w)[013457$@!][A-Za-z]{2}|(?<!\w)[A-Za-z]{1,9}[0134]{2}(?!\w)"
)
_LEET_LETTERS = dict(zip("013457$@!", "oieastsai", strict=True))
_LEET_SIGN = re.compile(r"[013457@!]|(?<=[\w@!])\$")  # a dollar before a name is a variable
_LONG_WORD = re.compile(r"[a-z]{15,}")
_ODD = re.compile(r"[^A-Za-z ,.?!'\n]")
_INNER_STOP = re.compile(r"[.!?,][A-Za-z]")
_LONE_LETTERS = re.compile(r" [A-Za-z][ .,!?]{1,3}[A-Za-z][ .,!?]")
_LONG_SIZE = 15
_UNSEEN = frozenset({"Mn", "Me", "Cf"})  # categories of marks and format characters
_INVISIBLE = frozenset("\u115f\u1160\u2800\u3164\uffa0\u180e")


@dataclass(frozen=True, slots=True)
class Form:
    """One reading of a text; `starts[i]`, `ends[i]` is the span as written of its character i."""

    name: str
    text: str
    starts: Sequence[int] | None = None  # None: character for character the text as written
    ends: Sequence[int] | None = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the text as written that covers this form's characters start to end."""
        if self.starts is None or self.ends is None:
            return start, end
        # Both edges on both sides, since a reversed form runs from right to left.
        first, last = start, end - 1
        return min(self.starts[first], self.starts[last]), max(self.ends[first], self.ends[last])


class _Rewrite:
    """Builds a form out of pieces of another one."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._parts: list[str] = []
        self._starts: list[int] = []
        self._ends: list[int] = []

    def keep(self, start: int, end: int) -> None:
        """Take over the characters start to end as they are."""
        form = self._form
        self._parts.append(form.text[start:end])
        self._starts.extend(range(start, end) if form.starts is None else form.starts[start:end])
        self._ends.extend(range(start + 1, end + 1) if form.ends is None else form.ends[start:end])

    def put(self, text: str, start: int, end: int) -> None:
        """Put `text` in the place of the characters start to end; each of its characters stands for all."""
        if text:
            first, last = self._form.span(start, end)
            self._parts.append(text)
            self._starts.extend([first] * len(text))
            self._ends.extend([last] * len(text))

    def form(self, name: str) -> Form:
        """Return what was built."""
        return Form(name, "".join(self._parts), self._starts, self._ends)


class _Folds(dict[str, str]):
    """What each character folds to; filled as characters are met."""

    def __missing__(self, character: str) -> str:
        folded = _fold(character)
        if len(self) < 20_000:
            self[character] = folded
        return folded


def _fold(character: str) -> str:
    """Return the plain letters that `character` is read as; nothing for what is not seen."""
    point = ord(character)
    if 0xE0020 <= point <= 0xE007E:  # Tag characters spell ASCII that no reader sees and a model does.
        return chr(point - 0xE0000)
    if 0x1F1E6 <= point <= 0x1F1FF:
        return chr(point - 0x1F1E6 + ord("a"))
    for first in (0x1F130, 0x1F150, 0x1F170):
        if first <= point < first + 26:
            return chr(point - first + ord("a"))
    if character in _INVISIBLE or _CONTROLS.match(character):
        return ""
    apart = unicodedata.normalize("NFKD", character)
    folded = "".join(LOOK_ALIKES.get(c, c) for c in apart if unicodedata.category(c) not in _UNSEEN)
    return " " if folded.isspace() and character not in "\n\t\r" else unicodedata.normalize("NFC", folded)


_FOLDS = _Folds()


def is_plain(text: str, tells: frozenset[str]) -> bool:
    """Return whether `text` is words and ordinary punctuation, in which nothing can be hidden.

    A cheap test that most texts pass. It also means that no credential is in the text: those have digits or
    signs in them.
    """
    if _ODD.search(text) or _INNER_STOP.search(text) or _LONE_LETTERS.search(text):
        return False
    words = text.lower().split()
    return max(map(len, words), default=0) < _LONG_SIZE and tells.isdisjoint(words)


def normal_forms(text: str, words: frozenset[str], tells: Tells) -> Iterator[Form]:
    """Yield the forms of `text`, the one nearest to the text as written first.

    `words` are those that letters without spaces are cut into; `tells` are the reversed and the rot13
    spellings whose presence makes those two forms worth reading.
    """
    base = _folded(text)
    for depth in range(DEPTH_MAX + 1):
        yield base
        yield from _shapes(base, words, tells)
        if depth == DEPTH_MAX:
            return
        segments = decoded_segments(base.text)
        if not segments:
            return
        base = _decoded(base, segments)


def _folded(text: str) -> Form:
    """Return `text` without invisible characters, compatibility forms and look-alike letters."""
    if text.isascii() and (text.isprintable() or not _CONTROLS.search(text)):
        return Form("written", text)
    pieces = [_FOLDS[character] for character in text]
    folded = "".join(pieces)
    if len(folded) == len(text) and all(len(piece) == 1 for piece in pieces):
        return Form("written" if folded == text else "folded", folded)
    starts = [index for index, piece in enumerate(pieces) for _ in piece]
    return Form("folded", folded, starts, [start + 1 for start in starts])


def _decoded(form: Form, segments: Sequence[Decoded]) -> Form:
    """Return `form` with its encoded segments decoded in place; each stands for its whole token."""
    rewrite, position = _Rewrite(form), 0
    for segment in segments:
        rewrite.keep(position, segment.start)
        rewrite.put("".join(_FOLDS[c] for c in segment.text), segment.start, segment.end)
        position = segment.end
    rewrite.keep(position, len(form.text))
    return rewrite.form("decoded")


def _shapes(form: Form, words: frozenset[str], tells: Tells) -> Iterator[Form]:
    """Yield the readings of `form` that its own look gives a reason for."""
    text, lower = form.text, form.text.lower()
    # A search for one class of characters is far cheaper than the expression behind it.
    if _MAYBE_SPACED.search(text) and _SPACED.search(text):
        yield _joined(form)
        yield _respaced(form, words)
    if not text.isascii() and _HAN_GAP.search(text):
        yield _without(form, _HAN_GAP)
    marks = len(_INNER_MARK.findall(text)) if _MAYBE_MARK.search(text) else 0
    if marks >= 2:
        yield _without(form, _INNER_MARK)
    if marks:
        yield Form("separated", _INNER_MARK.sub(lambda m: " " * len(m[0]), text), form.starts, form.ends)
    if _MAYBE_LEET.search(text) and _LEET.search(text):
        yield Form("leetspeak", _LEET_SIGN.sub(lambda m: _LEET_LETTERS[m[0]], text), form.starts, form.ends)
    if len(lower) == len(text) and _LONG_WORD.search(lower):
        yield _cut(form, lower, words)
    reversed_tells, rot13_tells = tells
    if any(tell in lower for tell in reversed_tells):
        yield _reversed(form)
    if any(tell in lower for tell in rot13_tells):
        yield Form("rot13", codecs.encode(text, "rot13"), form.starts, form.ends)


def _reversed(form: Form) -> Form:
    """Return `form` read from right to left."""
    size = len(form.text)
    starts = range(size) if form.starts is None else form.starts
    ends = range(1, size + 1) if form.ends is None else form.ends
    return Form("reversed", form.text[::-1], starts[::-1], ends[::-1])


def _without(form: Form, pattern: re.Pattern[str]) -> Form:
    """Return `form` without what `pattern` matches."""
    rewrite, position = _Rewrite(form), 0
    for match in pattern.finditer(form.text):
        rewrite.keep(position, match.start())
        position = match.end()
    rewrite.keep(position, len(form.text))
    return rewrite.form("joined")


def _joined(form: Form) -> Form:
    """Return `form` with runs of single, separated characters drawn together, without any space."""
    rewrite, position = _Rewrite(form), 0
    for match in _SPACED.finditer(form.text):
        rewrite.keep(position, match.start())
        for index in range(match.start(), match.end()):
            if form.text[index].isalnum():
                rewrite.keep(index, index + 1)
        position = match.end()
    rewrite.keep(position, len(form.text))
    return rewrite.form("joined")


def _respaced(form: Form, words: frozenset[str]) -> Form:
    """Return `form` with runs of single, separated characters drawn together into words."""
    rewrite, position = _Rewrite(form), 0
    for match in _SPACED.finditer(form.text):
        rewrite.keep(position, match.start())
        places = [i for i in range(match.start(), match.end()) if form.text[i].isalnum()]
        # A wider gap than the first one, where there is one, is where the writer saw the space between words.
        usual = places[1] - places[0]
        letters = "".join(form.text[i] for i in places)
        for start, end in _words(letters.lower() if letters.isascii() else letters, words):
            rewrite.put(" ", places[start], places[start] + 1)
            for index in range(start, end):
                if index > start and places[index] - places[index - 1] > usual:
                    rewrite.put(" ", places[index], places[index] + 1)
                rewrite.keep(places[index], places[index] + 1)
        position = match.end()
    rewrite.keep(position, len(form.text))
    return rewrite.form("respaced")


def _cut(form: Form, lower: str, words: frozenset[str]) -> Form:
    """Return `form` with its long words cut into the known words that they are made of."""
    rewrite, position = _Rewrite(form), 0
    for match in _LONG_WORD.finditer(lower):
        for start, end in _words(match[0], words):
            rewrite.keep(position, match.start() + start)
            rewrite.put(" ", match.start() + start, match.start() + start + 1)
            position = match.start() + start
            rewrite.keep(position, match.start() + end)
            position = match.start() + end
    rewrite.keep(position, len(form.text))
    return rewrite.form("cut")


def _words(letters: str, words: frozenset[str]) -> list[tuple[int, int]]:
    """Return spans that cover `letters`: the longest known word at each place, unknown letters together."""
    spans: list[tuple[int, int]] = []
    place = unknown = 0
    while place < len(letters):
        size = next((n for n in range(16, 1, -1) if letters[place : place + n] in words), 0)
        # A slice at the end is shorter than asked for: its true size counts.
        size = min(size, len(letters) - place)
        if not size:
            place += 1
            continue
        if unknown < place:
            spans.append((unknown, place))
        spans.append((place, place + size))
        place = unknown = place + size
    if unknown < len(letters):
        spans.append((unknown, len(letters)))
    return spans
