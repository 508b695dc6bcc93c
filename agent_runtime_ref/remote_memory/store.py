"""`RemoteMemoryStore`: one user's records in one file that only grows. It lies below the gates.

Writers of one file take its lock, read what others appended since they last looked, refuse an id that is
there, and append one line in one write that is on disk before they return. What has been read once is not
read again, so an append costs the same however long the file is. Where the file did not only grow since, as
after an editor or a restored backup, all of it is read anew.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

from agent_runtime_ref.clock import Clock, Ids, RandomIds, SystemClock, timestamp
from agent_runtime_ref.contracts.stored import (
    DEFAULT_USER,
    MemoryKind,
    MemorySource,
    StoredMemory,
    captured,
    user_scope_of,
)
from agent_runtime_ref.errors import (
    RemoteMemoryCorruptionError,
    RemoteMemoryDuplicateError,
    RemoteMemoryError,
    RemoteMemoryValidationError,
)
from agent_runtime_ref.file_lock import locked
from agent_runtime_ref.file_sync import sync_folder, write_all
from agent_runtime_ref.remote_memory.lines import LINE_BYTES_MAX, line_of, records_of
from agent_runtime_ref.telemetry import diagnostics

__all__ = ["DEFAULT_USER", "RemoteMemoryStore", "user_scope_of"]


class RemoteMemoryStore:
    """Appends and reads the records of one user; safe for threads, and for processes over the same file."""

    def __init__(
        self,
        path: str | Path,
        *,
        user_id: str = DEFAULT_USER,
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        """Name the file; it is made by the first append."""
        self.path = Path(path)
        self.user_scope = user_scope_of(user_id)
        self.torn_bytes = 0  # of a last line that was cut short, as it was last found or repaired
        self._clock = clock or SystemClock()
        self._ids = ids or RandomIds()
        self._guard = threading.Lock()
        self._records: list[StoredMemory] = []
        self._known: set[str] = set()
        self._view: tuple[StoredMemory, ...] | None = None
        self._tail = b""  # behind the last line feed
        self._offset = 0  # of the first byte that has not been taken
        self._last = b""  # the line before that byte, by which a file that only grew is known
        self._identity: tuple[int, int] | None = None
        self._changed_ns = 0  # when the file changed last, as of the last look

    def append(
        self,
        *,
        kind: MemoryKind,
        content: str,
        summary: str,
        source: MemorySource,
        memory_id: str | None = None,
        stored_at: str | None = None,
        retracts: str | None = None,
    ) -> StoredMemory:
        """Keep one record and return it; it is on disk by then.

        Raises:
            RemoteMemoryValidationError: a field is blank, of the wrong type or no instant.
            RemoteMemoryDuplicateError: a record of that id is there.
            RemoteMemoryScopeError: the file belongs to another user.
            RemoteMemoryError: the file cannot be written; what was written of the line is taken back.
        """
        record = StoredMemory(
            memory_id=self._ids.new("memory") if memory_id is None else memory_id,
            user_scope=self.user_scope,
            kind=_kind(kind),
            content=content,
            summary=summary,
            source=source,
            stored_at=timestamp(self._clock.now_us()) if stored_at is None else stored_at,
            retracts=retracts,
        )
        record.check()
        line = line_of(record)
        if len(line) > LINE_BYTES_MAX:
            raise RemoteMemoryValidationError(f"the record has {len(line)} bytes, at most {LINE_BYTES_MAX}")
        with self._guard, locked(self.path, failed=self._failed, makes_folder=True) as descriptor:
            self._catch_up(descriptor)
            self._repair(descriptor)
            if record.memory_id in self._known:
                raise RemoteMemoryDuplicateError(f"memory_id `{record.memory_id}` is there already")
            self._write(descriptor, line)
            self._take(record, line)
        return record

    def read_all(self) -> Sequence[StoredMemory]:
        """Return every record in the order of the file, retracted ones and retractions too.

        Raises:
            RemoteMemoryCorruptionError: a line is no record; the message names it.
            RemoteMemoryScopeError: the file belongs to another user.
        """
        with self._guard:
            try:
                descriptor = os.open(self.path, os.O_RDONLY)
            except FileNotFoundError:
                self._forget()
            except OSError as error:
                raise self._failed(error) from error
            else:
                try:
                    self._catch_up(descriptor)
                finally:
                    os.close(descriptor)
            if self._view is None:
                self._view = (*self._records, *self._unended())
            return self._view

    def latest_profile(self) -> StoredMemory | None:
        """Return the snapshot that was captured last and not retracted, or None."""
        records = self.read_all()
        gone = {record.retracts for record in records if record.retracts is not None}
        profiles = [
            (captured("captured_at", record.source.captured_at), place, record)
            for place, record in enumerate(records)
            if record.kind is MemoryKind.PROFILE and record.memory_id not in gone
        ]
        return max(profiles)[2] if profiles else None

    def _catch_up(self, descriptor: int) -> None:
        """Take the records that were appended since; all of them where another file has the name by now."""
        status = os.fstat(descriptor)
        if not self._only_grew(descriptor, status):
            self._forget()
            self._identity = (status.st_dev, status.st_ino)
        self._changed_ns = status.st_mtime_ns
        data = _read(descriptor, self._offset, status.st_size - self._offset)
        whole = data.rfind(b"\n") + 1
        first = len(self._records) + 1
        try:
            for record in records_of(
                data[:whole], path=str(self.path), first_line=first, user_scope=self.user_scope
            ):
                self._take(record)
        except BaseException:
            self._forget()  # half of what is new must not be taken for old at the next look
            raise
        if whole:
            self._offset += whole
            self._last = data[data.rfind(b"\n", 0, whole - 1) + 1 : whole]
        if data[whole:] != self._tail:
            self._tail, self._view = data[whole:], None
        self.torn_bytes = 0 if self._unended() else len(self._tail)

    def _only_grew(self, descriptor: int, status: os.stat_result) -> bool:
        """Tell whether the file is the one that was looked at, with nothing but more at its end."""
        known = self._offset + len(self._tail)
        if self._identity != (status.st_dev, status.st_ino) or status.st_size < known:
            return False
        if status.st_mtime_ns == self._changed_ns:
            return True
        # Something else was written: at the end alone if there is more, and the last line is where it was.
        return status.st_size > known and (
            _read(descriptor, self._offset - len(self._last), len(self._last)) == self._last
        )

    def _unended(self) -> tuple[StoredMemory, ...]:
        """Return the last record where only its line feed is missing: an editor may have left it out."""
        try:
            return tuple(
                records_of(
                    self._tail + b"\n" if self._tail else b"",
                    path=str(self.path),
                    first_line=len(self._records) + 1,
                    user_scope=self.user_scope,
                )
            )
        except RemoteMemoryCorruptionError:
            return ()

    def _repair(self, descriptor: int) -> None:
        """End the last line if it is whole, else move what is left of it into a file beside this one."""
        if not self._tail:
            return
        unended = self._unended()
        if unended:
            self._write(descriptor, b"\n")
            self._take(unended[0], self._tail + b"\n")
        else:
            aside = self.path.with_name(f"{self.path.name}.torn")
            try:
                with open(aside, "ab", opener=_private) as file:
                    file.write(self._tail + b"\n")
                    file.flush()
                    os.fsync(file.fileno())
                os.ftruncate(descriptor, self._offset)
            except OSError as error:
                raise self._failed(error) from error
            diagnostics.warning("remote_memory_repaired", path=str(aside), size=len(self._tail))
        self._tail = b""

    def _take(self, record: StoredMemory, line: bytes = b"") -> None:
        """Hold a record, and its `line` where it is not one of several that were read at once."""
        if record.memory_id in self._known:
            place = f"{self.path}:{len(self._records) + 1}"
            raise RemoteMemoryCorruptionError(f"{place}: memory_id `{record.memory_id}` stands twice")
        self._records.append(record)
        self._known.add(record.memory_id)
        if line:
            self._offset += len(line)
            self._last = line
        self._view = None

    def _write(self, descriptor: int, data: bytes) -> None:
        end = os.fstat(descriptor).st_size
        if end == 0:
            sync_folder(self.path.parent)  # first, so that a file with a line in it has its name on disk
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
            self._changed_ns = os.fstat(descriptor).st_mtime_ns
        except OSError as error:
            os.ftruncate(descriptor, end)
            raise self._failed(error) from error

    def _forget(self) -> None:
        self._records.clear()
        self._known.clear()
        self._view, self._tail, self._last, self._offset, self._identity = None, b"", b"", 0, None

    def _failed(self, error: OSError) -> RemoteMemoryError:
        return RemoteMemoryError(f"`{self.path}`: {error.strerror or error}")


def _kind(kind: str) -> MemoryKind:
    try:
        return MemoryKind(kind)
    except ValueError:
        raise RemoteMemoryValidationError(f"kind must be one of {', '.join(MemoryKind)}") from None


def _read(descriptor: int, start: int, size: int) -> bytes:
    """Return `size` bytes from `start`; fewer where the file ends earlier."""
    parts = []
    while size > 0:
        part = os.pread(descriptor, min(size, 1 << 26), start)
        if not part:
            break
        parts.append(part)
        start, size = start + len(part), size - len(part)
    return b"".join(parts)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
