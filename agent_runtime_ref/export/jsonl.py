"""Delivery as JSON lines: events as a trace has them, into a file, or to whoever reads standard output."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent_runtime_ref.compact_json import compact
from agent_runtime_ref.errors import UsageError
from agent_runtime_ref.export.answers import Answer
from agent_runtime_ref.export.outgoing import Outgoing
from agent_runtime_ref.file_sync import sync_folder, write_all

_BEGINS = b'{"schema_version":'
_TAIL_BYTES = 4 * 1024 * 1024


class FileSender:
    """Appends events to a file and waits until they are on disk."""

    def __init__(self, path: Path) -> None:
        """Open the file; what an export that was killed left of its last line is taken away.

        Raises:
            UsageError: it cannot be written, or its last line is cut short and is none of an event.
        """
        self._path = path
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            raise UsageError(
                f"`{path}` cannot be written: {(error.strerror or str(error)).lower()}"
            ) from error
        self._repair()

    def send(self, events: Sequence[Outgoing]) -> Answer:
        """Append a batch; what was written of one that could not be is taken back."""
        end = os.fstat(self._descriptor).st_size
        data = "".join(f"{compact(event.to_document())}\n" for event in events).encode()
        if end == 0:
            sync_folder(self._path.parent)  # first, so that a file with an event in it has its name on disk
        try:
            write_all(self._descriptor, data)
            os.fsync(self._descriptor)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._descriptor, end)
            return Answer("unavailable", reason=f"`{self._path}` cannot be written: {error.strerror}")
        return Answer("taken")

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _repair(self) -> None:
        size = os.fstat(self._descriptor).st_size
        start = max(0, size - _TAIL_BYTES)
        torn = os.pread(self._descriptor, size - start, start).rpartition(b"\n")[2]
        if not torn:
            return
        if not (torn.startswith(_BEGINS) or _BEGINS.startswith(torn)):
            os.close(self._descriptor)
            raise UsageError(f"`{self._path}` does not end with the line of an event; name another file")
        os.ftruncate(self._descriptor, size - len(torn))


class StreamSender:
    """Hands events to somebody who prints them; they are delivered once that came back."""

    def __init__(self, write: Callable[[Sequence[Any]], None]) -> None:
        self._write = write

    def send(self, events: Sequence[Outgoing]) -> Answer:
        """Print a batch; an error is the caller's, since whoever reads is gone."""
        self._write([event.to_document() for event in events])
        return Answer("taken")

    def close(self) -> None:
        """The stream is not ours."""
