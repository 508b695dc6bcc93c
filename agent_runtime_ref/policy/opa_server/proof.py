"""Which policies the server runs: compared with the local bundle before an answer is believed.

The gates here work by the settings and detectors of the local bundle; a server that decides by others would
make them and the decision log say what is not so. Every answer names the revision of the server's bundles. A
revision says what somebody wrote into a manifest, so the modules and the settings themselves are compared as
well: once, again whenever a connection was made, since that is when another server may have answered, and
again from time to time, since a server may take other policies under the revision of before.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

from agent_runtime_ref.errors import EngineFailureError
from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.policy.manifest import UNVERSIONED
from agent_runtime_ref.policy.opa_server.calls import Call
from agent_runtime_ref.policy.opa_server.replies import Asking
from agent_runtime_ref.policy.opa_server.settings import OpaBundle

__all__ = ["Proof", "expected_revision"]

COMPARISON_SECONDS = 10.0
# After so long the next call has the content compared again, and does not wait for it: an OPA takes a fifth
# of a second to tell all it has. After twice as long nothing is believed before that is done.
RENEWAL_NS = 30_000_000_000
_SHOWN_MAX = 100


class _Comparison:
    """One comparison under way, and how it ended."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.failure: EngineFailureError | None = None


class Proof:
    """What is known about the policies behind one client. Thread-safe."""

    def __init__(
        self, asking: Asking, bundle: Bundle, wanted: OpaBundle, monotonic_ns: Callable[[], int]
    ) -> None:
        self._asking = asking
        self._monotonic_ns = monotonic_ns
        self._bundle = bundle
        self._wanted = wanted
        self._revision = expected_revision(bundle, wanted)
        self._lock = threading.Lock()
        # INVARIANT: connections up to this number lead to a server whose content has been compared.
        self._proven = -1
        self._proven_ns = 0  # when the comparison began that found it so
        self._running: _Comparison | None = None

    def require(self, call: Call) -> None:
        """Return if the server behind every connection so far runs the local bundle.

        Raises:
            EngineFailureError: reason bundle_mismatch, or why the server could not be asked.
        """
        if self._wanted.check != "content":
            return
        while (age := self._age_ns()) > RENEWAL_NS or self._proven != self._asking.connections.made:
            comparison = self._comparison()
            if age <= 2 * RENEWAL_NS and self._proven == self._asking.connections.made:
                return
            if not comparison.ended.wait(max(call.left, 0)):
                raise call.passed()
            if comparison.failure is not None:
                raise EngineFailureError(comparison.failure.reason, comparison.failure.detail)

    def require_revision(self, answer: Mapping[str, Any]) -> None:
        """Return if an answer names the bundle that was expected.

        Raises:
            EngineFailureError: reason bundle_mismatch.
        """
        if self._wanted.check == "none":
            return
        name, revision = self._wanted.name, self._revision
        provenance = answer.get("provenance")
        bundles = provenance.get("bundles") if isinstance(provenance, dict) else None
        found = {
            key: str(value.get("revision") or UNVERSIONED)
            for key, value in (bundles if isinstance(bundles, dict) else {}).items()
            if isinstance(value, dict)
        }
        held = [found.get(name)] if name is not None else list(found.values())
        if revision in held or (revision == UNVERSIONED and name is None and not found):
            return
        self._proven = -1
        shown = ", ".join(f"{key} {value}" for key, value in sorted(found.items()))[:_SHOWN_MAX] or "none"
        wanted = f"{name} {revision}" if name is not None else revision
        raise EngineFailureError("bundle_mismatch", f"bundle expected: {wanted}; the server has: {shown}")

    def _age_ns(self) -> int:
        """Return how long ago the last comparison began that found the content as here."""
        return self._monotonic_ns() - self._proven_ns

    def _comparison(self) -> _Comparison:
        """Return the comparison under way; one begins where there is none.

        It has a thread and a deadline of its own: to list all policies may take longer than a decision may,
        and a comparison that ended with whoever asked first would then never come to its end.
        """
        with self._lock:
            if self._running is None:
                comparison = _Comparison()
                compare = partial(self._compare, comparison)
                # Kept only once it runs: a machine without threads to spare now may have one soon.
                try:
                    threading.Thread(target=compare, name="opa-proof", daemon=True).start()
                except RuntimeError as error:
                    raise EngineFailureError("engine_exception", str(error)) from error
                self._running = comparison
            return self._running

    def _compare(self, comparison: _Comparison) -> None:
        connections, began_ns = self._asking.connections.made, self._monotonic_ns()
        call = Call(COMPARISON_SECONDS, self._asking.connections)
        try:
            self._compare_modules(call)
            self._compare_data(call)
            # What this call connected to is what it compared; what others connected meanwhile is not.
            self._proven, self._proven_ns = connections + call.made, began_ns
        except EngineFailureError as failure:
            self._proven = -1
            comparison.failure = failure
        except Exception as error:
            self._proven = -1
            comparison.failure = EngineFailureError("engine_exception", type(error).__name__)
        finally:
            with self._lock:
                self._running = None
            comparison.ended.set()

    def _compare_modules(self, call: Call) -> None:
        """Return if the server has our modules, and nothing else in the packages that they belong to."""
        ours = Counter(text for _, text in self._bundle.modules)
        theirs = list(_modules(self._asking.fetched("policies", call)))
        missing = ours - Counter(text for _, _, text in theirs)
        if missing:
            name = next(path for path, text in self._bundle.modules if text in missing)
            raise _other(f"{sum(missing.values())} modules are not as here, `{name}` among them")
        tops = {package[:1] for _, package, text in theirs if text in ours}
        for name, package, text in theirs:
            if text in ours:
                ours[text] -= 1
                surplus = ours[text] < 0
            else:
                # No module of ours names a package of tests, or it would be here; so it decides nothing.
                surplus = package[:1] in tops and not package[-1].endswith("_test")
            if surplus:
                raise _other(f"it also has `{name[-_SHOWN_MAX:]}`")

    def _compare_data(self, call: Call) -> None:
        for place, value in _places(json.loads(self._bundle.data_json)):
            answer = self._asking.fetched("/".join(["data", *(quote(part, safe="") for part in place)]), call)
            theirs = answer.get("result") if isinstance(answer, dict) else None
            if _canonical(theirs) != _canonical(value):
                raise _other(f"data.{'.'.join(place)} is not as here")


def expected_revision(bundle: Bundle, wanted: OpaBundle) -> str:
    """Return the revision that the server's bundle must have."""
    return bundle.revision if wanted.revision is None else wanted.revision


def _modules(answer: Any) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Give name, package and text of each module that the server lists.

    Raises:
        EngineFailureError: reason engine_malformed, this is no list of modules.
    """
    try:
        for module in answer["result"]:
            package = tuple(str(part["value"]) for part in module["ast"]["package"]["path"][1:])
            yield str(module["id"]), package or ("",), str(module["raw"])
    except (KeyError, TypeError, IndexError) as error:
        raise EngineFailureError("engine_malformed", "the server's list of its policies is none") from error


def _places(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Give the parts of the data that can be asked for without evaluating a package of rules."""
    for top, part in data.items():
        if isinstance(part, dict):
            for name, value in part.items():
                yield (top, name), value
        else:
            yield (top,), part


def _canonical(value: Any) -> str:
    """Return the value as text; true and 1, equal to Python, are not the same."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _other(what: str) -> EngineFailureError:
    return EngineFailureError("bundle_mismatch", f"the server runs other policies: {what}")
