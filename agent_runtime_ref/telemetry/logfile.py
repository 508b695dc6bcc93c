"""The decision log as a file of its own: sealed JSONL, for stores that keep no log themselves.

Several processes may append: each takes the file's lock, reads the last line there and goes on from it. A
line is on disk before `append` returns. A last line that was cut short is removed, since no one was told
that it was written.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agent_runtime_ref.errors import DecisionLogError, StoreCapabilityError, StoreDamagedError
from agent_runtime_ref.telemetry import chain

_TAIL_BYTES = 128 * 1024  # twice the longest line


class LogFile:
    """Appends bodies of lines to a chained file; made, readable by its owner alone, where there is none."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.repaired_bytes = 0  # of a last line that was cut short; reported, never counted as written
        self._guard = threading.Lock()
        with self._locked() as descriptor:
            self._last(descriptor)

    def append(self, bodies: Sequence[str]) -> None:
        """Seal `bodies`, add them after the last line and wait until they are on disk.

        Raises:
            DecisionLogError: they are not; what was written of them is taken back.
        """
        if not bodies:
            return
        with self._locked() as descriptor:
            seq, prev_hash = self._last(descriptor)
            sealed = chain.seal_after(bodies, seq=seq, prev_hash=prev_hash)
            data = "".join(f"{line}\n" for _, line in sealed).encode("utf-8", "surrogatepass")
            end = os.lseek(descriptor, 0, os.SEEK_END)
            try:
                _write_all(descriptor, data)
                os.fsync(descriptor)
            except OSError as error:
                os.ftruncate(descriptor, end)
                raise DecisionLogError(str(self.path), error.strerror or str(error)) from error

    def lines(self) -> Iterator[str]:
        """The sealed lines, oldest first; a line still being written is left out."""
        with self.path.open("rb") as file:
            for raw in file:
                if raw.endswith(b"\n"):
                    yield raw[:-1].decode("utf-8", "surrogatepass")

    def last_number(self) -> int:
        """The number of the last line, 0 before the first."""
        with self._locked() as descriptor:
            return self._last(descriptor)[0]

    def _last(self, descriptor: int) -> tuple[int, str]:
        """Number and hash of the last whole line, after a torn one behind it was cut off."""
        size = os.lseek(descriptor, 0, os.SEEK_END)
        tail = b""
        while size > len(tail) and (b"\n" not in tail[:-1]):
            start = max(0, size - max(_TAIL_BYTES, 2 * len(tail)))
            tail = os.pread(descriptor, size - start, start)
        whole = tail.rfind(b"\n") + 1
        if whole < len(tail):
            self.repaired_bytes += len(tail) - whole
            os.ftruncate(descriptor, size - (len(tail) - whole))
            os.fsync(descriptor)
        if whole == 0:
            return 0, chain.GENESIS
        line = tail[:whole].splitlines()[-1]
        try:
            return chain.head(line.decode("utf-8", "surrogatepass"))
        except ValueError as error:
            raise StoreDamagedError(str(self.path), f"its last line is no log line: {error}") from error

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The open file, locked against other threads and processes."""
        try:
            import fcntl
        except ImportError as error:  # pragma: no cover - Windows
            raise StoreCapabilityError(
                str(self.path), "files are locked with fcntl, which is missing"
            ) from error
        with self._guard:
            try:
                descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            except OSError as error:
                raise DecisionLogError(str(self.path), error.strerror or str(error)) from error
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield descriptor
            finally:
                os.close(descriptor)  # gives up the lock too


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
