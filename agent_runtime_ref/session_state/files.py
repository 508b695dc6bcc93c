"""The files of a thread: read whole or not at all, replaced in one step, readable by their owner alone.

A file that cannot be understood is worth as much as none, but it is evidence: it is put aside under a name of
its own and reported, never overwritten.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from agent_runtime_ref.errors import DocumentError, SessionStateError
from agent_runtime_ref.file_sync import sync_folder
from agent_runtime_ref.session_state.places import VARIABLE, Place
from agent_runtime_ref.telemetry import diagnostics

__all__ = ["PT", "TURNS", "folders_in", "found_in", "locked", "put_aside", "read", "remove", "swept", "write"]

PT = "pt.json"
TURNS = "turns.json"
VERSION = 1
_BYTES_MAX = 4 << 20
_ASIDE_MAX = 1000
_VANISHED_MAX = 1000
_Read = TypeVar("_Read")


class DamagedError(Exception):
    """A file is there and cannot be understood; `reason` is one word of ours, never content."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def read(place: Place, name: str, made: Callable[[Mapping[str, Any]], _Read]) -> _Read | None:
    """Return what `made` makes of a file's document; None where there is none.

    Raises:
        DamagedError: the file cannot be understood.
        SessionStateError: it cannot be read at all, which says nothing about what is in it.
    """
    data = _bytes(place.folder / name)
    if data is None:
        return None
    try:
        document = json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refused)
    except (ValueError, RecursionError):
        raise DamagedError("not_json") from None
    version = document.get("version") if isinstance(document, dict) else None
    if type(version) is not int or version != VERSION:
        raise DamagedError("version_unknown")
    if document.get("of") != place.mark:
        raise DamagedError("of_another_thread")
    try:
        return made(document)
    except (DocumentError, LookupError, TypeError, ValueError, AttributeError):
        raise DamagedError("not_a_state") from None


def write(place: Place, name: str, document: Mapping[str, Any]) -> None:
    """Put a document in the place of a file, in one step and on disk; for who holds the lock.

    Raises:
        SessionStateError: it is not; the file is as it was.
    """
    head = {"version": VERSION, "of": place.mark}
    data = json.dumps(head | dict(document), ensure_ascii=False, indent=1, allow_nan=False).encode("utf-8")
    prepared = place.folder / f".{name}.new"
    try:
        with suppress(FileNotFoundError):
            prepared.unlink()  # left by a process that ended in the middle
        descriptor = os.open(prepared, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data + b"\n")
            file.flush()
            os.fsync(descriptor)
        os.replace(prepared, place.folder / name)
        sync_folder(place.folder)
    except OSError as error:
        raise _failed(place.folder / name, error) from error


def folders_in(folder: Path) -> list[str]:
    """Return the names of the folders in a folder, in their order; none where it is not there.

    Raises:
        SessionStateError: it cannot be looked into, which says nothing about what is in it.
    """
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _failed(folder, error) from error


def found_in(place: Place, pattern: re.Pattern[str]) -> list[str]:
    """Return what matches in any file of a thread, damaged ones too, in the order in which it is found.

    Whoever is to be forgotten is not to stay because a file of his was damaged.
    """
    found: dict[str, None] = {}
    try:
        for path in sorted(place.folder.iterdir()):
            if not path.is_symlink() and path.is_file():
                found |= dict.fromkeys(pattern.findall(path.read_bytes().decode("utf-8", "replace")))
    except OSError as error:
        raise _failed(place.folder, error) from error
    return list(found)


def remove(place: Place) -> bool:
    """Remove the folder of a thread with all that is in it; returns whether there was one."""
    try:
        for path in place.folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        place.folder.rmdir()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _failed(place.folder, error) from error
    return True


def put_aside(place: Place, name: str, reason: str) -> Path:
    """Give a damaged file a name of its own, report it, and return that name; for who holds the lock."""
    source = place.folder / name
    for number in range(1, _ASIDE_MAX + 1):
        aside = place.folder / f"{name}.damaged-{number}"
        if not os.path.lexists(aside):
            break
    else:
        raise SessionStateError(
            f"`{place.folder}` holds {_ASIDE_MAX} damaged files; look at them and remove them"
        )
    try:
        os.rename(source, aside)
    except OSError as error:
        raise _failed(source, error) from error
    diagnostics.warning("session_state_damaged", path=str(aside), reason=reason)
    return aside


@contextmanager
def locked(place: Place) -> Iterator[None]:
    """Hold a thread's folder, made where there is none, against every other process and thread.

    Raises:
        SessionStateError: it cannot be made or locked.
    """
    try:
        import fcntl
    except ImportError as error:  # pragma: no cover - Windows
        raise SessionStateError("its files are locked with fcntl, which is missing here") from error
    vanished = 0
    while True:
        try:
            descriptor = _opened(place)
        except FileNotFoundError as error:
            # Somebody removed it, empty or cleared, between its making and its opening; a folder that can
            # never be there fails in the same way.
            vanished += 1
            if vanished == _VANISHED_MAX:
                raise _failed(place.folder, error) from error
            continue
        except OSError as error:
            raise _failed(place.folder, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_current(descriptor, place.folder):
                yield
                return
        finally:
            os.close(descriptor)  # gives up the lock too


@contextmanager
def swept(place: Place) -> Iterator[None]:
    """Leave no empty folder behind where nothing came to be kept; for who holds the lock."""
    try:
        yield
    finally:
        with suppress(OSError):
            place.folder.rmdir()


def _opened(place: Place) -> int:
    for folder in (place.root, place.folder.parent, place.folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in (place.folder.parent, place.folder):
        # Of links nothing good could come: whoever set one decides what is written where.
        if stat.S_ISLNK(folder.lstat().st_mode):
            raise SessionStateError(f"`{folder}` is a link; remove it")
        if stat.S_IMODE(folder.lstat().st_mode) != 0o700:
            folder.chmod(0o700)
    return os.open(place.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _is_current(descriptor: int, folder: Path) -> bool:
    """Tell whether the folder still has its name: it may have been cleared while we waited."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(folder))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _failed(folder, error) from error


def _bytes(path: Path) -> bytes | None:
    """Return the bytes of a file; a link, a folder or a pipe of its name is damage."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        if os.path.islink(path):  # False too where its folder may not be searched
            raise DamagedError("not_a_file") from None
        raise _failed(path, error) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)  # of a folder no file can be made, not even to be closed
        raise DamagedError("not_a_file")
    with open(descriptor, "rb") as file:
        owner = _owner(path.parent)
        if owner is None:
            return None  # cleared since the file was opened
        if status.st_uid != owner:
            raise DamagedError("not_the_owners")  # somebody else put it there
        if status.st_size > _BYTES_MAX:
            raise DamagedError("too_large")
        return file.read(_BYTES_MAX + 1)


def _owner(folder: Path) -> int | None:
    """Return whose a folder is; None where it is not there any more."""
    try:
        return folder.stat().st_uid
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _failed(folder, error) from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a name stands twice")
    return document


def _refused(constant: str) -> Any:
    raise ValueError(constant)


def _failed(path: Path, error: OSError) -> SessionStateError:
    remedy = ""
    if error.errno in (errno.EACCES, errno.EPERM):
        remedy = f"; have its owner let you read and write there, or name another folder with {VARIABLE}"
    return SessionStateError(f"`{path}`: {(error.strerror or str(error)).lower()}{remedy}")
