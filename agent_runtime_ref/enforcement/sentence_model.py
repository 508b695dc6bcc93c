"""A linear model over words: how much a text sounds like an order to an agent rather than information.

Patterns catch wordings that somebody foresaw. The model catches more of the others: a weighted sum over
words and pairs of words, learned from labelled texts (tests/corpora/detectors), small enough that a
reviewer can read which words count and how much. Its weights are settings of the policy bundle.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from agent_runtime_ref.errors import BundleError

_TOKENS = re.compile(r"[a-z]+(?:'[a-z]+)?|[0-9]+|[\u3400-\u9fff]+|[@#/:?<>\[\]{}]")
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？\n]*")
_WINDOW = 3  # sentences that are judged together; the texts it was learned from have about as many
_WHOLE = 360  # characters up to which a text is judged as one
_WINDOWS_MAX = 200
_LEAST = 6  # characters below which nothing is said


class SentenceModel:
    """Scores texts; immutable after it was made, so threads may share it.

    Raises:
        BundleError: reason settings_malformed.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        try:
            self._families: tuple[str, ...] = tuple(settings["families"])
            self._bias: tuple[int, ...] = tuple(settings["bias"])
            self._threshold: int = settings["threshold"]
            # As the bundle's JSON has it: to copy thousands of rows would cost each start of the command.
            self._weights: Mapping[str, list[int]] = settings["weights"]
        except (KeyError, TypeError) as error:
            raise BundleError("settings_malformed", f"memory.detectors.model: {error!r}") from error

    def check(self) -> None:
        """Look at every weight.

        Raises:
            BundleError: reason settings_malformed; a row is no list of whole numbers, one for each family.
        """
        rows = [("bias", self._bias), *self._weights.items()]
        for feature, row in rows:
            if len(row) != len(self._families) or not all(type(one) is int for one in row):
                raise BundleError("settings_malformed", f"memory.detectors.model: weights of `{feature}`")

    def spans(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Yield type, start and end of each stretch of `text` that sounds like an order."""
        for start, end in _windows(text):
            if end - start < _LEAST:
                continue
            score, family = self.score(text[start:end])
            if score > self._threshold:
                yield family, start, end

    def score(self, text: str) -> tuple[int, str]:
        """Return the highest score in thousandths and the family that has it."""
        weights = self._weights
        rows = [self._bias, *(weights[feature] for feature in weights.keys() & features(text))]
        totals = [sum(column) for column in zip(*rows, strict=True)]
        best = max(range(len(totals)), key=totals.__getitem__)
        return totals[best], self._families[best]


def features(text: str) -> Iterator[str]:
    """Yield the words of `text`, pairs of neighbours, and for Chinese one to three characters."""
    tokens = _TOKENS.findall(unicodedata.normalize("NFKC", text).casefold())
    before = "^"
    for token in tokens:
        if token[0] >= "\u3400":
            yield from _han(token)
            before = "^"
            continue
        word = "0" if token[0].isdigit() else token
        yield word
        yield f"{before} {word}"
        before = word


def _han(run: str) -> Iterator[str]:
    for size in (1, 2, 3):
        for start in range(len(run) - size + 1):
            yield run[start : start + size]


def _windows(text: str) -> Iterator[tuple[int, int]]:
    if len(text) <= _WHOLE:
        yield 0, len(text)
        return
    sentences = [match.span() for match in _SENTENCE.finditer(text)]
    for index in range(min(len(sentences), _WINDOWS_MAX)):
        last = min(index + _WINDOW, len(sentences)) - 1
        yield sentences[index][0], min(sentences[last][1], sentences[index][0] + 2 * _WHOLE)
