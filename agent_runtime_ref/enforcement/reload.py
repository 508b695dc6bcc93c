"""The gates in force, and how those of another bundle take their place while calls are under way.

All that is made from a bundle is made, and tried, before anything changes; then one reference is replaced. A
call that began before ends under the policies it began with. A bundle that cannot be used changes nothing but
raises an alarm.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass

from agent_runtime_ref.enforcement.gates import Gates, gates_of
from agent_runtime_ref.errors import BundleError, StoreError, UsageError
from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.policy.bundle_files import Content
from agent_runtime_ref.policy.engine import PolicyEngine
from agent_runtime_ref.policy.golden import check_golden
from agent_runtime_ref.policy.source import PolicySource
from agent_runtime_ref.policy.watch import Watcher
from agent_runtime_ref.telemetry import diagnostics

__all__ = ["SERVER_SECONDS", "PolicyOrigin", "PolicyReload"]

# For so long an engine elsewhere may still have the old policies before that is an alarm: OPA itself looks
# for new bundles every one or two minutes.
SERVER_SECONDS = 300
# What was refused may become good without changing (a key, a log): it is tried again, but not at each look.
RESTS = 20
SECONDS_MIN, SECONDS_MAX = 0.01, 86_400
_OWN_REASONS = frozenset({"bundle_missing", "bundle_tampered", "settings_malformed"})


@dataclass(frozen=True, slots=True)
class PolicyOrigin:
    """Where the policies came from, how an engine is made of them, and what was there at the time."""

    source: PolicySource
    engine_of: Callable[[Bundle], PolicyEngine]
    mark: str  # of the content that was taken


class PolicyReload:
    """Holds the gates in force. Thread-safe; whoever uses `current` takes it once for all of a call."""

    def __init__(self, gates: Gates, origin: PolicyOrigin | None) -> None:
        """Begin with `gates`; without an origin they stay in force."""
        self.current = gates
        self._origin = origin
        # INVARIANT: a lock is of one process; in a forked child nobody would release one that was held.
        self._locks: dict[int, threading.Lock] = {os.getpid(): threading.Lock()}
        self._closed = False
        self._taken = self._seen = None if origin is None else origin.mark  # `_seen`: by the last look
        self._told: tuple[str, str] | None = None  # content and failure that the last alarm was about
        self._waiting_since: int | None = None
        self._rests = 0  # looks until refused content is tried again
        self._watcher: Watcher | None = None

    def watch(self, seconds: float) -> None:
        """Look for other policies every so many seconds, until `close`.

        Raises:
            UsageError: that is no time to wait.
        """
        if not SECONDS_MIN <= seconds <= SECONDS_MAX:
            raise UsageError(f"policies are looked for every {SECONDS_MIN} to {SECONDS_MAX} seconds")
        self._watcher = Watcher(self._look, seconds=seconds)

    def close(self) -> None:
        """Stop looking, and wait for a change that is under way: what is in force then stays so."""
        if self._watcher is not None:
            self._watcher.close()
        with self._own_lock():
            self._closed = True

    def reload(self) -> bool:
        """Take the policies that are at the source now; return whether they are others than before.

        Raises:
            BundleError: they cannot be used; what was in force stays in force.
            UsageError: the verification key cannot be read, or nobody said where policies come from.
            StoreError: the change cannot be written down, so it did not happen.
        """
        if self._origin is None:
            raise UsageError("this memory was given its policies, and not a place to take others from")
        with self._own_lock():
            try:
                return self._take(self._origin, self._origin.source.settled())
            except Exception as error:
                if not self._closed:
                    self._alarm(error)
                raise

    def _look(self) -> None:
        """Take other policies once two looks found the same: between them nobody was writing."""
        assert self._origin is not None
        with self._own_lock():
            found: Content | BundleError
            try:
                found = self._origin.source.content()
                mark = found.mark
            except BundleError as error:
                found, mark = error, error.detail
            settled, self._seen = mark == self._seen, mark
            if mark == self._taken or not settled:
                self._settle()
            elif self._rests > 0:
                self._rests -= 1
            else:
                self._try(self._origin, found, mark)

    def _try(self, origin: PolicyOrigin, found: Content | BundleError, mark: str) -> None:
        try:
            if isinstance(found, BundleError):
                raise found
            self._take(origin, found)
        except Exception as error:
            self._report(mark, error)

    def _take(self, origin: PolicyOrigin, content: Content) -> bool:
        old = self.current
        if self._closed:
            raise StoreError(old.surroundings.store.url, "the memory was closed meanwhile; open it again")
        bundle = origin.source.bundle(content)
        if bundle.identity != old.bundle.identity:
            self.current = self._gates_of(bundle, origin.engine_of(bundle), old)
            # The last call under the old policies ends them: nothing but such calls still refers to this.
            weakref.finalize(old.point, old.engine.close).atexit = False
        self._taken = self._seen = content.mark
        self._settle()
        return self.current is not old

    def _settle(self) -> None:
        """Forget what was wrong with content that is not there any more."""
        self._told = self._waiting_since = None
        self._rests = 0

    def _gates_of(self, bundle: Bundle, engine: PolicyEngine, old: Gates) -> Gates:
        """Return the gates under `bundle`, ready, and written down as the ones to come."""
        try:
            check_golden(engine.evaluate)
            gates = gates_of(bundle, engine, old.surroundings)
            gates.recorder.replaced(old.bundle.digest)
        except BaseException:
            engine.close()
            raise
        return gates

    def _report(self, mark: str, error: Exception) -> None:
        """Raise the alarm once for each content and failure, and not while a server is merely behind."""
        reason = getattr(error, "reason", type(error).__name__)
        if isinstance(error, BundleError) and self.current.engine.name != "embedded" and self._waits(error):
            return
        self._rests = RESTS
        if self._told != (mark, reason):
            self._told = (mark, reason)
            self._alarm(error)

    def _waits(self, error: BundleError) -> bool:
        """Say whether the engine is elsewhere and may still be about to follow."""
        if error.reason in _OWN_REASONS:
            return False
        now = self.current.surroundings.clock.monotonic_ns()
        if self._waiting_since is None:
            self._waiting_since = now
            diagnostics.warning("policies_waiting", reason=error.reason, detail=error.detail)
        return now - self._waiting_since < SERVER_SECONDS * 1_000_000_000

    def _alarm(self, error: Exception) -> None:
        self.current.recorder.not_replaced(error)

    def _own_lock(self) -> threading.Lock:
        """Return the lock of this process; where two threads of a child make one, `setdefault` keeps one."""
        lock = self._locks.get(os.getpid())
        return self._locks.setdefault(os.getpid(), threading.Lock()) if lock is None else lock
