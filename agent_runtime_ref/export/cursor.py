"""How far each chain of a log was delivered: a small file beside the log.

It is replaced as a whole, after the collector has acknowledged what it tells of and never before. A process
that dies in between leaves the older one, so that events are delivered again under the same ids.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from agent_runtime_ref.errors import CursorError
from agent_runtime_ref.file_sync import sync_folder, write_all
from agent_runtime_ref.telemetry.chain import GENESIS

_VERSION = 1
_BYTES_MAX = 16 * 1024 * 1024
_REMEDY = "remove it to deliver the whole log again, or name another with --cursor"


@dataclass(frozen=True, slots=True)
class Reached:
    """The last line of a chain that has been dealt with, and what was lost on the way, ever."""

    seq: int = 0
    hash: str | None = GENESIS  # None: the line had none that could be read
    failed: int = 0  # events that the collector refused for good, or whose lines could not be read
    cut: int = 0  # lines that were gone before they were delivered

    def moved(self, seq: int, hash_: str | None, *, failed: int = 0, cut: int = 0) -> Reached:
        """Return where a chain stands after a further line."""
        return replace(self, seq=seq, hash=hash_, failed=self.failed + failed, cut=self.cut + cut)


class Cursor:
    """The file, which one process at a time may hold; to be closed."""

    def __init__(self, path: Path) -> None:
        """Take hold of the file at `path`, which is made when there is something to write.

        Raises:
            CursorError: another process holds it, or it is no cursor.
        """
        self.path = path
        self._is_saved = True
        self._lock = self._locked()
        try:
            self._chains = self._read()
        except BaseException:
            os.close(self._lock)
            raise

    def of(self, chain: str) -> Reached:
        """How far a chain was delivered."""
        return self._chains.get(chain, Reached())

    def move(self, chain: str, reached: Reached) -> None:
        """Note how far a chain was delivered; it counts for the next run once it is saved."""
        self._is_saved = self._is_saved and self._chains.get(chain) == reached
        self._chains[chain] = reached

    def save(self) -> None:
        """Write down what was noted, and wait until it is on disk.

        Raises:
            CursorError: it cannot be written, or is no longer the file that this process holds.
        """
        if self._is_saved:
            return
        document = {
            "version": _VERSION,
            "chains": {name: asdict(one) for name, one in sorted(self._chains.items())},
        }
        try:
            self._replace((json.dumps(document, indent=1) + "\n").encode())
        except OSError as error:
            raise self._error(f"cannot be written: {_reason(error)}") from error
        self._is_saved = True

    def close(self) -> None:
        """Let other processes have it; an empty one is no cursor and goes."""
        with suppress(OSError):
            if os.fstat(self._lock).st_size == 0:
                self.path.unlink()
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _replace(self, data: bytes) -> None:
        """Put another file in the place of the cursor; it is locked before it has the name."""
        self._require_held()
        beside = self.path.with_name(f"{self.path.name}.new")
        descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            _try_lock(descriptor)
            write_all(descriptor, data)
            os.fsync(descriptor)
            os.rename(beside, self.path)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(self._lock)
        self._lock = descriptor
        sync_folder(self.path.parent)

    def _require_held(self) -> None:
        """Return if the file still has its name; else another export may hold the one that has it by now."""
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(self._lock), os.stat(self.path)):
                return
        raise self._error("was removed or replaced while the export was under way; start it again")

    def _locked(self) -> int:
        while True:
            try:
                descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            except OSError as error:
                raise self._error(
                    f"cannot be opened: {_reason(error)}; name a file of yours with --cursor"
                ) from error
            try:
                if not _try_lock(descriptor):
                    raise self._error("another export is under way; one at a time delivers from a log")
                # Its holder may have put another file in its place, or removed it, since it was opened.
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(descriptor), os.stat(self.path)):
                        return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def _read(self) -> dict[str, Reached]:
        return _chains_in(os.pread(self._lock, _BYTES_MAX, 0), self.path)

    def _error(self, problem: str) -> CursorError:
        return CursorError(str(self.path), problem)


def reached_in(path: Path) -> Mapping[str, Reached]:
    """How far each chain was delivered, as the file says that its holder replaces; nothing where it is not.

    Raises:
        CursorError: it cannot be read, or is no cursor.
    """
    try:
        with path.open("rb") as file:
            return _chains_in(file.read(_BYTES_MAX), path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CursorError(str(path), f"cannot be read: {_reason(error)}") from error


def _chains_in(data: bytes, path: Path) -> dict[str, Reached]:
    if not data:
        return {}
    try:
        document = json.loads(data)
        if document["version"] != _VERSION:
            raise CursorError(str(path), f"was written by another version of this program; {_REMEDY}")
        return {name: _reached(one) for name, one in document["chains"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CursorError(str(path), f"is no cursor of an export; {_REMEDY}") from error


def _reached(document: Mapping[str, Any]) -> Reached:
    seq, hash_, failed, cut = (document[name] for name in ("seq", "hash", "failed", "cut"))
    numbers = all(type(one) is int and one >= 0 for one in (seq, failed, cut))
    if not numbers or not (hash_ is None or isinstance(hash_, str)):
        raise ValueError("not what was written")
    return Reached(seq, hash_, failed, cut)


def _try_lock(descriptor: int) -> bool:
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows, where no log can be written either
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
