"""A store or an engine that fails is told once, whatever was asked, and the caller hears of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agent_runtime_ref import GovernedMemory, MemoryRecord
from agent_runtime_ref.enforcement.attributes import Inspection
from agent_runtime_ref.enforcement.revise import Revision, Revisions
from agent_runtime_ref.errors import EngineFailureError, RevisionConflictError, StoreError
from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.policy.engines import open_engine
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.testing import CountedIds, FaultyStore, FrozenClock
from tests.reviewing import OPERATOR, REVIEWER, held, opened
from tests.support import caller, candidate, query

Step = Callable[[GovernedMemory, str, str], object]


def _explain(memory: GovernedMemory, active: str, waiting: str) -> object:
    look = Inspection(principal_id="oscar", limit=5)
    return memory.explain(look, query(), operator=OPERATOR, caller=caller())


def _revise(memory: GovernedMemory, active: str, waiting: str) -> object:
    def replaced(shown: Mapping[str, MemoryRecord], at_us: int) -> Revisions:
        return Revisions((Revision(candidate("Other.", key="k", subject="user-42"), "written"),), {}, ("k",))

    return memory.revise("long_term", ("k",), replaced, caller=caller(), purpose="answer_generation")


STEPS: dict[str, tuple[Step, str, int]] = {
    "survey": (lambda memory, _, __: memory.survey(caller=OPERATOR), "examine", 1),
    "log": (lambda memory, _, __: memory.look_into_log(caller=OPERATOR, tenant_id=None), "append_lines", 1),
    "release": (lambda memory, _, one: memory.release(one, caller=REVIEWER, reason="SEC-1"), "queued", 1),
    "reject": (lambda memory, _, one: memory.reject(one, caller=REVIEWER, reason="SEC-1"), "tombstoned", 1),
    "withdraw": (
        lambda memory, one, _: memory.quarantine([one], caller=REVIEWER, reason="SEC-1"),
        "queued",
        1,
    ),
    "put back": (
        lambda memory, one, _: memory.quarantine([one], caller=REVIEWER, reason="SEC-1"),
        "commit",
        1,
    ),
    "descent": (lambda memory, one, _: memory.descent(one, caller=OPERATOR), "children", 1),
    "its inspection": (lambda memory, one, _: memory.descent(one, caller=OPERATOR), "search", 1),
    "revision": (_revise, "search", 1),
    "the look in it": (_revise, "search", 2),
    "write": (lambda memory, _, __: memory.write(candidate("More."), caller=caller()), "commit", 1),
    "read": (lambda memory, _, __: memory.read(query(), caller=caller()), "search", 1),
    "forget": (lambda memory, _, __: memory.forget(subject="user-42", caller=caller()), "forget", 1),
}


def prepared(store: Any) -> tuple[str, str]:
    """Return the ids of an active record under a key and of one in quarantine."""
    first = opened(store, FrozenClock())
    active = first.write(candidate(key="k", subject="user-42"), caller=caller()).record.memory_id
    return active, held(first)


def told(store: Any, name: str) -> int:
    """Return how often the logs tell of an event."""
    lines = [*store.log(True), *store.log(False)]
    return sum(f'"event_type":"{name}"' in line for line in lines)


@pytest.mark.parametrize("name", STEPS)
def test_a_store_that_fails_is_told_once(name: str) -> None:
    """Whatever the gates were doing, there is one event of it."""
    step, method, on_call = STEPS[name]
    inner = open_store("memory:")
    active, waiting = prepared(inner)
    error = StoreError(inner.url, "the disk is full")
    faulty = FaultyStore(inner, method=method, error=error, on_call=on_call)
    with opened(faulty, FrozenClock()) as memory:
        with pytest.raises(StoreError, match="the disk is full"):
            step(memory, active, waiting)
        assert told(inner, "store_failure") == 1


class SilentEngine:
    """The embedded engine, which gives no answer from the n-th question on."""

    def __init__(self, after: int) -> None:
        self._inner = open_engine("embedded", load_bundle())
        self._left = after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def evaluate(self, entrypoint: str, document: str) -> Any:
        """Return the answer, while there are any."""
        self._left -= 1
        if self._left < 0:
            raise EngineFailureError("engine_exception", "gone")
        return self._inner.evaluate(entrypoint, document)


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("survey", 0), ("log", 0), ("release", 0), ("reject", 0), ("withdraw", 0), ("descent", 0),
        ("descent", 3), ("explain", 2), ("write", 0), ("read", 0), ("revision", 2), ("forget", 0),
    ],
)  # fmt: skip
def test_an_engine_that_fails_is_told_once(name: str, after: int) -> None:
    """The refusal is an event and a line, and the error carries its decision."""
    step = _explain if name == "explain" else STEPS[name][0]
    inner = open_store("memory:")
    active, waiting = prepared(inner)
    opened(inner, FrozenClock()).write(
        candidate("Derived.", derived_from=(active,), subject="user-42"), caller=caller()
    )
    with GovernedMemory(
        store=inner, engine=SilentEngine(after), bundle=load_bundle(), clock=FrozenClock(), ids=CountedIds()
    ) as memory:
        with pytest.raises(EngineFailureError) as failed:
            step(memory, active, waiting)
        assert told(inner, "policy_engine_failure") == 1
        lines = [*inner.log(True), *inner.log(False)]
        of_it = [one for one in lines if '"type":"decision"' in one and '"engine_exception"' in one]
        assert [failed.value.decision.decision_id in one for one in of_it] == [True]


@pytest.mark.parametrize("step", ["release", "withdraw", "write", "revision"])
def test_whoever_is_always_slower_is_told_once(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """A conflict is looked at again a few times; when it stays, it is a failure like others."""
    inner = open_store("memory:")
    active, waiting = prepared(inner)

    def late(*_: Any) -> Any:
        raise RevisionConflictError(inner.url, "somebody else was faster")

    with opened(inner, FrozenClock()) as memory:
        monkeypatch.setattr(inner, "commit", late)
        with pytest.raises(RevisionConflictError):
            STEPS[step][0](memory, active, waiting)
        assert told(inner, "store_failure") == 1
