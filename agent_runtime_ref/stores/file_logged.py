"""Records in memory whose log is one file beside them: what every such store does with the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

from agent_runtime_ref.stores.held import HeldRecords
from agent_runtime_ref.stores.memory_log import FileLog


class FileLogged(HeldRecords):
    """The logging half of the store protocol over one file; no file is open between two calls."""

    _log: FileLog
    _closed: bool

    def _alone(self) -> AbstractContextManager[None]:
        """Keep other threads out; a closed store refuses."""
        raise NotImplementedError

    def append_lines(self, lines: Sequence[str], *, read: bool) -> None:
        """Log what is not part of a write; the lines of a read are not waited for until they are on disk."""
        with self._alone():
            self._log.append(lines, read=read)

    def log(self, read: bool) -> Iterator[str]:
        """The sealed lines; one file holds both kinds and gives all of them as the write log."""
        return self._log.lines(read=read)

    def raw_log(self, read: bool, after: int = 0) -> Iterator[bytes]:
        """The same lines as they are in the file."""
        return self._log.raw_lines(read=read, after=after)

    def revision(self) -> int:
        """The number of the last line of the store's own log."""
        with self._alone():
            return self._log.last_number()

    def close(self) -> None:
        """Refuse every further call."""
        self._closed = True
