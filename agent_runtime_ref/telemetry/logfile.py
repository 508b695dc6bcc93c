"""The decision log as a file of its own: sealed JSONL, for stores that keep no log themselves.

Several processes may append: each takes the file's lock, reads the last line there and goes on from it. A
line is on disk before `append` returns. A last line that was cut short is removed, since no one was told
that it was written.

Rotation closes the file under the same lock: it is renamed to FILE.N after the number of its first line, and
the chain goes on in a new one. The names are all the state there is, so a process that ends in between leaves
nothing behind that the next one would not understand.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from agent_runtime_ref.errors import DecisionLogError, StoreDamagedError, StoreForeignError
from agent_runtime_ref.file_lock import locked
from agent_runtime_ref.file_sync import sync_folder, write_all
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.telemetry.segments import closed_name, closed_segments, raw_lines

_TAIL_BYTES = 128 * 1024  # twice the longest line
_HEAD_BYTES = 4096
_SEAL = b'{"seq":'
_TIMESTAMP = re.compile(r'"timestamp": ?"([0-9T:.+-]+Z?)"')


@dataclass(frozen=True, slots=True)
class Rotation:
    """When a log file is closed and another one begun; the first condition that holds counts."""

    max_bytes: int | None = None  # a file does not grow beyond this, unless its only append is longer
    max_seconds: int | None = None  # between the first line of a file and one that still goes into it


def rotation_of(max_bytes: int | None, max_seconds: int | None) -> Rotation | None:
    """Return when a log file is closed, by the settings of that name; None where neither is set."""
    return None if max_bytes is None and max_seconds is None else Rotation(max_bytes, max_seconds)


class LogFile:
    """Appends bodies of lines to a chained file; made, readable by its owner alone, where there is none."""

    def __init__(self, path: Path, *, rotation: Rotation | None = None) -> None:
        self.path = path.absolute()
        self.repaired_bytes = 0  # of a last line that was cut short; reported, never counted as written
        self._rotation = rotation
        self._guard = threading.Lock()
        self._known: tuple[tuple[int, int], tuple[int, str]] | None = None  # how the file stood, and its last
        with self._locked() as descriptor:
            self._last(descriptor)

    def append(self, bodies: Sequence[str], *, wait: bool = True) -> None:
        """Seal `bodies`, add them after the last line and wait until they are on disk.

        Without `wait` they outlive the process, and a power cut may take them.

        Raises:
            DecisionLogError: they are not; what was written of them is taken back.
        """
        if not bodies:
            return
        while True:
            with self._locked() as descriptor:
                seq, prev_hash = self._last(descriptor)
                sealed = chain.seal_after(bodies, seq=seq, prev_hash=prev_hash)
                data = "".join(f"{line}\n" for _, line in sealed).encode("utf-8", "surrogatepass")
                if not self._is_due(descriptor, len(data), bodies[0]):
                    self._write(descriptor, data, wait=wait)
                    if sealed:
                        self._known = _standing(descriptor), chain.head(sealed[-1][1])
                    return
                # The lock goes with the file that is closed; others may be faster in the new one.
                self._close_segment(descriptor)

    def lines(self) -> Iterator[str]:
        """The sealed lines, oldest first, of closed segments too; a line still being written is left out."""
        for raw in raw_lines(self.path):
            if raw.whole:
                yield raw.data.decode("utf-8", "surrogatepass")

    def raw(self, after: int = 0) -> Iterator[bytes]:
        """Every line behind line `after` as its bytes, in whatever state; older segments stay closed."""
        return chain.behind((raw.data for raw in raw_lines(self.path, after)), after)

    def last_number(self) -> int:
        """The number of the last line, 0 before the first."""
        known = self._known
        with suppress(OSError):
            if known is not None and known[0] == _as_standing(os.stat(self.path)):
                return known[1][0]
        with self._locked() as descriptor:
            return self._last(descriptor)[0]

    def _write(self, descriptor: int, data: bytes, *, wait: bool) -> None:
        end = os.lseek(descriptor, 0, os.SEEK_END)
        if end == 0:
            # First, so that a file with a line in it has its name on disk, whoever died before.
            sync_folder(self.path.parent)
        try:
            write_all(descriptor, data)
            if wait:
                os.fsync(descriptor)
        except OSError as error:
            with suppress(OSError):  # what failed first is what is told
                os.ftruncate(descriptor, end)
            raise self._failed(error) from error

    def _is_due(self, descriptor: int, more_bytes: int, body: str) -> bool:
        """Tell whether the file is to be closed before `body` and what comes with it is added."""
        rotation, size = self._rotation, os.fstat(descriptor).st_size
        if rotation is None or size == 0:
            return False
        if rotation.max_bytes is not None and size + more_bytes > rotation.max_bytes:
            return True
        if rotation.max_seconds is None:
            return False
        begun = _instant(os.pread(descriptor, _HEAD_BYTES, 0).decode("utf-8", "replace"))
        now = _instant(body[:_HEAD_BYTES])
        return begun is not None and now is not None and (now - begun).total_seconds() >= rotation.max_seconds

    def _close_segment(self, descriptor: int) -> None:
        """Rename the file after its first line; from then on its bytes stay as they are."""
        first, _ = self._head_of(os.pread(descriptor, _HEAD_BYTES, 0), "first")
        closed = closed_name(self.path, first)
        if closed.exists():
            raise StoreDamagedError(str(self.path), f"`{closed}` is there already, with the same lines")
        try:
            os.rename(self.path, closed)
            sync_folder(self.path.parent)
        except OSError as error:
            raise self._failed(error) from error

    def _last(self, descriptor: int) -> tuple[int, str]:
        """Number and hash of the last whole line, after a torn one behind it was cut off."""
        if self._known is not None and self._known[0] == _standing(descriptor):
            return self._known[1]  # it only grows, so it is as this process left it
        tail = _tail(descriptor)
        whole = tail.rfind(b"\n") + 1
        if whole < len(tail):
            self._require_own(descriptor)  # nothing is cut off a file that is somebody else's
            size = os.fstat(descriptor).st_size
            try:
                os.ftruncate(descriptor, size - (len(tail) - whole))
                os.fsync(descriptor)
            except OSError as error:
                raise self._failed(error) from error
            self.repaired_bytes += len(tail) - whole
        if whole == 0:
            return self._last_closed()
        try:
            last = self._head_of(tail[:whole].splitlines()[-1], "last")
        except StoreDamagedError:
            self._require_own(descriptor)
            raise
        self._known = _standing(descriptor), last
        return last

    def _require_own(self, descriptor: int) -> None:
        """Return if the file begins as a log does, however short it is.

        Raises:
            StoreForeignError: it does not.
        """
        start = os.pread(descriptor, len(_SEAL), 0)
        if start != _SEAL[: len(start)]:
            raise StoreForeignError(str(self.path), "is no decision log: its first line is no log line")

    def _last_closed(self) -> tuple[int, str]:
        """Number and hash of the last line of the segment that was closed last."""
        closed = closed_segments(self.path)
        if not closed:
            return 0, chain.GENESIS
        try:
            with closed[-1].open("rb") as file:
                tail = _tail(file.fileno())
        except OSError as error:
            raise DecisionLogError(str(closed[-1]), error.strerror or str(error)) from error
        return self._head_of((tail.splitlines() or [b""])[-1], "last")

    def _head_of(self, line: bytes, which: str) -> tuple[int, str]:
        try:
            return chain.head(line.decode("utf-8", "replace"))
        except ValueError as error:
            raise StoreDamagedError(str(self.path), f"its {which} line is no log line: {error}") from error

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The open file, locked against other threads and processes."""
        with self._guard, locked(self.path, failed=self._failed) as descriptor:
            yield descriptor

    def _failed(self, error: OSError) -> DecisionLogError:
        return DecisionLogError(str(self.path), error.strerror or str(error))


def _standing(descriptor: int) -> tuple[int, int]:
    """Which file it is, and how long."""
    return _as_standing(os.fstat(descriptor))


def _as_standing(status: os.stat_result) -> tuple[int, int]:
    return status.st_ino, status.st_size


def _tail(descriptor: int) -> bytes:
    """The end of a file, with at least one whole line if there is one."""
    size = os.fstat(descriptor).st_size
    tail = b""
    while size > len(tail) and (b"\n" not in tail[:-1]):
        start = max(0, size - max(_TAIL_BYTES, 2 * len(tail)))
        tail = os.pread(descriptor, size - start, start)
    return tail


def _instant(text: str) -> datetime | None:
    """The instant that a line says it was written at."""
    found = _TIMESTAMP.search(text)
    if found is None:
        return None
    try:
        instant = datetime.fromisoformat(found[1])
    except ValueError:
        return None
    return instant if instant.tzinfo is not None else None  # others cannot be compared with it
