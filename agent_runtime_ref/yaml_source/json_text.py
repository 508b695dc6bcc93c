"""Reads JSON with positions: the standard decoder keeps the last of two equal keys and tells no places."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import NoReturn

from agent_runtime_ref.yaml_source.positions import (
    DEPTH_MAX,
    Location,
    Positions,
    SourceDocument,
    decoded,
    refusal,
)

__all__ = ["read_json"]

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_DIGITS_MAX = 400  # more are no number that anybody meant, and Python refuses 4,300
_WORDS = {"true": True, "false": False, "null": None}


def read_json(data: bytes, *, source: str = "<json>") -> SourceDocument:
    """Return the one document in `data`.

    Raises:
        DocumentUnreadableError: it is no JSON, or it does not mean one thing only; with line and column.
    """
    text = decoded(data, source=source)
    reader = _Reader(text, source)
    value, end = reader.value(reader.skip(0), ())
    end = reader.skip(end)
    if end != len(text):
        reader.refuse("text after the end of the document", end)
    return SourceDocument(value, reader.positions, source)


class _Reader:
    """A JSON decoder over one text; a method takes an offset and returns a value and the offset after it."""

    def __init__(self, text: str, source: str) -> None:
        self.positions = Positions()
        self._text = text
        self._source = source
        # Looked up by bisection: counting line breaks for each value would make reading quadratic.
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]

    def skip(self, offset: int) -> int:
        """Return the offset of the next character that is no space."""
        match = _SPACE.match(self._text, offset)
        assert match is not None
        return match.end()

    def place(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset."""
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def refuse(self, reason: str, offset: int) -> NoReturn:
        """Raise the refusal at an offset."""
        line, column = self.place(offset)
        raise refusal(reason, source=self._source, line=line, column=column)

    def value(self, offset: int, location: Location) -> tuple[object, int]:
        """Return the value that begins at `offset`."""
        if len(location) > DEPTH_MAX:
            self.refuse(f"nested deeper than {DEPTH_MAX} levels", offset)
        self.positions.values[location] = self.place(offset)
        start = self._text[offset : offset + 1]
        if start == "{":
            return self._mapping(offset, location)
        if start == "[":
            return self._list(offset, location)
        if start == '"':
            return self._string(offset)
        for word, value in _WORDS.items():
            if self._text.startswith(word, offset):
                return value, offset + len(word)
        return self._number(offset)

    def _mapping(self, offset: int, location: Location) -> tuple[dict[str, object], int]:
        found: dict[str, object] = {}
        offset = self.skip(offset + 1)
        if self._text[offset : offset + 1] == "}":
            return found, offset + 1
        while True:
            start = offset
            if self._text[offset : offset + 1] != '"':
                self.refuse("a key in double quotes is wanted here", offset)
            key, offset = self._string(offset)
            if key in found:
                self.refuse(f"duplicate key `{key}`", start)
            place = (*location, key)
            self.positions.keys[place] = self.place(start)
            offset = self._expect(":", offset)
            found[key], offset = self.value(self.skip(offset), place)
            offset, ended = self._next(offset, "}")
            if ended:
                return found, offset

    def _list(self, offset: int, location: Location) -> tuple[list[object], int]:
        found: list[object] = []
        offset = self.skip(offset + 1)
        if self._text[offset : offset + 1] == "]":
            return found, offset + 1
        while True:
            value, offset = self.value(offset, (*location, len(found)))
            found.append(value)
            offset, ended = self._next(offset, "]")
            if ended:
                return found, offset

    def _next(self, offset: int, end: str) -> tuple[int, bool]:
        """Return the offset after a comma, or after the end of a list or mapping and True."""
        offset = self.skip(offset)
        if self._text[offset : offset + 1] == end:
            return offset + 1, True
        return self.skip(self._expect(",", offset)), False

    def _expect(self, mark: str, offset: int) -> int:
        """Return the offset after one mark."""
        offset = self.skip(offset)
        if self._text[offset : offset + 1] != mark:
            self.refuse(f"`{mark}` is wanted here", offset)
        return offset + 1

    def _string(self, offset: int) -> tuple[str, int]:
        try:
            text, end = scanstring(self._text, offset + 1, True)
        except json.JSONDecodeError as error:
            self.refuse(error.msg.lower(), error.pos)
        return str(text), end

    def _number(self, offset: int) -> tuple[object, int]:
        match = _NUMBER.match(self._text, offset)
        if match is None:
            self.refuse("no JSON value begins here", offset)
        text = match.group()
        if len(text) > _DIGITS_MAX:
            self.refuse(f"number of more than {_DIGITS_MAX} digits", offset)
        whole = match.group(2) is None and match.group(3) is None
        return (int(text) if whole else float(text)), match.end()
