"""Runs of numbers that are missing so far."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

RUNS_MAX = 10_000


class Gaps:
    """Missing numbers as runs in ascending order; a number that turns up late is taken out."""

    def __init__(self) -> None:
        self._runs: list[tuple[int, int]] = []

    def add(self, first: int, last: int) -> None:
        """Note that `first` to `last` are missing; they come after all others, and may be none."""
        if first <= last:
            self._runs.append((first, last))

    def remove(self, number: int) -> bool:
        """Take a number out; False where it is not missing."""
        index = bisect_right(self._runs, (number, float("inf"))) - 1
        if index < 0 or self._runs[index][1] < number:
            return False
        first, last = self._runs[index]
        self._runs[index : index + 1] = [
            run for run in ((first, number - 1), (number + 1, last)) if run[0] <= run[1]
        ]
        return True

    def surplus(self) -> list[tuple[int, int]]:
        """Give up the oldest runs beyond what is held: they count as missing for good."""
        excess = max(len(self._runs) - RUNS_MAX, 0)
        surplus, self._runs = self._runs[:excess], self._runs[excess:]
        return surplus

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self._runs)
