"""A thread that looks at something again and again, for as long as its owner lives."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable

from agent_runtime_ref.telemetry import diagnostics

__all__ = ["Watcher"]

EXIT_SECONDS = 5.0
_RUNNING: weakref.WeakSet[Watcher] = weakref.WeakSet()


class Watcher:
    """Calls `look` every so many seconds; a forked child has a thread of its own."""

    def __init__(self, look: Callable[[], None], *, seconds: float) -> None:
        # Weakly, so that a memory that nobody closed can be collected; its thread then ends.
        self._look = weakref.WeakMethod(look)
        self._seconds = seconds
        self._start()
        _RUNNING.add(self)

    def close(self, *, seconds: float | None = None) -> None:
        """Stop, and wait for a look that is under way, no longer than so many seconds."""
        _RUNNING.discard(self)
        self._stopped.set()
        if self._thread is not threading.current_thread():
            self._thread.join(seconds)

    def _start(self) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=_watch, args=(self._look, self._stopped, self._seconds), name="policies", daemon=True
        )
        self._thread.start()


def _watch(look: weakref.WeakMethod[Callable[[], None]], stopped: threading.Event, seconds: float) -> None:
    while not stopped.wait(seconds):
        method = look()
        if method is None:
            return
        try:
            method()
        except Exception as error:  # whatever it was: the next look may succeed
            diagnostics.error("policies_not_watched", reason=type(error).__name__)
        del method


def _stop_all() -> None:
    """End the threads before the interpreter does: it would kill them at their work."""
    for watcher in list(_RUNNING):
        watcher.close(seconds=EXIT_SECONDS)


atexit.register(_stop_all)


def _restart() -> None:
    """Threads do not survive a fork."""
    for watcher in list(_RUNNING):
        watcher._start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restart)
