"""Where the parts of a document stand in its file, and the refusals that both readers share."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field

from agent_runtime_ref.errors import DocumentUnreadableError

__all__ = [
    "BYTES_MAX",
    "DEPTH_MAX",
    "Location",
    "Positions",
    "SourceDocument",
    "Surprise",
    "decoded",
    "line_and_column",
    "refusal",
]

BYTES_MAX = 64 * 1024 * 1024
DEPTH_MAX = 64

Location = tuple[str | int, ...]
Place = tuple[int, int]

# UTF-32 before UTF-16: its little-endian mark begins with the other's.
_MARKS = (
    codecs.BOM_UTF8,
    codecs.BOM_UTF32_LE,
    codecs.BOM_UTF32_BE,
    codecs.BOM_UTF16_LE,
    codecs.BOM_UTF16_BE,
)


@dataclass(frozen=True, slots=True)
class Surprise:
    """A plain scalar that YAML reads as something its writer hardly meant; no schema accepts it."""

    text: str
    kind: str  # "timestamp" or "number"


@dataclass(frozen=True, slots=True)
class Positions:
    """Line and column, both counted from 1, of each value and each key."""

    values: dict[Location, Place] = field(default_factory=dict)
    keys: dict[Location, Place] = field(default_factory=dict)

    def place(self, location: Location, *, key: bool = False) -> Place | None:
        """Return the place of a value (or of its key), or of the nearest part around it."""
        if key and location in self.keys:
            return self.keys[location]
        for length in range(len(location), -1, -1):
            place = self.values.get(location[:length])
            if place is not None:
                return place
        return None


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document as it was read, not yet checked against any schema."""

    value: object
    positions: Positions
    source: str


def refusal(
    reason: str, *, source: str, line: int | None = None, column: int | None = None
) -> DocumentUnreadableError:
    """Return the error for a file that is no document; the loader of a schema words it anew."""
    return DocumentUnreadableError(
        f"document $: is not readable: {reason}", reason=reason, line=line, column=column, source=source
    )


def decoded(data: bytes, *, source: str) -> str:
    """Return the text of a file.

    Raises:
        DocumentUnreadableError: it is too large, begins with a byte-order mark or is not UTF-8.
    """
    if len(data) > BYTES_MAX:
        raise refusal(f"larger than {BYTES_MAX} bytes", source=source, line=1, column=1)
    if data.startswith(_MARKS):
        raise refusal("byte-order mark; save as UTF-8 without one", source=source, line=1, column=1)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        line, column = line_and_column(before, len(before))
        raise refusal("invalid UTF-8", source=source, line=line, column=column) from error


def line_and_column(text: str, offset: int) -> Place:
    """Return the place of a character offset."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
