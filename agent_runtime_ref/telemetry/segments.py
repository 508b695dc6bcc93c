"""The files of a log: FILE itself, and beside it the segments that rotation closed.

A closed segment is FILE.N, where N is the number of its first line, in twelve digits. Names say all there
is to say: there is no index that a crash could leave behind wrong.
"""

from __future__ import annotations

import errno
import gzip
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, NamedTuple

from agent_runtime_ref.errors import DocumentUnreadableError

RAW_BYTES_MAX = 64 * 1024 * 1024  # of one line of a file that others wrote
_DIGITS = 12
_CLOSED = re.compile(rf"\.([0-9]{{{_DIGITS}}})\Z")
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)  # a pipe that nobody writes to would be waited for
_GZIP = b"\x1f\x8b"
_SQLITE = b"SQLite format 3\0"
_STORE = re.compile("(?:sqlite|jsonl|file):")


class RawLine(NamedTuple):
    """A line as it stands in a file, without its line end."""

    source: str
    number: int  # in its file, from 1
    data: bytes
    whole: bool  # it ends with a line end; only the last line of a file may lack one


def closed_name(path: Path, first_seq: int) -> Path:
    """What the file at `path` is called once it is closed."""
    return path.with_name(f"{path.name}.{first_seq:0{_DIGITS}d}")


def first_number(path: Path) -> int | None:
    """The number of the first line of a closed segment by its name; None of any other file."""
    found = _CLOSED.search(path.name)
    return None if found is None else int(found[1])


def closed_segments(path: Path) -> list[Path]:
    """The closed segments of the log at `path`, oldest first."""
    folder, prefix = path.absolute().parent, f"{path.name}."
    names = (name for name in os.listdir(folder) if name.startswith(prefix))
    found = (path.with_name(name) for name in names if _CLOSED.fullmatch(name, len(path.name)))
    return sorted(found, key=lambda one: one.name)


def raw_lines(path: Path, after: int = 0) -> Iterator[RawLine]:
    """Every line of a log, oldest first: of its closed segments and then of the file itself.

    What is appended meanwhile is left out, and a rotation meanwhile loses nothing. Files may be gzipped, as
    OPA uploads them. Closed segments that by their names hold nothing behind line `after` are left out.

    Raises:
        DocumentUnreadableError: a file cannot be read, is a store, a pipe or a device, or has a line longer
            than 64 MiB.
    """
    with ExitStack() as stack:
        try:
            current = _opened(stack, path) if path.exists() or not _is_rotated(path) else None
            closed = closed_segments(path)
        except OSError as error:
            raise _unreadable(path, error) from error
        while after and len(closed) > 1 and (first_number(closed[1]) or 0) <= after + 1:
            del closed[0]
        held = None if current is None else os.fstat(current.fileno())
        for segment in closed:
            with ExitStack() as one:
                file = _opened(one, segment)
                # Closed between the two looks: it is the file that is open already.
                if held is None or not os.path.samestat(held, os.fstat(file.fileno())):
                    yield from _lines_of(file, str(segment), None)
        if current is not None and held is not None:
            yield from _lines_of(current, str(path), settled_size(current))


def _is_rotated(path: Path) -> bool:
    """Tell whether a log that has no file of its own name has closed segments: a crash may leave it so."""
    return path.absolute().parent.is_dir() and bool(closed_segments(path))


def _opened(stack: ExitStack, path: Path) -> IO[bytes]:
    """Return a file that can be read from its beginning and has an end; nothing else is waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _AT_ONCE)
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            os.close(descriptor)
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    except OSError as error:
        raise _unreadable(path, error) from error
    file = stack.enter_context(os.fdopen(descriptor, "rb"))
    if not stat.S_ISREG(mode):
        reason = "it is a pipe or a device; copy what it gives into a file, and name that"
        raise DocumentUnreadableError(f"log `{path}` not readable: {reason}", source=str(path))
    return file


def settled_size(file: IO[bytes]) -> int:
    """The size while nobody is in the middle of an append."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows
        return os.fstat(file.fileno()).st_size
    fcntl.flock(file, fcntl.LOCK_SH)
    try:
        return os.fstat(file.fileno()).st_size
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def _lines_of(file: IO[bytes], source: str, size: int | None) -> Iterator[RawLine]:
    try:
        start = file.read(len(_SQLITE))
        file.seek(0)
        if start == _SQLITE:
            reason = f"it is a SQLite file; a store is named with --store sqlite:{source}"
            raise DocumentUnreadableError(f"log not readable: {reason}", source=source)
        packed = start.startswith(_GZIP)
        stream = gzip.GzipFile(fileobj=file) if packed else file
        left = None if packed else size
        number = 0
        while left is None or left > 0:
            data = stream.readline(RAW_BYTES_MAX if left is None else min(left, RAW_BYTES_MAX))
            if not data:
                return
            number += 1
            if len(data) == RAW_BYTES_MAX:
                raise DocumentUnreadableError("line longer than 64 MiB", source=source, line=number)
            left = None if left is None else left - len(data)
            whole = data.endswith(b"\n")
            yield RawLine(source, number, data[:-1] if whole else data, whole)
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(Path(source), error) from error


def _unreadable(path: Path, error: Exception) -> DocumentUnreadableError:
    reason = (getattr(error, "strerror", None) or str(error)).lower()
    if isinstance(error, FileNotFoundError) and _STORE.match(str(path)):
        reason = f"it is the address of a store, which is named with --store {path}"
    return DocumentUnreadableError(f"log not readable: {reason}", source=str(path))
