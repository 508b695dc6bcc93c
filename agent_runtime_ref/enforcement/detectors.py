"""Findings about free text: credentials, and sentences that address the agent rather than inform it.

A policy decides on findings, never on content, so that a decision's input can be logged and shown. The
patterns are settings of the policy bundle (policies/memory/detectors/data.json); here is how they are run:
over the text as written and over the forms it may hide in, within bounds that no input can stretch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.enforcement.detector_settings import (
    CompiledDetectors,
    Pattern,
    compile_detectors,
)
from agent_runtime_ref.enforcement.marks import Marks
from agent_runtime_ref.enforcement.normal_forms import Form, is_plain, normal_forms
from agent_runtime_ref.enforcement.secret_values import CHECKS
from agent_runtime_ref.enforcement.sentence_model import SentenceModel

__all__ = ["Detectors", "Finding", "language", "redact"]

# One class of characters first: the search then skips everything else at the speed of a byte search.
_SENTENCE_END = re.compile(
    r"[.!?。！？;；\n](?:(?<=[.!?])[\"')\]]{0,2}\s{1,20}|(?<=[。！？；])|(?<=;)\s?"
    r"|(?<=\n)(?:\s{0,20}\n|(?=[ \t]{0,8}(?:[-*•#>]|\d{1,3}[.)]))))"
)
# Forms that are made for reading sentences; a key or a password that was bent like that is none any more.
_WORDY_FORMS = frozenset({"separated", "leetspeak", "cut", "respaced"})
_VALUE_MIN = 10  # no credential with its name is shorter
_SENTENCE_MAX = 480
_OVERLAP = 160
_BEFORE, _AROUND = 130, 260
_MATCHES_MAX = 64  # of one pattern in one form; a text with more is refused for the first ones already
_HAN = re.compile(r"[\u3400-\u9fff\U00020000-\U0003ffff]")
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")
_OTHER_LETTER = re.compile(r"[^\W\d_A-Za-z\u00c0-\u024f\u3400-\u9fff\U00020000-\U0003ffff]")


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, where (start to end of the field as written), and in which form of the text."""

    type: str
    field: str
    start: int
    end: int
    form: str


class Detectors:
    """The detectors of one policy bundle; compiled once, safe to share between threads.

    Raises:
        BundleError: reason settings_malformed.
    """

    __slots__ = ("_compiled", "_literals", "_marks", "_model", "_tells")

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._compiled: CompiledDetectors = compile_detectors(settings)
        # A bundle may come without a model; then the patterns are all there is.
        self._model = SentenceModel(settings["model"]) if "model" in settings else None
        self._literals = tuple(
            (literal, index)
            for index, pattern in enumerate(self._compiled.values)
            for literal in pattern.literals
        )
        self._tells = frozenset(tell for tells in self._compiled.tells for tell in tells)
        self._marks = Marks([pattern.groups for pattern in self._compiled.sentences])

    def check(self) -> None:
        """Compile every expression now; what otherwise happens when a text first needs one.

        Raises:
            BundleError: reason settings_malformed.
        """
        patterns = (*self._compiled.values, *self._compiled.sentences)
        for expression in (e for pattern in patterns for e in pattern.expressions):
            _ = expression.compiled
        _ = self._compiled.reported.compiled, self._compiled.quoted.compiled
        if self._model is not None:
            self._model.check()

    def scan(self, texts: Mapping[str, str]) -> tuple[Finding, ...]:
        """Return the findings in `texts` (field name to text), ordered by field, place and type."""
        found: list[Finding] = []
        for field, text in texts.items():
            if text:
                found.extend(self._scan_field(field, text))
        return tuple(found)

    def _scan_field(self, field: str, text: str) -> list[Finding]:
        compiled = self._compiled
        seen: dict[tuple[str, int, int], Finding] = {}
        read: set[str] = set()
        plain = is_plain(text, self._tells)
        for form in (Form("written", text),) if plain else normal_forms(text, compiled.words, compiled.tells):
            lower = _lower(form.text)
            found = self._sentences(lower, read)
            if not plain and form.name not in _WORDY_FORMS:
                found = (*self._values(form.text, lower), *found)
            for kind, start, end in found:
                first, last = form.span(start, end)
                seen.setdefault((kind, first, last), Finding(kind, field, first, last, form.name))
        if self._model is not None and all(kind.startswith("secret.") for kind, _, _ in seen):
            for kind, first, last in self._model.spans(text):
                seen[kind, first, last] = Finding(kind, field, first, last, "model")
        return sorted(seen.values(), key=lambda finding: (finding.start, finding.end, finding.type))

    def _values(self, text: str, lower: str) -> Iterator[tuple[str, int, int]]:
        """Yield type, start and end of the credentials in one form."""
        if len(text) < _VALUE_MIN:
            return
        for index in sorted({index for literal, index in self._literals if literal in lower}):
            pattern = self._compiled.values[index]
            yield from _values(pattern, lower if pattern.lower else text, text)

    def _sentences(self, text: str, read: set[str]) -> Iterable[tuple[str, int, int]]:
        """Yield what the sentence patterns find; what is in `read` was looked at in another form already."""
        for start, end in _sentences(text):
            sentence = text[start:end]
            if sentence not in read:
                read.add(sentence)
                yield from self._sentence(text, start, end)

    def _sentence(self, text: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
        """Yield what the sentence patterns find between start and end."""
        for index in self._marks.possible(text[start:end]):
            pattern = self._compiled.sentences[index]
            match = self._first_match(pattern, text, start, end)
            if match is not None:
                yield pattern.type, match.start(), match.end()

    def _first_match(self, pattern: Pattern, text: str, start: int, end: int) -> re.Match[str] | None:
        """Return the first match that stands after the pattern's conditions; None if there is none."""
        holds: bool | None = None
        for number, match in enumerate(pattern.search.compiled.finditer(text, start, end)):
            if holds is None:  # Asked once, of the whole sentence; and only now, since most have no match.
                holds = _holds(pattern, text, start, end)
            if not holds:
                return None
            if number == _MATCHES_MAX:
                return match
            left, right = max(0, match.start() - _AROUND), match.end() + _AROUND
            if pattern.require is not None and not pattern.require.compiled.search(text, left, right):
                continue
            if not (pattern.guarded and self._is_reported(text, match.start(), match.end(), end)):
                return match
        return None

    def _is_reported(self, text: str, start: int, end: int, sentence_end: int) -> bool:
        """Return whether the match is clearly somebody else's words that the text tells about."""
        before = max(0, start - _BEFORE)
        if self._compiled.reported.compiled.search(text, before, start):
            return True
        # A quotation counts only with a word about attacks around it; a quotation mark alone is cheap to add.
        opens = re.search(r"[\"'`《][^\"'`《》]{0,60}\Z", text[before:start]) or text[start] in "\"'`"
        closes = re.search(r"[\"'`》]", text[end - 1 : end + 90])
        after = max(sentence_end, end + 90)
        return bool(opens and closes and self._compiled.quoted.compiled.search(text, before, after))


def _holds(pattern: Pattern, text: str, start: int, end: int) -> bool:
    """Return whether the sentence has what the pattern wants near by, and nothing that speaks against it."""
    if pattern.near is not None and not pattern.near.compiled.search(text, start, end):
        return False
    return pattern.unless is None or not pattern.unless.compiled.search(text, start, end)


def _lower(text: str) -> str:
    """Return `text` in lower case, each character in its place."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def _values(pattern: Pattern, text: str, written: str) -> Iterator[tuple[str, int, int]]:
    """Yield the credentials that one pattern finds; those of placeholders are left out."""
    for number, match in enumerate(pattern.search.compiled.finditer(text)):
        if pattern.check is not None and number < _MATCHES_MAX:
            first, last = match.span("value")
            if not CHECKS[pattern.check](written[first:last]):
                continue
        before = max(0, match.start() - 60)
        if pattern.unless is not None and pattern.unless.compiled.search(text, before, match.end()):
            continue
        yield pattern.type, match.start(), match.end()


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the sentences of `text`; a very long one in pieces that overlap."""
    size = len(text)
    position = 0
    ends = [match.end() for match in _SENTENCE_END.finditer(text)] if size > 24 else []
    for stop in (*ends, size):
        while stop - position > _SENTENCE_MAX:
            yield position, position + _SENTENCE_MAX
            position += _SENTENCE_MAX - _OVERLAP
        if stop > position:
            yield position, stop
        position = stop


def redact(text: str, findings: Sequence[Finding]) -> str:
    """Return `text` with the span of each finding replaced by `[redacted:<type>]`.

    Findings that overlap become one replacement that names the first of their types.
    """
    parts: list[str] = []
    position = 0
    for start, end, kind in _merged(text, findings):
        parts.extend((text[position:start], f"[redacted:{kind}]"))
        position = end
    return "".join((*parts, text[position:]))


def _merged(text: str, findings: Sequence[Finding]) -> Iterator[tuple[int, int, str]]:
    """Yield disjoint spans in order, widened to whole words so that no end of a secret stays behind."""
    current: tuple[int, int, str] | None = None
    for finding in sorted(findings, key=lambda found: (found.start, -found.end, found.type)):
        start, end = finding.start, finding.end
        if finding.type.startswith("secret."):
            while end < len(text) and _continues(text[end]):
                end += 1
        if current is not None and start <= current[1]:
            current = (current[0], max(current[1], end), current[2])
            continue
        if current is not None:
            yield current
        current = (start, end, finding.type)
    if current is not None:
        yield current


def _continues(character: str) -> bool:
    """Return whether a secret that ran up to `character` may go on with it."""
    if character.isascii() and character.isprintable():
        return character.isalnum() or character in "_-+/="
    return not character.isprintable() and character not in "\n\r\t"


def language(text: str) -> str:
    """Return "en", "zh", "mixed" or "other": the script that most of the words of `text` are in.

    A Chinese character counts as half a word. A word of the other script here and there, a product name
    say, does not make a text mixed.
    """
    latin = len(_LATIN_WORD.findall(text))
    if text.isascii():
        return "en" if latin else "other"
    han, other = len(_HAN.findall(text)) / 2, len(_OTHER_LETTER.findall(text)) / 3
    total = latin + han + other
    if not total or other > total / 2:
        return "other"
    if min(latin, han) * 4 > total:
        return "mixed"
    return "zh" if han > latin else "en"
