"""PATH: the record file, and how what is in memory keeps up with it."""

from __future__ import annotations

from pathlib import Path

from agent_runtime_ref.errors import StoreForeignError
from agent_runtime_ref.stores.jsonl import files
from agent_runtime_ref.stores.jsonl.lines import NO_MARK, Header, Mark, Replay, header_line, read_header
from agent_runtime_ref.stores.memory_tenant import Tenant
from agent_runtime_ref.telemetry import diagnostics


class RecordFile:
    """Takes what was added to the file since the last look, and adds to it.

    `tenants` is filled and emptied here. Only commits that have ended are taken; what stands behind the last
    one was left by a process that ended too early, and is cut off by the next one that writes.
    """

    def __init__(self, path: Path, lock: files.Lock, tenants: dict[str, Tenant]) -> None:
        self.path = path
        self.repaired_bytes = 0  # of commits that never ended; reported, never counted as written
        self.header = Header(0, NO_MARK)
        self.mark = NO_MARK  # of the last commit
        self._lock = lock
        self._tenants = tenants
        self._replay = Replay(tenants)
        self._seen: files.Standing | None = None
        self._end = 0  # behind the last line that has been carried out
        self._lines = 0  # how many lines that is

    def check_kind(self) -> bool:
        """Tell whether there is a store; a file that is something else is left as it is.

        Raises:
            StoreForeignError, StoreVersionError: the file is another program's, or a newer version's.
        """
        found = files.standing(self.path)
        if found is None or found.size == 0:
            return False
        with files.reading(self.path) as (descriptor, seen):
            read_header(next(files.lines_from(descriptor, 0, min(seen.size, 4096))), str(self.path))
        return True

    def make(self) -> None:
        """Make an empty file, under the lock."""
        prepared = self.path.with_name(f"{self.path.name}.new")
        files.prepare(prepared, [header_line(Header(0, NO_MARK))])
        files.put_in_place(prepared, self.path)

    @property
    def is_current(self) -> bool:
        """Whether nothing has changed since the last look; so what was taken is right, without a lock."""
        return self._seen is not None and files.standing(self.path) == self._seen

    def catch_up(self) -> None:
        """Carry out what was added since the last look.

        Raises:
            StoreDamagedError: a line is none that was ever written; its place is told.
            StoreError: the file is gone.
        """
        if self.is_current:
            return
        with self._lock.shared(), files.reading(self.path) as (descriptor, seen):
            if self._seen is None or self._seen.inode != seen.inode or seen.size < self._end:
                self.let_go()
            try:
                self._take(descriptor, seen)
            except BaseException:
                self.let_go()  # half of a file must not answer for all of it
                raise
            self._seen = seen

    def repair(self) -> None:
        """Cut off what is left of a commit that never ended, under the exclusive lock, after `catch_up`."""
        assert self._seen is not None
        left = self._seen.size - self._end
        if left > 0:
            files.cut(self.path, self._end)
            self._seen = files.standing(self.path)
            self.repaired_bytes += left
            diagnostics.warning("store_repaired", path=str(self.path), size=left)

    def append(self, data: bytes, lines: int, mark: Mark) -> None:
        """Add the lines of a commit whose steps have been carried out in memory already.

        Raises:
            StoreError: they are not on disk; what was written of them is taken back.
        """
        files.append(self.path, data)
        self._settled(mark, self._end + len(data), self._lines + lines)

    def replaced(self, header: Header, size: int, lines: int) -> None:
        """Note that the file was rewritten from what is in memory."""
        self.header = header
        self._settled(header.mark, size, lines)

    def let_go(self) -> None:
        """Empty the memory; the next look takes the whole file."""
        self._tenants.clear()
        self._replay.drop()
        self.header, self.mark = Header(0, NO_MARK), NO_MARK
        self._seen, self._end, self._lines = None, 0, 0

    def _settled(self, mark: Mark, end: int, lines: int) -> None:
        self.mark, self._end, self._lines = mark, end, lines
        self._seen = files.standing(self.path)

    def _take(self, descriptor: int, seen: files.Standing) -> None:
        end, number = self._end, self._lines
        for line in files.lines_from(descriptor, self._end, seen.size):
            if not line.endswith(b"\n"):
                break
            end, number = end + len(line), number + 1
            if number == 1:
                self.header = read_header(line, str(self.path))
                mark: Mark | None = self.header.mark
            else:
                mark = self._replay.take(line, number, str(self.path))
            if mark is not None:
                self.mark, self._end, self._lines = mark, end, number
        self._replay.drop()
        if self._lines == 0:
            raise StoreForeignError(f"{self.path}:1", "does not begin as a store in JSON lines does")
