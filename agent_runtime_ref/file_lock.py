"""A file that its writers take turns at: opened for appending, made where there is none, and locked.

The lock is advisory and on the file itself, so it holds between threads and between processes. Whoever waits
for it may find that the file has been renamed or replaced meanwhile; then the one that has the name now is
locked instead.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_runtime_ref.errors import StoreCapabilityError

__all__ = ["locked"]

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND


@contextmanager
def locked(
    path: Path, *, failed: Callable[[OSError], Exception], makes_folder: bool = False
) -> Iterator[int]:
    """Give a descriptor of the file at `path`, locked against every other writer until the block ends.

    The file is made, readable by its owner alone, where there is none; with `makes_folder` its folder too.

    Raises:
        StoreCapabilityError: this platform has no such locks.
        Exception: what `failed` makes of an error; the file cannot be opened, or is a pipe or a device.
    """
    try:
        import fcntl
    except ImportError as error:  # pragma: no cover - Windows
        raise StoreCapabilityError(str(path), "files are locked with fcntl, which is missing") from error
    while True:
        try:
            descriptor = _opened(path, makes_folder)
        except OSError as error:
            raise failed(error) from error
        try:
            # Nothing of the sort has a last line to go on from, and nobody can read it back.
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise failed(OSError(errno.EINVAL, "it is a pipe or a device and no file"))
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_current(descriptor, path):
                yield descriptor
                return
        finally:
            os.close(descriptor)  # gives up the lock too


def _opened(path: Path, makes_folder: bool) -> int:
    try:
        return os.open(path, _FLAGS, 0o600)
    except FileNotFoundError:
        if not makes_folder:
            raise
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.open(path, _FLAGS, 0o600)


def _is_current(descriptor: int, path: Path) -> bool:
    """Tell whether the file still has its name: another process may have put another in its place."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
