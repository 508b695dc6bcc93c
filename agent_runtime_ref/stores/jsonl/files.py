"""The file system under the store: locks between processes, appends that are taken back, replacement."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from agent_runtime_ref.errors import StoreCapabilityError, StoreError
from agent_runtime_ref.file_sync import sync_folder, write_all

_BLOCK = 1 << 24


class Standing(NamedTuple):
    """How a file stood at one look; where it stands so again, nothing was added and nothing replaced."""

    inode: int
    size: int
    changed_ns: int


class Lock:
    """An advisory lock on a file of its own, which outlives the replacement of the file that it guards.

    Its one byte is `1` while a change is under way between the log and the records: whoever takes the lock
    and finds it so knows that another process ended in the middle.
    """

    def __init__(self, path: Path, *, url: str) -> None:
        try:
            import fcntl
        except ImportError as error:  # pragma: no cover - Windows
            raise StoreCapabilityError(url, "its files are locked with fcntl, which is missing") from error
        self._fcntl = fcntl
        self.path = path
        self._descriptor: int | None = None  # while it is held exclusively

    @contextmanager
    def exclusive(self) -> Iterator[bool]:
        """Hold the lock against everybody; gives whether it was not held by this thread before."""
        if self._descriptor is not None:
            yield False
            return
        with self._held(self._fcntl.LOCK_EX) as descriptor:
            self._descriptor = descriptor
            try:
                yield True
            finally:
                self._descriptor = None

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the lock against whoever changes something."""
        if self._descriptor is not None:
            yield
            return
        with self._held(self._fcntl.LOCK_SH):
            yield

    @property
    def under_way(self) -> bool:
        """Whether a change is under way; to be asked and set by who holds the lock exclusively."""
        assert self._descriptor is not None
        return os.pread(self._descriptor, 1, 0) == b"1"

    @under_way.setter
    def under_way(self, value: bool) -> None:
        assert self._descriptor is not None
        os.pwrite(self._descriptor, b"1" if value else b"0", 0)

    @contextmanager
    def _held(self, how: int) -> Iterator[int]:
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(str(self.path), _unlocked(error)) from error
        try:
            self._fcntl.flock(descriptor, how)
            yield descriptor
        finally:
            # By name: a process that was forked meanwhile has the descriptor too, and would keep the lock.
            self._fcntl.flock(descriptor, self._fcntl.LOCK_UN)
            os.close(descriptor)


def _unlocked(error: OSError) -> str:
    """Return why a lock cannot be had, and what helps: a reader takes it too, for his reads are logged."""
    said = (error.strerror or str(error)).lower()
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return (
            f"{said}; let this user write there, or make a copy with all files of the store in a folder where"
            " he may write, and name that"
        )
    return said


def standing(path: Path) -> Standing | None:
    """Return how a file stands; None where there is none.

    Raises:
        StoreError: nobody can look, or it is no file: a pipe or a device is not replaced by one.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(str(path), _problem(error)) from error
    if not stat.S_ISREG(status.st_mode):
        raise StoreError(str(path), "it is no file")
    return _standing(status)


@contextmanager
def reading(path: Path) -> Iterator[tuple[int, Standing]]:
    """Give a descriptor of a file and how it stands.

    Raises:
        StoreError: there is none, or it cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError(str(path), _problem(error)) from error
    try:
        yield descriptor, _standing(os.fstat(descriptor))
    finally:
        os.close(descriptor)


def lines_from(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    """Yield the lines between two places of a file, each with its line feed; the last one may lack it."""
    rest = b""
    while start < end:
        block = os.pread(descriptor, min(_BLOCK, end - start), start)
        if not block:
            break
        start += len(block)
        *whole, rest = (rest + block).split(b"\n")
        yield from (line + b"\n" for line in whole)
    if rest:
        yield rest


def append(path: Path, data: bytes) -> None:
    """Add `data` at the end of a file and wait until it is on disk.

    Raises:
        StoreError: it is not; what was written of it is taken back.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError(str(path), _problem(error)) from error
    try:
        end = os.fstat(descriptor).st_size
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(descriptor, end)
            raise StoreError(str(path), _problem(error)) from error
    finally:
        os.close(descriptor)


def cut(path: Path, size: int) -> None:
    """Shorten a file to `size` bytes, on disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.ftruncate(descriptor, size)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def prepare(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file anew, readable by its owner alone, and wait until it is on disk."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            for chunk in chunks:
                write_all(descriptor, chunk)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreError(str(path), _problem(error)) from error


def put_in_place(prepared: Path, path: Path) -> None:
    """Give a prepared file its name, on disk, in the place of whatever has it."""
    try:
        os.replace(prepared, path)
        sync_folder(path.parent)
    except OSError as error:
        raise StoreError(str(path), _problem(error)) from error


def _standing(status: os.stat_result) -> Standing:
    return Standing(status.st_ino, status.st_size, status.st_mtime_ns)


def _problem(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
