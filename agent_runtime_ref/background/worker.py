"""BackgroundWorker: what is done about a turn after its reply, never in its way.

One thread takes turns in the order in which they were answered. What fails is told and tried again, with the
next turn and at `drain`. What failed five times for another reason than a store or an engine that is down is
put aside, aloud, and tried again when the runtime is opened the next time. Nothing is given up.

The next turn of a thread has to know what was said before in it, so it waits for the curation (`settle`).
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_runtime_ref.background.candidates import Proposer, conversation_of
from agent_runtime_ref.background.elsewhere import waits_elsewhere
from agent_runtime_ref.background.ends import of_nobody
from agent_runtime_ref.background.jobs import CURATION, ENDED, CuratedIn, Curation, Exchanges, Job, jobs_of
from agent_runtime_ref.background.pending import Pending, PendingFile, Unkept, Waiting, taken_over
from agent_runtime_ref.background.turn import Turn
from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.errors import (
    EngineFailureError,
    SessionStateError,
    StoreError,
    WriteInterruptedError,
)
from agent_runtime_ref.runtime import GovernedMemory
from agent_runtime_ref.telemetry import diagnostics
from agent_runtime_ref.telemetry.agent_spans import origin, working_for
from agent_runtime_ref.telemetry.turns import Told, inside

__all__ = ["ATTEMPTS_MAX", "BackgroundWorker"]

ATTEMPTS_MAX = 5
# More turns than that wait only where the work is slower than the answers; then an answer waits too.
WAITING_MAX = 1_000
LOOK_AGAIN_SECONDS = 0.02  # at what another process does, which tells nobody when it is done
# These pass: what failed by them is not told apart from what was never begun, and waits as long as it takes.
_PASSING = (EngineFailureError, SessionStateError, StoreError, WriteInterruptedError)


@dataclass(slots=True)
class _Task:
    """A turn on the worker's list."""

    waiting: Waiting
    pending: Pending
    told: Told = field(default_factory=Told)
    is_held_up: bool = False  # by what passes, the last time it was tried
    origin: Any = None  # of its spans


class BackgroundWorker:
    """Carries out the work after replies on one thread of its own. Thread-safe; `close` ends it."""

    def __init__(
        self,
        memory: GovernedMemory,
        *,
        curation: Curation | None = None,
        curated_in: CuratedIn | None = None,
        exchanges: Exchanges | None = None,
        propose: Proposer = conversation_of,
        pending: Pending | None = None,
        jobs: Sequence[Job] | None = None,
    ) -> None:
        """Work over `memory`; turns that wait are written down in `pending`, and `jobs` replaces the work.

        `curated_in` says where `curation` keeps standing preferences, if not in `memory`; `exchanges` keep
        what was said in the thread.
        """
        self._memory = memory
        made = jobs_of(memory, propose=propose, curation=curation, curated_in=curated_in, exchanges=exchanges)
        self._jobs = made if jobs is None else tuple(jobs)
        self.pending = Unkept() if pending is None else pending
        self._tasks: deque[_Task] = deque()
        self._failed: deque[_Task] = deque()  # to be tried again
        self._aside: list[_Task] = []  # by the next process
        self._current: _Task | None = None  # that is being worked on
        self._closing = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    def submit(
        self, turn: Turn, *, told: Told | None = None, untold: Mapping[str, Any] | None = None
    ) -> None:
        """Take a turn whose reply has left. `told` also gets the events of its work.

        Where it could not be told how the turn ended, no reply left; then it has that told too, with what is
        `untold` of its context.
        """
        waiting = Waiting(turn, done={ENDED}) if untold is None else Waiting(turn, untold)
        self._add(_Task(waiting, self.pending, told or Told(), origin=origin()))

    def take_over(self, files: Iterable[PendingFile]) -> int:
        """Take the turns that wait in files of processes that died, and return how many there were."""
        count = 0
        for file in files:
            if not file.waiting:
                file.close()
            for one in file.waiting:
                self._add(_Task(one, file))
                count += 1
        return count

    def settle(self, caller: Caller, timeout_seconds: float) -> bool:
        """Wait until what was said before in the caller's thread is curated, and return whether it is.

        What its user said goes before what others said. A curation that failed by itself is not waited for:
        a judge that fails changes nothing. Where a store or an engine keeps it from being done, it is not.
        What another process over the same store was told is waited for too, and taken over if that died.
        """
        until = time.monotonic() + timeout_seconds
        while True:
            if threading.current_thread() is self._thread:
                return True  # work behind a reply would wait for itself
            self._take_over_orphans()
            with self._changed:
                self._own()
                if self._unheard(caller):
                    self._hasten(caller)
                    left = until - time.monotonic()
                    self._changed.wait_for(lambda: not self._unheard(caller, tried=True), max(0.0, left))
                if self._unheard(caller):
                    return False
            if not self._is_unheard_elsewhere(caller):
                return True
            if time.monotonic() >= until:
                return False
            time.sleep(LOOK_AGAIN_SECONDS)

    def drain(self, timeout_seconds: float | None = None) -> bool:
        """Wait until nothing is left to do, and return whether that is so: what failed is tried once more."""
        with self._changed:
            self._own()
            self._retry(len(self._failed))
            idle = self._changed.wait_for(self._is_idle, timeout_seconds)
            return idle and not self._failed and not self._aside

    def close(self) -> None:
        """Do what is left, once, and end the thread; what still fails stays written down."""
        self.drain()
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        for task in (*self._failed, *self._aside):
            task.pending.close()
        self.pending.close()

    def _is_idle(self) -> bool:
        return not self._tasks and self._current is None

    def _unheard(self, caller: Caller, *, tried: bool = False) -> bool:
        """Say whether a turn of the thread still has to be curated; those that were `tried` in vain apart."""
        if all(name != CURATION for name, _ in self._jobs):
            return False
        waiting = [*self._tasks, *(() if self._current is None else (self._current,))]
        held_up = [] if tried else [task for task in self._failed if task.is_held_up]
        return any(
            CURATION not in task.waiting.done and _thread_of(task.waiting.turn.caller) == _thread_of(caller)
            for task in (*waiting, *held_up)
        )

    def _take_over_orphans(self) -> None:
        if self.pending.path is not None:
            self.take_over(taken_over(self.pending.path.parent))

    def _is_unheard_elsewhere(self, caller: Caller) -> bool:
        """Say whether another process still has to curate an answered turn of the thread."""
        path = self.pending.path
        if path is None or all(name != CURATION for name, _ in self._jobs):
            return False

        def is_meant(waiting: Waiting) -> bool:
            turn = waiting.turn
            # What is under way runs beside this turn; what was tried in vain failed by itself.
            is_settled = CURATION in waiting.done or waiting.attempts > 0 or turn.status == "interrupted"
            return not is_settled and _thread_of(turn.caller) == _thread_of(caller)

        return waits_elsewhere(path.parent, path, is_meant)

    def _hasten(self, caller: Caller) -> None:
        """Put what a user said before the rest, in its order, and have what failed of it tried again."""
        user = _thread_of(caller)[:2]
        mine: deque[_Task] = deque()
        rest: tuple[deque[_Task], deque[_Task]] = (deque(), deque())
        for tasks, others in zip((self._failed, self._tasks), rest, strict=True):
            for task in tasks:
                is_mine = _thread_of(task.waiting.turn.caller)[:2] == user
                (mine if is_mine else others).append(task)
        self._failed, self._tasks = rest[0], mine + rest[1]
        if self._tasks:
            self._started()

    def _add(self, task: _Task) -> None:
        with self._changed:
            self._own()
            if self._thread is not threading.current_thread():
                self._changed.wait_for(lambda: len(self._tasks) < WAITING_MAX)
            self._retry(1)  # one: a store that is down must not cost every turn all that waits
            self._tasks.append(task)
            self._started()

    def _own(self) -> None:
        """Begin anew in a forked child: its parent has the thread, and does what was on the list."""
        if os.getpid() != self._pid:
            for pending in {task.pending for task in (*self._tasks, *self._failed, *self._aside)}:
                pending.let_go()
            self.pending.let_go()
            self._tasks.clear()
            self._failed.clear()
            self._aside.clear()
            self._current, self._thread, self._pid = None, None, os.getpid()
            self.pending = self.pending.anew()

    def _started(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="background-worker", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _retry(self, most: int) -> None:
        for _ in range(min(most, len(self._failed))):
            self._tasks.append(self._failed.popleft())
        if self._tasks:
            self._started()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._tasks or self._closing)
                if not self._tasks:
                    return
                task = self._current = self._tasks.popleft()
            failed = True
            try:
                failed = not self._done(task)
            except BaseException as error:  # the thread must outlive whatever a job does
                diagnostics.error("background_worker", reason=type(error).__name__)
            finally:
                with self._changed:
                    if failed:
                        self._failed.append(task)
                    self._current = None
                    self._changed.notify_all()

    def _done(self, task: _Task) -> bool:
        """Do what is left of a turn; say whether nothing is, or nothing can be."""
        turn = task.waiting.turn
        failures: list[tuple[str, Exception]] = []
        with inside(task.told), working_for(task.origin):
            for name, job in self._jobs:
                if name in task.waiting.done:
                    continue
                try:
                    # Not by `subject_mark`, which would give somebody who was forgotten a key again.
                    if self._memory.pseudonym(turn.caller.tenant_id, turn.caller.own_subject) != turn.mark:
                        # Somebody was forgotten after this was said, perhaps while the job before was done;
                        # it must not come back by the back door. That the run ended is told all the same.
                        if name != ENDED:
                            failures = [one for one in failures if one[0] == ENDED]
                            break
                        task.waiting = of_nobody(task.waiting)
                    self._do(task, name, job)
                except Exception as error:
                    failures.append((name, error))
                    if isinstance(error, _PASSING):
                        break  # the jobs behind it would only fail too; else each does without the others
            if failures:
                self._put_off(task, failures)
                return task in self._aside
        self._end(task)
        return True

    def _do(self, task: _Task, name: str, job: Callable[[Waiting], object]) -> None:
        waiting = task.waiting
        task.pending.mark(waiting.turn.turn_id, begun=name)
        waiting.again = name in waiting.begun
        waiting.begun.add(name)
        job(waiting)
        with self._changed:  # somebody may wait for this very job
            waiting.done.add(name)
            self._changed.notify_all()
        task.pending.mark(waiting.turn.turn_id, done=name)

    def _put_off(self, task: _Task, failures: Sequence[tuple[str, Exception]]) -> None:
        """Tell of failures, and leave the turn to the next process where it failed too often."""
        waiting = task.waiting
        task.is_held_up = isinstance(failures[-1][1], _PASSING)
        waiting.attempts += not task.is_held_up
        goes_on = waiting.attempts < ATTEMPTS_MAX
        for name, failure in failures:
            self._tell(waiting, name, failure, "pending" if goes_on else "put_aside")
        if goes_on:
            task.pending.mark(waiting.turn.turn_id, attempts=waiting.attempts)
            return
        waiting.attempts = 0  # the next process may be another version of this one
        before, task.pending = task.pending, task.pending.aside(waiting)
        if task.pending is not before:  # else it lay aside already
            before.finish(waiting.turn.turn_id)
        self._aside.append(task)

    def _tell(self, waiting: Waiting, name: str, failure: Exception, status: str) -> None:
        error_type, attempts = type(failure).__name__, waiting.attempts
        diagnostics.failed(
            "background_failed", failure, job=name, attempts=attempts, status=status, path=_path_of(failure)
        )
        payload = {"job": name, "error.type": error_type, "attempts": attempts, "status": status}
        try:
            self._memory.tell("background_failed", payload, caller=waiting.turn.caller)
        except StoreError as error:  # the log may be what is broken; the work stays pending all the same
            diagnostics.error("background_failed_not_logged", reason=type(error).__name__)

    def _end(self, task: _Task) -> None:
        task.pending.finish(task.waiting.turn.turn_id)


def _path_of(failure: BaseException) -> object:
    """Return which file or store an error is about; None where it does not say."""
    cause = failure.__cause__
    if isinstance(cause, OSError) and cause.filename is not None:
        return cause.filename
    return failure.values.get("store") if isinstance(failure, StoreError) else None


def _thread_of(caller: Caller) -> tuple[str, str, str | None]:
    """Return whose thread a turn is of: tenant, subject and session."""
    return caller.tenant_id, caller.own_subject, caller.session_id
