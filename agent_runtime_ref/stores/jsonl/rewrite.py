"""Forgetting in files: both are written anew without the person, and take the places of those with it.

The new files are on disk before the log tells of the forgetting, and get their names after it. A process that
ends in between leaves them: where the log tells of it they are put in their places, and else removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from agent_runtime_ref.errors import StoreDamagedError
from agent_runtime_ref.stores.jsonl import files, intents
from agent_runtime_ref.stores.jsonl.keys import KeyFile
from agent_runtime_ref.stores.jsonl.lines import Header, header_line, read_header, snapshot_lines
from agent_runtime_ref.stores.memory_tenant import Tenant
from agent_runtime_ref.telemetry import diagnostics

_CHUNK_LINES = 1000


class Rewriting:
    """The two prepared files; to be used under the exclusive lock of the store."""

    def __init__(self, path: Path, keys: KeyFile) -> None:
        self._path = path
        self._keys = keys
        self._records_new = path.with_name(f"{path.name}.rewritten")
        self._keys_new = keys.path.with_name(f"{keys.path.name}.rewritten")

    def prepare(
        self, header: Header, tenants: Mapping[str, Tenant], gone: tuple[str, str]
    ) -> tuple[int, int]:
        """Write both files without `gone`, tenant and subject; returns bytes and lines of the records."""
        size = lines = 0

        def chunks() -> Iterator[bytes]:
            nonlocal size, lines
            chunk = [header_line(header)]
            for line in snapshot_lines(tenants, header.mark):
                chunk.append(line)
                if len(chunk) == _CHUNK_LINES:
                    size, lines = size + sum(map(len, chunk)), lines + len(chunk)
                    yield b"".join(chunk)
                    chunk.clear()
            size, lines = size + sum(map(len, chunk)), lines + len(chunk)
            yield b"".join(chunk)

        try:
            # The records last: where they are prepared, the keys are.
            self._keys.prepare_without(*gone, self._keys_new)
            files.prepare(self._records_new, chunks())
        except BaseException:
            self.drop()
            raise
        return size, lines

    def put_in_place(self) -> None:
        """Give both files their names, the records last."""
        if self._keys_new.exists():
            files.put_in_place(self._keys_new, self._keys.path)
        files.put_in_place(self._records_new, self._path)

    def drop(self) -> None:
        """Remove what was prepared."""
        for path in (self._records_new, self._keys_new):
            with suppress(FileNotFoundError):
                path.unlink()

    def end(self, log: Path) -> None:
        """End or take back what another process left in the middle."""
        if not self._records_new.exists():
            self.drop()
            return
        if self._is_announced(log):
            diagnostics.warning("store_forgetting_ended", path=str(self._path))
            self.put_in_place()
        else:
            self.drop()

    def _is_announced(self, log: Path) -> bool:
        try:
            with files.reading(self._records_new) as (descriptor, seen):
                line = next(files.lines_from(descriptor, 0, seen.size), b"")
            header = read_header(line, str(self._records_new))
        except StoreDamagedError:
            return False  # it was never whole, so nothing was announced
        if header.intent is None or not log.exists():
            return False
        return intents.holds_body(intents.lines_after(log, header.mark.seq), header.intent)
