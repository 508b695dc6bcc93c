"""What is wrong with a document, and where: a value, before it becomes an error or a line of lint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agent_runtime_ref.errors import DocumentError, DocumentTypeError, DocumentValueError

__all__ = ["Finding", "Located", "Location", "json_path"]

Location = tuple[str | int, ...]


class Located(Protocol):
    """Knows the line and column, counted from 1, at which a part of a document stands in its file."""

    def place(self, location: Location, *, key: bool = False) -> tuple[int, int] | None:
        """Return the place of the value (or of its key), or of the nearest part around it."""


def json_path(location: Location) -> str:
    """Return `$.a[0]['odd key']` for a location."""
    path = "$"
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part.replace("_", "a").isalnum() and part.isascii():
            path += f".{part}"
        else:
            path += f"[{part!a}]"
    return path


@dataclass(frozen=True, slots=True)
class Finding:
    """One way in which a document does not follow its schema."""

    sentence: str
    keyword: str
    path: str
    wrong_type: bool
    line: int | None = None
    column: int | None = None
    source: str | None = None

    def error(self) -> DocumentError:
        """Return the error to raise: a TypeError where the `type` keyword failed, else a ValueError."""
        error = DocumentTypeError if self.wrong_type else DocumentValueError
        return error(self.sentence, path=self.path, line=self.line, column=self.column, source=self.source)
