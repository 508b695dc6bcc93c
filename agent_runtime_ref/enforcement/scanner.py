"""Running the detectors over the fields of a candidate without doing the same work twice.

Kinds, sources and provenance are the same few words in every write, so what was found in a short value
is remembered, and an identifier made of ordinary parts is not looked at: no detector fires on one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace

from agent_runtime_ref.enforcement.detectors import Detectors, Finding
from agent_runtime_ref.enforcement.homoglyphs import LOOK_ALIKES

_LETTERS = str.maketrans(LOOK_ALIKES)
PROTECTED_KEY = "key.protected"
_SHORT = 128
_CACHE_ENTRIES_MAX = 20_000
# Two words at most, joined by `-` or `_` (an order to an agent needs more), with numbers and hexadecimal
# ids after them, such as a UUID or a W3C trace id.
_WORD = r"(?:[a-z]{1,20}|[A-Z][a-z]{1,15})"
_NUMBER = r"(?:[0-9]{1,19}|[0-9a-f]{4,40})"
_NAMED = rf"{_WORD}(?:[-_]{_WORD})?(?:[-_]{_NUMBER}){{0,2}}"
_ORDINARY = re.compile(rf"(?:{_NAMED}|{_NUMBER}(?:-[0-9a-f]{{4,12}}){{0,4}})\Z")


class Scanner:
    """Finds what the detectors find; safe to share between threads."""

    def __init__(self, detectors: Detectors, *, protected_prefixes: Sequence[str] = ()) -> None:
        self._detectors = detectors
        self._protected = tuple(protected_prefixes)
        self._cache: dict[str, tuple[Finding, ...]] = {}

    def scan(self, texts: Mapping[str, str]) -> tuple[Finding, ...]:
        """Return the findings in `texts` (field name to text), field by field."""
        found: list[Finding] = []
        for field, text in texts.items():
            findings = self._field(text)
            found.extend(findings if not findings else (replace(one, field=field) for one in findings))
        key = texts.get("key")
        if key is not None and self._is_protected(key):
            found.append(Finding(PROTECTED_KEY, "key", 0, len(key), "folded"))
        return tuple(found)

    def suspicious(self, word: str) -> bool:
        """Tell whether any detector fires on a single word."""
        return bool(self._field(word))

    def _is_protected(self, key: str) -> bool:
        """Tell whether a key, however it is written, lies in a protected name space.

        A policy document shows a key that is no clean identifier as a digest, which has no prefix to look at.
        """
        letters = unicodedata.normalize("NFKC", key).casefold().translate(_LETTERS)
        return "".join(one for one in letters if one.isalnum() or one in "._-:").startswith(self._protected)

    def _field(self, text: str) -> tuple[Finding, ...]:
        if len(text) > _SHORT:
            return self._detectors.scan({"text": text})
        known = self._cache.get(text)
        if known is None:
            if len(self._cache) >= _CACHE_ENTRIES_MAX:
                self._cache.clear()
            known = () if _ORDINARY.match(text) else self._detectors.scan({"text": text})
            self._cache[text] = known
        return known
