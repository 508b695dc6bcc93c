"""Records as a log line holds them: rows of values under names that are said once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

__all__ = ["Rows"]


class Rows(Sequence[Mapping[str, Any]]):
    """A list of records; each becomes a mapping when it is asked for, which most of a long log never is."""

    __slots__ = ("names", "values")

    def __init__(self, names: Sequence[str], values: list[list[Any]]) -> None:
        self.names = tuple(names)
        self.values = values  # a row may go on behind the names

    @classmethod
    def of(cls, records: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Rows:
        """Return records as rows of what `names` says.

        Raises:
            KeyError: a record lacks one of them.
        """
        return cls(names, [[record[name] for name in names] for record in records])

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Rows: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | Rows:
        if isinstance(index, slice):
            return Rows(self.names, self.values[index])
        return dict(zip(self.names, self.values[index], strict=False))

    def places(self, names: Sequence[str]) -> list[int]:
        """Return where in a row the values of `names` stand.

        Raises:
            ValueError: the rows say nothing of one of them.
        """
        return [self.names.index(name) for name in names]
