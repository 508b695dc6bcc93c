"""Where the in-memory store keeps its log: in memory, bounded, or in a file."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.telemetry.logfile import LogFile, Rotation

LINES_MAX = 100_000


class MemoryLog:
    """Two chains in memory; the oldest lines are dropped when there are too many."""

    def __init__(self, lines_max: int = LINES_MAX) -> None:
        self._chains: dict[bool, deque[str]] = {read: deque(maxlen=lines_max) for read in (False, True)}

    def append(self, lines: Sequence[str], *, read: bool) -> None:
        """Seal and keep `lines`."""
        held = self._chains[read]
        seq, prev_hash = chain.head(held[-1]) if held else (0, chain.GENESIS)
        for _, line in chain.seal_after(lines, seq=seq, prev_hash=prev_hash):
            held.append(line)

    def lines(self, *, read: bool) -> Iterator[str]:
        """The lines that are still held, oldest first."""
        return iter(tuple(self._chains[read]))

    def raw_lines(self, *, read: bool, after: int = 0) -> Iterator[bytes]:
        """The same lines as bytes; those behind line `after`."""
        return chain.behind((line.encode("utf-8") for line in self.lines(read=read)), after)

    def last_number(self) -> int:
        """The number of the last line of the write log."""
        held = self._chains[False]
        return chain.head(held[-1])[0] if held else 0


class FileLog:
    """One file and one chain for writes and reads together, in the order in which they happened."""

    def __init__(self, path: Path, rotation: Rotation | None = None, *, reads_wait: bool = True) -> None:
        self._file = LogFile(path, rotation=rotation)
        self._reads_wait = reads_wait  # until the lines of a read are on disk; those of a write always

    def append(self, lines: Sequence[str], *, read: bool) -> None:
        """Seal `lines` and wait until they are on disk."""
        self._file.append(lines, wait=self._reads_wait or not read)

    def lines(self, *, read: bool) -> Iterator[str]:
        """Every line as the write log; none as the read log, so that both together hold each line once."""
        return iter(()) if read else self._file.lines()

    def raw_lines(self, *, read: bool, after: int = 0) -> Iterator[bytes]:
        """The same lines as they are in the file; those behind line `after`."""
        return iter(()) if read else self._file.raw(after)

    def last_number(self) -> int:
        """The number of the last line."""
        return self._file.last_number()
