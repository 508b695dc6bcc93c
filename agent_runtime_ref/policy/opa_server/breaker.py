"""When not to ask at all: a server that failed several times running is left alone for a while."""

from __future__ import annotations

import threading
from collections.abc import Callable

from agent_runtime_ref.errors import EngineFailureError

__all__ = ["FAILURES_MAX", "PAUSE_NS", "Breaker"]

FAILURES_MAX = 5
PAUSE_NS = 1_000_000_000


class Breaker:
    """Closed (ask), open (refuse at once), half open (one probe asks, the others are refused).

    Every `enter` that returns is followed by exactly one of `succeeded`, `failed` and `abandoned`.
    """

    def __init__(self, monotonic_ns: Callable[[], int]) -> None:
        self._monotonic_ns = monotonic_ns
        self._lock = threading.Lock()
        self._failures = 0
        self._opened_ns: int | None = None  # None: closed
        self._probing = False

    def enter(self) -> bool:
        """Return whether this call is the probe of a half-open breaker.

        Raises:
            EngineFailureError: reason engine_breaker_open.
        """
        if self._opened_ns is None:  # nearly always, and then without the lock
            return False
        with self._lock:
            return self._probe(self._opened_ns)

    def _probe(self, opened_ns: int | None) -> bool:
        if opened_ns is None:  # closed by another thread meanwhile
            return False
        if self._probing or self._monotonic_ns() - opened_ns < PAUSE_NS:
            raise EngineFailureError("engine_breaker_open", "the server failed; it is asked again soon")
        self._probing = True
        return True

    def succeeded(self, *, probe: bool) -> None:
        """The server answered."""
        if self._failures == 0 and not probe:
            return
        with self._lock:
            # A call that began before the breaker opened says nothing about now.
            if probe or self._opened_ns is None:
                self._failures = 0
                self._opened_ns = None
                self._probing = self._probing and not probe

    def failed(self, *, probe: bool) -> None:
        """The server did not answer, or not as an OPA does."""
        with self._lock:
            self._failures += 1
            if probe:
                self._probing = False
                self._opened_ns = self._monotonic_ns()
            elif self._opened_ns is None and self._failures >= FAILURES_MAX:
                self._opened_ns = self._monotonic_ns()

    def abandoned(self, *, probe: bool) -> None:
        """The call ended without saying anything about the server."""
        if probe:
            with self._lock:
                self._probing = False
