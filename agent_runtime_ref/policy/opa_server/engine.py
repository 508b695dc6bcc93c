"""The OPA server engine: one question over HTTP, and nothing believed that is not a clear answer.

What may go wrong each has a reason of its own, and all of them are refusals. Nothing is retried here: a
decision that did not come is refused, and the caller may ask again.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from agent_runtime_ref.errors import EngineFailureError, UsageError
from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.policy.engine import ASYNC_CALLER, ENTRYPOINTS, BundleIdentity
from agent_runtime_ref.policy.input_bounds import check_size
from agent_runtime_ref.policy.manifest import UNVERSIONED
from agent_runtime_ref.policy.opa_server.breaker import Breaker
from agent_runtime_ref.policy.opa_server.calls import Call
from agent_runtime_ref.policy.opa_server.proof import Proof, expected_revision
from agent_runtime_ref.policy.opa_server.replies import Asking, Question
from agent_runtime_ref.policy.opa_server.server import OpaServer
from agent_runtime_ref.policy.opa_server.settings import OpaSettings

__all__ = ["OpaServerEngine"]

UNVERIFIED = "unverified"
# What says that the server is not well, rather than that it answered something unwelcome.
_SERVER_FAILED = frozenset(
    {
        "engine_timeout",
        "engine_unreachable",
        "engine_http_error",
        "engine_malformed",
        "engine_answer_too_large",
    }
)


class OpaServerEngine:
    """Asks an OPA server. Thread-safe; a forked child makes connections of its own.

    Calls of `AsyncGovernedMemory` go through the client for asyncio, all others through the one for threads.
    """

    name = "opa"

    def __init__(
        self,
        bundle: Bundle,
        server: OpaServer,
        settings: OpaSettings,
        *,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Make ready to ask; a server that is not there yet is asked again by the first decision.

        Raises:
            UsageError: the settings ask to compare a revision that nobody has named.
        """
        self.bundle = bundle
        self.identity = _identity(bundle, settings)
        self._server = server
        self._settings = settings
        self._seconds = settings.deadline_ms / 1000
        self._monotonic_ns = monotonic_ns
        self._closed = False
        # INVARIANT: locks and sockets are of one process. The states of others are never touched.
        self._states: dict[int, _State] = {}
        with contextlib.suppress(EngineFailureError):
            self._state().line(asynchronous=False).proven(self._seconds)

    def evaluate(self, entrypoint: str, document: str) -> dict[str, Any]:
        """Return the decision document of `entrypoint` for `document`, a JSON text.

        Raises:
            EngineFailureError: there is no clear answer within the deadline; nothing may be done.
        """
        if self._closed:
            raise EngineFailureError("engine_exception", "the engine is closed")
        if entrypoint not in ENTRYPOINTS:
            raise EngineFailureError("engine_undefined", f"no entrypoint `{entrypoint}`")
        check_size(document)
        state = self._state()
        probe = state.breaker.enter()
        try:
            answer = state.line(ASYNC_CALLER.get()).asked(entrypoint, document, self._seconds)
        except EngineFailureError as failure:
            settled = state.breaker.failed if failure.reason in _SERVER_FAILED else state.breaker.succeeded
            settled(probe=probe)
            raise
        except BaseException as error:
            state.breaker.abandoned(probe=probe)
            if isinstance(error, Exception):
                raise EngineFailureError("engine_exception", type(error).__name__) from error
            raise
        state.breaker.succeeded(probe=probe)
        return answer

    def close(self) -> None:
        """Refuse from now on, and give this process's sockets back."""
        self._closed = True
        state = self._states.get(os.getpid())
        if state is not None:
            state.close()

    def _state(self) -> _State:
        state = self._states.get(os.getpid())
        if state is None:
            # Two threads of a forked child may both get here; `setdefault` lets one of them win.
            made = _State(self.bundle, self._server, self._settings, self._monotonic_ns)
            state = self._states.setdefault(os.getpid(), made)
        return state


class _Line:
    """One client and what is known about the policies behind it."""

    def __init__(
        self, asking: Asking, bundle: Bundle, settings: OpaSettings, monotonic_ns: Callable[[], int]
    ) -> None:
        self.asking = asking
        self._proof = Proof(asking, bundle, settings.bundle, monotonic_ns)

    def proven(self, seconds: float) -> None:
        """Return if the server runs the bundle, within so many seconds.

        Raises:
            EngineFailureError: reason bundle_mismatch, or why nobody could tell.
        """
        self._proof.require(Call(seconds, self.asking.connections))

    def asked(self, entrypoint: str, document: str, seconds: float) -> dict[str, Any]:
        """Return the server's decision.

        Raises:
            EngineFailureError: there is none within so many seconds, or none of the right shape and bundle.
        """
        call = Call(seconds, self.asking.connections)
        self._proof.require(call)
        answer = self.asking.decision(entrypoint, Question.of(document, call))
        if not isinstance(answer, dict):
            raise EngineFailureError("engine_wrong_type", f"the answer is a {type(answer).__name__}")
        # Asked anew, this time over a connection that did not exist before, or by a bundle loaded since.
        self._proof.require(call)
        self._proof.require_revision(answer)
        if "result" not in answer:
            raise EngineFailureError("engine_undefined", f"data.{entrypoint}.decision")
        result = answer["result"]
        if not isinstance(result, dict):
            raise EngineFailureError("engine_wrong_type", type(result).__name__)
        return result


class _State:
    """What one process holds: its breaker, and its clients once they are needed."""

    def __init__(
        self, bundle: Bundle, server: OpaServer, settings: OpaSettings, monotonic_ns: Callable[[], int]
    ) -> None:
        self.breaker = Breaker(monotonic_ns)
        self._made: dict[bool, _Line] = {}
        self._making = threading.Lock()
        self._closed = False
        self._bundle = bundle
        self._server = server
        self._settings = settings
        self._monotonic_ns = monotonic_ns

    def line(self, asynchronous: bool) -> _Line:
        """Return the client for threads, or the one for asyncio.

        Raises:
            EngineFailureError: the engine is closed.
        """
        found = self._made.get(asynchronous)
        if found is not None:
            return found
        with self._making:
            if self._closed:
                raise EngineFailureError("engine_exception", "the engine is closed")
            if asynchronous not in self._made:
                asking = _new_asking(self._server, asynchronous)
                self._made[asynchronous] = _Line(asking, self._bundle, self._settings, self._monotonic_ns)
            return self._made[asynchronous]

    def close(self) -> None:
        """Close the clients."""
        with self._making:
            self._closed = True
            for line in self._made.values():
                line.asking.close()


def _new_asking(server: OpaServer, asynchronous: bool) -> Asking:
    """Return a client; its libraries take a third of a second to import, so only now."""
    if asynchronous:
        from agent_runtime_ref.policy.opa_server.loop_wire import LoopWire

        return LoopWire(server)
    from agent_runtime_ref.policy.opa_server.wire import Wire

    return Wire(server)


def _identity(bundle: Bundle, settings: OpaSettings) -> BundleIdentity:
    """Return what decisions say of their policies: no more than is checked.

    Raises:
        UsageError: a revision is to be compared, and there is none.
    """
    wanted = settings.bundle
    revision = expected_revision(bundle, wanted)
    if wanted.check == "revision" and revision == UNVERSIONED:
        raise UsageError("opa bundle check `revision` needs a revision: name it there or in the .manifest")
    return BundleIdentity(bundle.digest, UNVERIFIED if wanted.check == "none" else revision)
