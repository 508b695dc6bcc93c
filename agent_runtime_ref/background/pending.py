"""Turns whose work is not done yet, in a file that outlives the process that answered them.

Each process appends to a file of its own, which it keeps locked; a file without a holder belongs to a process
that died, and whoever opens the runtime next takes it over. Lines reach the operating system before a reply
leaves, so a killed process loses nothing; as with the log of reads, a power cut may take the last moments.
A file holds what people said, so it is readable by its owner only, and is emptied as soon as nothing waits.
"""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from agent_runtime_ref.background.turn import Turn, turn_document, turn_of
from agent_runtime_ref.clock import Ids
from agent_runtime_ref.errors import GovernanceError, StoreCapabilityError, StoreError
from agent_runtime_ref.telemetry import diagnostics

__all__ = ["Pending", "PendingFile", "Unkept", "Waiting", "forget_waiting", "taken_over"]

SUFFIX = ".pending"
_DAMAGED = ".damaged"
_ATTEMPTS = 50
_ATTEMPT_SECONDS = 0.002
NOT_OURS = (ValueError, TypeError, KeyError, AttributeError, GovernanceError)


@dataclass(slots=True)
class Waiting:
    """A turn that waits, with what has been done about it."""

    turn: Turn
    built: Mapping[str, Any] | None = None  # the payload of `context_layers_built`
    done: set[str] = field(default_factory=set)
    begun: set[str] = field(default_factory=set)  # steps that were under way
    # Whether the step that is being done was begun before, perhaps by a process that died.
    again: bool = False
    attempts: int = 0


class Pending(Protocol):
    """Where it is written down which turns still have work to be done."""

    @property
    def path(self) -> Path | None:
        """The file, also before it is made; None where there is none."""

    def put(self, turn: Turn, built: Mapping[str, Any] | None) -> None:
        """Write down a turn as it stands now; a later one of the same id takes its place."""

    def mark(self, turn_id: str, **facts: str | int) -> None:
        """Write down what happened to a turn: `begun`, `done` or `attempts`."""

    def finish(self, turn_id: str) -> None:
        """Write down that nothing is left to do about a turn."""

    def aside(self, waiting: Waiting) -> Pending:
        """Write a turn down in a place of its own, for the next process; it is left here unfinished."""

    def anew(self) -> Pending:
        """Return a place of its own for a forked child."""

    def let_go(self) -> None:
        """Forget the file in a forked child; it stays the parent's."""

    def close(self) -> None:
        """Give the file up; it goes where nothing waits in it."""


class Unkept:
    """For a store that ends with the process: what waits ends with it too."""

    path = None

    def put(self, turn: Turn, built: Mapping[str, Any] | None) -> None:
        """Keep nothing."""

    def mark(self, turn_id: str, **facts: str | int) -> None:
        """Keep nothing."""

    def finish(self, turn_id: str) -> None:
        """Keep nothing."""

    def aside(self, waiting: Waiting) -> Pending:
        """Keep nothing."""
        return self

    def anew(self) -> Pending:
        """Keep nothing."""
        return self

    def let_go(self) -> None:
        """Hold nothing."""

    def close(self) -> None:
        """Hold nothing."""


class PendingFile:
    """One process's file of turns that wait. Thread-safe."""

    def __init__(self, path: Path, descriptor: int = -1, waiting: Sequence[Waiting] = ()) -> None:
        """Name a file, which is made with the first turn that waits, or take one that `taken_over` found."""
        self.path = path
        self.waiting = tuple(waiting)  # what was found in it
        self._is_found = bool(waiting)
        self._descriptor = descriptor
        self._open = {one.turn.turn_id for one in waiting}
        self._lock = threading.Lock()

    @classmethod
    def in_folder(cls, folder: Path, ids: Ids) -> PendingFile:
        """Return a file of its own for this process."""
        return cls(folder / (ids.new("proc") + SUFFIX))

    def put(self, turn: Turn, built: Mapping[str, Any] | None) -> None:
        """Write down a turn as it stands now.

        Raises:
            StoreError: it cannot be written.
        """
        with self._lock:
            if self._descriptor < 0:
                self._descriptor = _made(self.path)
            self._append({"turn": turn_document(turn), "built": built})
            self._open.add(turn.turn_id)

    def mark(self, turn_id: str, **facts: str | int) -> None:
        """Write down what happened to a turn."""
        with self._lock:
            if turn_id in self._open:
                self._append({"turn_id": turn_id, **facts})

    def finish(self, turn_id: str) -> None:
        """Write down that nothing is left to do about a turn; the last one empties the file."""
        with self._lock:
            if turn_id not in self._open:
                return
            self._open.discard(turn_id)
            if self._open:
                self._append({"turn_id": turn_id, "finished": True})
                return
            self._failing(lambda: os.ftruncate(self._descriptor, 0))
        if self._is_found:
            self.close()  # nobody puts anything into the file of a process that died

    def aside(self, waiting: Waiting) -> PendingFile:
        """Return the file of this turn alone, written now or when it was put aside before."""
        path = self.path.with_name(waiting.turn.turn_id + SUFFIX)
        return self if path == self.path else _copied(waiting, path)

    def anew(self) -> PendingFile:
        """Return a file of its own for a forked child."""
        return PendingFile(self.path.with_name(f"{self.path.stem}-{os.getpid()}{SUFFIX}"))

    def let_go(self) -> None:
        """Close the file in a forked child; it stays the parent's, and locked.

        Left open it would be locked for as long as the child lives, and nobody could take over what a dead
        parent left.
        """
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def drop(self, dropped: Collection[str]) -> None:
        """Throw turns away, their words too; what waits besides is put into files of its own first."""
        for one in self.waiting:
            if one.turn.turn_id not in dropped:
                self._beside(one).close()
        with self._lock:
            self._open.clear()
            self._failing(lambda: os.ftruncate(self._descriptor, 0))
        self.close()

    def _beside(self, waiting: Waiting) -> PendingFile:
        """Return a file of a turn alone that is not this one, even where this one is of that turn alone."""
        aside = self.aside(waiting)
        name = f"{waiting.turn.turn_id}-kept{SUFFIX}"
        return _copied(waiting, self.path.with_name(name)) if aside is self else aside

    def close(self) -> None:
        """Give the file up; it is removed where nothing waits in it, and its folder where that is empty."""
        with self._lock:
            if self._descriptor < 0:
                return
            if not self._open:
                self.path.unlink(missing_ok=True)
                with suppress(OSError):  # another process has a file there
                    self.path.parent.rmdir()
            os.close(self._descriptor)
            self._descriptor = -1

    def _append(self, entry: Mapping[str, Any]) -> None:
        line = json.dumps(entry, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        self._failing(lambda: _written(self._descriptor, line))

    def _failing(self, act: Callable[[], object]) -> None:
        try:
            act()
        except OSError as error:
            raise _unkept(self.path, error) from error


def _copied(waiting: Waiting, path: Path) -> PendingFile:
    """Return a file into which a turn was written as it stands."""
    file = PendingFile(path)
    file.put(waiting.turn, waiting.built)
    # What was begun is told too: whoever takes it up must know that it is done again.
    for name in sorted(waiting.begun):
        file.mark(waiting.turn.turn_id, begun=name)
    for name in sorted(waiting.done):
        file.mark(waiting.turn.turn_id, done=name)
    if waiting.attempts:
        file.mark(waiting.turn.turn_id, attempts=waiting.attempts)
    return file


def _made(path: Path) -> int:
    """Return the descriptor of a file that this process holds, made where there is none."""
    try:
        for _ in range(_ATTEMPTS):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # another process has just removed the folder, which was empty
                descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
                # Before it is locked it looks like that of a process that died, and may have been removed.
                if _locked(descriptor) and _is_still(path, descriptor):
                    return descriptor
                os.close(descriptor)
                time.sleep(_ATTEMPT_SECONDS)
        raise OSError(errno.EBUSY, "others take it away again and again")
    except OSError as error:
        raise _unkept(path, error) from error


def _unkept(path: Path, error: OSError) -> StoreError:
    return StoreError(str(path), f"work that waits cannot be kept: {error.strerror}")


def taken_over(folder: Path) -> Iterator[PendingFile]:
    """Yield the files of processes that died, locked, each with the turns that wait in it."""
    if not folder.is_dir():
        return
    for path in sorted(folder.glob("*" + SUFFIX)):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW)
        except OSError:
            continue  # its holder has just removed it, or it is nobody's file
        if not _locked(descriptor) or not _is_still(path, descriptor):
            os.close(descriptor)
            continue
        try:
            waiting = _found(path)
        except BaseException:
            os.close(descriptor)
            raise
        yield PendingFile(path, descriptor, waiting)


def forget_waiting(
    folder: Path, tenant_id: str, subject: str, *, end: Callable[[Waiting], object] | None = None
) -> int:
    """Throw away what waits about a person in files of processes that died; returns how many turns that were.

    Each of them is given to `end` first, to be told as ended; where that fails it goes all the same, aloud.

    A process that lives does its own in a moment, or throws it away when it sees that somebody was forgotten.
    Every such file is written anew, with what waits about others: finished turns, and lines that nobody can
    read, stand in it until then. Whose the lines are that lie aside cannot be told, so they go too, aloud.
    """
    count = 0
    for file in taken_over(folder):
        about = {
            one.turn.turn_id
            for one in file.waiting
            if (one.turn.caller.tenant_id, one.turn.caller.own_subject) == (tenant_id, subject)
        }
        count += len(about)
        for one in file.waiting:
            if end is not None and one.turn.turn_id in about:
                _ended(one, end)
        try:
            file.drop(about)
        finally:
            file.close()
    for path in sorted(folder.glob("*" + _DAMAGED)):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(str(path), f"it cannot be removed: {error.strerror}") from error
        diagnostics.warning("pending_work_damaged_removed", path=str(path))
    with suppress(OSError):  # something waits there, or there is no such folder
        folder.rmdir()
    return count


def _ended(waiting: Waiting, end: Callable[[Waiting], object]) -> None:
    try:
        end(waiting)
    except GovernanceError as error:
        diagnostics.failed("turn_end_not_told", error)


def _found(path: Path) -> list[Waiting]:
    """Return what waits in a file, oldest first; what is no line of ours is kept aside and told."""
    waiting: dict[str, Waiting] = {}
    damaged: list[bytes] = []
    # The last line is empty, or was being written when the process died: then nothing was promised by it.
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            applied(waiting, json.loads(line))
        except NOT_OURS:
            damaged.append(line + b"\n")
    if damaged:
        aside = path.with_suffix(_DAMAGED)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with os.fdopen(os.open(aside, flags, 0o600), "wb") as file:
            file.writelines(damaged)
        diagnostics.error("pending_work_damaged", path=str(aside), lines=len(damaged))
    return list(waiting.values())


def applied(waiting: dict[str, Waiting], entry: Mapping[str, Any]) -> None:
    """Change what waits as a line of a file says.

    Raises:
        one of `NOT_OURS`: it is no line of ours.
    """
    if "turn" in entry:
        turn = turn_of(entry["turn"])
        before = waiting.get(turn.turn_id)
        built = entry["built"]
        if built is not None and not isinstance(built, dict):
            raise ValueError("the context is no mapping")
        waiting[turn.turn_id] = (
            Waiting(turn, built) if before is None else replace(before, turn=turn, built=built)
        )
        return
    turn_id = entry["turn_id"]
    if entry.get("finished"):
        waiting.pop(turn_id, None)
    elif turn_id in waiting:
        one = waiting[turn_id]
        one.begun |= {entry["begun"]} if isinstance(entry.get("begun"), str) else set()
        one.done |= {entry["done"]} if isinstance(entry.get("done"), str) else set()
        one.attempts = max(one.attempts, int(entry.get("attempts", 0)))


def _locked(descriptor: int) -> bool:
    """Lock a file for this process, if nobody holds it; say whether it is ours now."""
    try:
        import fcntl
    except ImportError as error:  # pragma: no cover - Windows
        raise StoreCapabilityError("pending", "this platform has no lock that dies with a process") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_still(path: Path, descriptor: int) -> bool:
    """Say whether a file still has the name under which it was opened."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def _written(descriptor: int, data: bytes) -> None:
    """Append a line, whole or not at all: half of one would make the next one unreadable too."""
    size = os.fstat(descriptor).st_size
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, size)
        raise
