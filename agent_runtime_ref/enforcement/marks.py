"""Which patterns can match a sentence at all, told from marks that are cheaper to collect than to search.

A mark is a word, the beginning of one (`igno*`), a digit (`#`), or characters of a script without spaces.
Each word list of a pattern is a group of marks; a sentence that has no mark of some group cannot match.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent_runtime_ref.enforcement.detector_settings import DIGIT, STEM_SIZE, WORD, stem_mark

__all__ = ["Marks"]

_DIGIT = re.compile(r"[0-9]")


class Marks:
    """The marks of all patterns; immutable after it was made, so threads may share it."""

    __slots__ = ("_by_head", "_by_mark", "_groups")

    def __init__(self, groups: Sequence[Sequence[frozenset[str]]]) -> None:
        """Take the groups of each pattern, in the order of the patterns."""
        self._groups = groups
        by_mark: dict[str, set[int]] = {}
        by_head: dict[str, set[str]] = {}
        for index, of_pattern in enumerate(groups):
            # Any one group can say which sentences are looked at; the one with the fewest marks is the best.
            for mark in min(of_pattern, key=_width):
                by_mark.setdefault(mark, set()).add(index)
            for mark in frozenset().union(*of_pattern):
                if not mark.isascii():
                    by_head.setdefault(mark[0], set()).add(mark)
        self._by_mark = by_mark
        self._by_head = {head: tuple(sorted(marks)) for head, marks in by_head.items()}

    def possible(self, sentence: str) -> list[int]:
        """Return the numbers of the patterns that may match, ascending; those left out certainly do not."""
        marks = self._of(sentence)
        indexes: set[int] = set()
        for mark in marks & self._by_mark.keys():
            indexes |= self._by_mark[mark]
        groups = self._groups
        return sorted(
            index for index in indexes if not any(group.isdisjoint(marks) for group in groups[index])
        )

    def _of(self, sentence: str) -> set[str]:
        """Return the marks that a sentence has."""
        words = set(WORD.findall(sentence))
        marks = words | {stem_mark(word) for word in words if len(word) >= STEM_SIZE}
        if _DIGIT.search(sentence) is not None:
            marks.add(DIGIT)
        if not sentence.isascii():
            by_head = self._by_head
            for place, character in enumerate(sentence):
                for mark in by_head.get(character, ()):
                    if sentence.startswith(mark, place):
                        marks.add(mark)
        return marks


def _width(group: frozenset[str]) -> tuple[bool, int]:
    """Return how many texts a group lets through, for comparison: Chinese has no words to tell them apart."""
    return any(not mark.isascii() for mark in group), len(group)
