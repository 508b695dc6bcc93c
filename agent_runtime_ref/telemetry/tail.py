"""A log file read on from where it was left, while it grows and is rotated."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import IO, NamedTuple

from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.telemetry.segments import RAW_BYTES_MAX, raw_lines, settled_size

_MARKS_MAX = 4096


class _Mark(NamedTuple):
    """Where the line behind line `seq` begins."""

    seq: int
    inode: int
    offset: int


class LogTail:
    """Yields what stands behind a line of a log; where it was not long ago, it does not look for it again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._marks: deque[_Mark] = deque(maxlen=_MARKS_MAX)

    def __call__(self, after: int = 0) -> Iterator[bytes]:
        """Yield the whole lines behind line `after`, whatever state they are in, oldest first.

        Raises:
            DocumentUnreadableError: a file of the log cannot be read.
        """
        # One mark before it stays: who makes sure of the last line looks at that one again.
        while len(self._marks) > 1 and self._marks[1].seq < after:
            self._marks.popleft()
        mark = next((one for one in islice(self._marks, 2) if one.seq == after), None)
        file = None if mark is None else _reopened(self.path, mark)
        if mark is None or file is None:
            yield from self._walked(after)
            return
        with file:
            yield from self._read(file, mark)

    def _walked(self, after: int) -> Iterator[bytes]:
        self._marks.clear()
        inode = offset = 0
        skipping = after > 0
        for raw in raw_lines(self.path, after):
            if raw.number == 1:
                inode, offset = _inode(raw.source), 0
            offset += len(raw.data) + 1
            number = chain.number(raw.data)
            # A line that is no log line is behind the one before it, wherever that is.
            skipping = skipping and (number or 0) <= after
            if number is not None and number >= after:
                self._marks.append(_Mark(number, inode, offset))
            if not skipping and raw.whole:
                yield raw.data

    def _read(self, file: IO[bytes], mark: _Mark) -> Iterator[bytes]:
        offset, end = mark.offset, settled_size(file)
        while offset < end:
            data = file.readline(RAW_BYTES_MAX)
            offset += len(data)
            if not data.endswith(b"\n"):
                return
            number = chain.number(data)
            if number is not None and not (self._marks and number <= self._marks[-1].seq):  # seen before
                self._marks.append(_Mark(number, mark.inode, offset))
            yield data[:-1]


def _reopened(path: Path, mark: _Mark) -> IO[bytes] | None:
    """The file at the place of a mark; None where it is not the same file any more, and has to be walked."""
    with suppress(OSError):
        file = path.open("rb")
        if os.fstat(file.fileno()).st_ino == mark.inode and _continues(file, mark):
            return file
        file.close()
    return None


def _continues(file: IO[bytes], mark: _Mark) -> bool:
    """Tell whether the line behind the mark begins there; an inode alone may be somebody else's by now."""
    file.seek(mark.offset - 1)
    if file.read(1) != b"\n":
        return False
    ahead = chain.number(file.readline(RAW_BYTES_MAX))
    file.seek(mark.offset)
    return ahead in (None, mark.seq + 1)


def _inode(source: str) -> int:
    with suppress(OSError):
        return os.stat(source).st_ino
    return 0
