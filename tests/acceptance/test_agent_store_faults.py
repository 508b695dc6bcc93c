"""A store that fails anywhere in a turn: the turn has one end, in the log, and nothing of it is lost."""

from __future__ import annotations

import functools
import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from agent_runtime_ref import AgentRuntime, GovernedMemory
from agent_runtime_ref.agent import Answer, ToolCall, TurnResult
from agent_runtime_ref.errors import DecisionLogError, StoreError
from agent_runtime_ref.policy.bundle import Bundle, load_bundle
from agent_runtime_ref.policy.engine import PolicyEngine
from agent_runtime_ref.policy.engines import open_engine
from agent_runtime_ref.session_state import Sessions
from agent_runtime_ref.stores.in_memory import InMemoryStore
from agent_runtime_ref.testing import CountedIds, FrozenClock
from tests.constraining import finding
from tests.support import caller, candidate
from tests.turns import Scripted, payloads, told

MESSAGE = "Where do support tickets go?"


class Failing:
    """A store that fails at one call of the thread that made it, whichever method it is of, once switched on.

    The log fails as a log does.
    """

    def __init__(self, at: int) -> None:
        self._inner = InMemoryStore()
        self._at = at
        self._thread = threading.get_ident()
        self.is_on = False
        self.calls = 0
        self.failed = ""

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            if self.is_on and threading.get_ident() == self._thread:
                self.calls += 1
                if self.calls == self._at:
                    self.failed = name
                    raise (DecisionLogError if name == "append_lines" else StoreError)("memory:", "gone")
            return found(*arguments, **options)

        return call


@functools.cache
def policies() -> tuple[Bundle, PolicyEngine]:
    """Return the policies and their engine: one for every memory here, since it is made slowly."""
    bundle = load_bundle()
    return bundle, open_engine("embedded", bundle)


def over(store: Any) -> GovernedMemory:
    """Return a memory over a store, which is closed by nobody."""
    bundle, engine = policies()
    return GovernedMemory(store=store, engine=engine, bundle=bundle, clock=FrozenClock(), ids=CountedIds())


def ends(memory: GovernedMemory) -> tuple[int, int]:
    """Return how many turns began and how many ended, as the logs tell."""
    lines = [json.loads(line) for read in (True, False) for line in memory.log_lines(read=read)]
    count = Counter(line.get("event_type") for line in lines)
    return count["run_start"], count["run_complete"] + count["run_failed"]


def failed_at(place: int, folder: Path) -> tuple[Failing, TurnResult | None, tuple[int, int], bool]:
    """Return the store that failed at a place in a turn, the turn, its beginnings and ends, and its words."""
    store = Failing(place)
    memory = over(store)
    memory.write(candidate(subject="user-42"), caller=caller())
    recalls = Answer(calls=(ToolCall("recall_history", {"query": "tickets"}),))
    model = Scripted(lambda request: Answer("yes") if request.exchanges else recalls)
    sessions = Sessions(memory, folder=folder)
    sessions.merge("session-001", [finding("plastic")], caller=caller())
    result = None
    with AgentRuntime.open(memory, model=model, sessions=sessions) as runtime:
        store.is_on = True
        try:
            result = runtime.run(MESSAGE, caller=caller())
        except DecisionLogError:
            assert store.failed == "append_lines"
        store.is_on = False
        assert runtime.drain()
    kept = any(hit.snippet == MESSAGE for hit in memory.recall("tickets", caller=caller()).hits)
    return store, result, ends(memory), kept


def test_wherever_a_store_fails_the_turn_has_one_end(tmp_path: Path) -> None:
    """A result says that it failed; only a log that fails raises, and then it is told when it can be."""
    for place in range(1, 100):
        store, result, (began, ended), kept = failed_at(place, tmp_path / str(place))
        if not store.failed:
            break
        assert began == ended, (place, store.failed)
        if result is None:
            assert kept == bool(began), (place, store.failed)  # before it is admitted nothing is kept of it
        else:
            assert began == 1
            assert told(result)[0] == "run_start"
            assert result.status == "complete" or payloads(result, "run_failed")[0]["status"] == "failed"
    else:
        raise AssertionError("the turn never came to its end")
    assert place > 15


def test_a_turn_about_which_nothing_can_be_asked_fails_with_its_events() -> None:
    """The store that fails before the precheck is no refusal by a policy, and no traceback."""
    store = Failing(1)
    memory = over(store)
    memory.write(candidate(subject="user-42"), caller=caller())  # what is remembered must be looked at
    model = Scripted(Answer("yes"))
    with AgentRuntime.open(memory, model=model) as runtime:
        store.is_on = True
        result = runtime.run(MESSAGE, caller=caller())
        store.is_on = False
        assert runtime.drain()

    assert (result.status, result.reply, result.manifest, model.asked) == ("failed", "", None, [])
    assert result.error == "store `memory:`: gone"
    assert told(result) == ["run_start", "store_failure", "policy_precheck", "run_failed"]
    assert payloads(result, "run_failed")[0]["error.type"] == "StoreError"
    assert result.decision.effect == "deny"
