"""A line of a remote memory file: one stored record as JSON, and how a file of them is taken apart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agent_runtime_ref.contracts.stored import StoredMemory
from agent_runtime_ref.errors import (
    RemoteMemoryCorruptionError,
    RemoteMemoryScopeError,
    RemoteMemoryValidationError,
)

__all__ = ["LINE_BYTES_MAX", "line_of", "records_of"]

LINE_BYTES_MAX = 16 * 1024 * 1024


def line_of(record: StoredMemory) -> bytes:
    """Return the line of a record, its line feed included."""
    text = json.dumps(record.to_dict(), ensure_ascii=False, separators=(", ", ": "))
    return text.encode() + b"\n"


def records_of(data: bytes, *, path: str, first_line: int, user_scope: str) -> Iterator[StoredMemory]:
    """Yield the records of whole lines; `first_line` is the number of the first of them.

    Raises:
        RemoteMemoryCorruptionError: a line is no record.
        RemoteMemoryScopeError: a record belongs to another user.
    """
    for number, line in enumerate(data.split(b"\n")[:-1], start=first_line):
        record = _record(line, f"{path}:{number}")
        if record.user_scope != user_scope:
            raise RemoteMemoryScopeError(f"{path}:{number}: the record belongs to another user scope")
        yield record


def _record(line: bytes, place: str) -> StoredMemory:
    try:
        return StoredMemory.from_dict(json.loads(line, object_pairs_hook=_once, parse_constant=_no_constant))
    except RemoteMemoryValidationError as error:
        raise RemoteMemoryCorruptionError(f"{place}: {error.values['problem']}") from error
    except (ValueError, RecursionError) as error:
        raise RemoteMemoryCorruptionError(f"{place}: the line is no JSON object ({_why(error)})") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a key stands twice")
    return document


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _why(error: Exception) -> str:
    """Return what is wrong without quoting the line, which holds content."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at column {error.colno}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else type(error).__name__
