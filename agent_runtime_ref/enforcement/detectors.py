"""Findings about free text: credentials, and sentences that address the agent rather than inform it.

A policy decides on findings, never on content, so that a decision's input can be logged and shown. The patterns
are settings of the policy bundle (policies/memory/detectors/data.json); here is how they are run: over the text as
written and over the forms it may hide in, within bounds that no input can stretch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.enforcement.detector_settings import KEY, CompiledDetectors, Pattern, compile_detectors
from agent_runtime_ref.enforcement.normal_forms import Form, normal_forms
from agent_runtime_ref.enforcement.secret_values import CHECKS

__all__ = ["Detectors", "Finding", "language", "redact"]

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]{0,2}\s+|(?<=[。！？])|[;；]\s?|\n\s*\n|\n(?=\s*(?:[-*•#>]|\d+[.)]))")
_SENTENCE_MAX = 480
_OVERLAP = 160
_BEFORE, _AROUND = 130, 260
_MATCHES_MAX = 64  # of one pattern in one form; a text with more is refused for the first ones already
_HAN = re.compile(r"[\u3400-\u9fff\U00020000-\U0003ffff]")
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")
_OTHER_LETTER = re.compile(r"[^\W\d_A-Za-z\u00c0-\u024f\u3400-\u9fff\U00020000-\U0003ffff]")


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, where (characters start to end of the field as written), and in which form of the text."""

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

    __slots__ = ("_by_key", "_compiled", "_keyless")

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._compiled: CompiledDetectors = compile_detectors(settings)
        by_key: dict[str, list[int]] = {}
        keyless: list[int] = []
        for index, pattern in enumerate(self._compiled.sentences):
            rarest = min(pattern.groups, key=lambda group: (bool(group.parts), len(group.keys)))
            for key in rarest.keys:
                by_key.setdefault(key, []).append(index)
            if rarest.parts:
                keyless.append(index)
        self._by_key = {key: tuple(indexes) for key, indexes in by_key.items()}
        self._keyless = tuple(keyless)

    def scan(self, texts: Mapping[str, str]) -> tuple[Finding, ...]:
        """Return the findings in `texts` (field name to text), ordered by field, place and type."""
        found: list[Finding] = []
        for field, text in texts.items():
            if text:
                found.extend(self._scan_field(field, text))
        return tuple(found)

    def _scan_field(self, field: str, text: str) -> list[Finding]:
        seen: dict[tuple[str, int, int], Finding] = {}
        compiled = self._compiled
        for form in normal_forms(text, compiled.words, compiled.tells):
            for kind, start, end in self._matches(form):
                first, last = form.span(start, end)
                seen.setdefault((kind, first, last), Finding(kind, field, first, last, form.name))
        return sorted(seen.values(), key=lambda finding: (finding.start, finding.end, finding.type))

    def _matches(self, form: Form) -> Iterator[tuple[str, int, int]]:
        """Yield type, start and end of what the patterns find in one form."""
        lower = form.text.lower()
        if len(lower) != len(form.text):  # One letter of Turkish becomes two; places must stay what they are.
            lower = "".join(c.lower() if len(c.lower()) == 1 else c for c in form.text)
        for pattern in self._compiled.values:
            if any(literal in lower for literal in pattern.literals):
                yield from _values(pattern, lower if pattern.lower else form.text, form.text)
        for start, end in _sentences(lower):
            yield from self._sentence(lower, start, end)

    def _sentence(self, text: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
        """Yield what the sentence patterns find between start and end."""
        sentence = text[start:end] if start or end < len(text) else text
        keys = set(KEY.findall(sentence))
        indexes = {index for key in keys & self._by_key.keys() for index in self._by_key[key]}
        if not sentence.isascii():
            indexes.update(self._keyless)
        for index in sorted(indexes):
            pattern = self._compiled.sentences[index]
            if all(group.may_be_in(keys, sentence) for group in pattern.groups):
                match = self._first_match(pattern, text, start, end)
                if match is not None:
                    yield pattern.type, match.start(), match.end()

    def _first_match(self, pattern: Pattern, text: str, start: int, end: int) -> re.Match[str] | None:
        """Return the first match that stands after the pattern's conditions; None if there is none."""
        if pattern.near is not None and not pattern.near.search(text, start, end):
            return None
        if pattern.unless is not None and pattern.unless.search(text, start, end):
            return None
        for number, match in enumerate(pattern.search.finditer(text, start, end)):
            if number == _MATCHES_MAX:
                return match
            left, right = max(0, match.start() - _AROUND), match.end() + _AROUND
            if pattern.require is not None and not pattern.require.search(text, left, right):
                continue
            if not (pattern.guarded and self._is_reported(text, match.start(), match.end(), end)):
                return match
        return None

    def _is_reported(self, text: str, start: int, end: int, sentence_end: int) -> bool:
        """Return whether the match is clearly somebody else's words that the text tells about."""
        before = max(0, start - _BEFORE)
        if self._compiled.reported.search(text, before, start):
            return True
        # A quotation counts only with a word about attacks around it; a quotation mark alone is cheap to add.
        opens = re.search(r"[\"'`《][^\"'`《》]{0,60}\Z", text[before:start]) or text[start] in "\"'`"
        closes = re.search(r"[\"'`》]", text[end - 1 : end + 90])
        return bool(opens and closes and self._compiled.quoted.search(text, before, max(sentence_end, end + 90)))


def _values(pattern: Pattern, text: str, written: str) -> Iterator[tuple[str, int, int]]:
    """Yield the credentials that one pattern finds; those of placeholders are left out."""
    for number, match in enumerate(pattern.search.finditer(text)):
        if pattern.check is not None and number < _MATCHES_MAX:
            first, last = match.span("value")
            if not CHECKS[pattern.check](written[first:last]):
                continue
        if pattern.unless is not None and pattern.unless.search(text, max(0, match.start() - 60), match.end()):
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
    return character.isascii() and (character.isalnum() or character in "_-+/=") or not character.isprintable() and (
        character not in "\n\r\t"
    )


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
    if min(latin, han) * 4 >= total:
        return "mixed"
    return "zh" if han > latin else "en"
