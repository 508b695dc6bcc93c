"""Bulk writes that fail on the way: nobody loses the receipt of what was kept."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from agent_runtime_ref import (
    EngineFailureError,
    GovernedMemory,
    MemoryCandidate,
    PolicyDeniedError,
    WriteInterruptedError,
    WriteReceipt,
)
from agent_runtime_ref.cli.exit_codes import code_of
from agent_runtime_ref.errors import StoreCapabilityError, StoreError
from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.policy.engines import open_engine
from agent_runtime_ref.stores.base import Store
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.testing import CountedIds, FaultyStore, FrozenClock
from tests.support import caller, candidate, query


class FailingEngine:
    """The embedded engine, but for one question."""

    def __init__(self, *, on_call: int, reason: str) -> None:
        self._inner = open_engine("embedded", load_bundle())
        self._on_call = on_call
        self._reason = reason
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def evaluate(self, entrypoint: str, document: str) -> Any:
        """Return the answer, or fail on the n-th question."""
        self.calls += 1
        if self.calls == self._on_call:
            raise EngineFailureError(self._reason, "as the test wants it")
        return self._inner.evaluate(entrypoint, document)


def opened(store: Any, engine: Any = None) -> GovernedMemory:
    """Return governed memory over a store, with an engine of the test's."""
    bundle = load_bundle()
    engine = engine or open_engine("embedded", bundle)
    return GovernedMemory(store=store, engine=engine, bundle=bundle, clock=FrozenClock(), ids=CountedIds())


@pytest.fixture
def store(store_url: str) -> Store:
    """An empty store."""
    return open_store(store_url)


def replacements(count: int) -> list[MemoryCandidate]:
    """Return facts under one key, each of which is a batch of its own; the second is refused."""
    facts = [candidate(f"Fact {number}.", key="k", revision_mode="replace") for number in range(count)]
    facts[1] = candidate("Unknown.", key="k", revision_mode="replace", provenance="unknown")
    return facts


def kept(memory: GovernedMemory) -> list[str]:
    """Return the contents that are read."""
    return [hit.record.content for hit in memory.read(query(), caller=caller()).hits]


def test_a_store_that_fails_on_the_way_leaves_the_receipts(store: Store) -> None:
    """The error carries a receipt or refusal for every candidate before, in order, and says what failed."""
    failure = StoreError(store.url, "the disk is full")
    with opened(FaultyStore(store, method="commit", error=failure, on_call=4)) as memory:
        with pytest.raises(
            WriteInterruptedError, match=r"^3 of 5 candidates are settled, .* the disk is full"
        ) as told:
            memory.write_many(replacements(5), caller=caller())

        first, refused, third = told.value.outcomes
        assert isinstance(first, WriteReceipt)
        assert isinstance(refused, PolicyDeniedError)
        assert isinstance(third, WriteReceipt)
        assert third.supersedes == first.record.memory_id
        assert told.value.failure is told.value.__cause__ is failure
        assert kept(memory) == ["Fact 2."]


def test_an_engine_that_fails_on_the_way_leaves_the_receipts(store: Store) -> None:
    """The failure itself is the cause, with the decision that refused the rest."""
    engine = FailingEngine(on_call=3, reason="engine_exception")
    with opened(store, engine) as memory:
        with pytest.raises(WriteInterruptedError) as told:
            memory.write_many(replacements(4), caller=caller())

        failure = told.value.failure
        assert isinstance(failure, EngineFailureError)
        assert (failure.reason, failure.decision.effect) == ("engine_exception", "deny")
        assert len(told.value.outcomes) == 2
        engine.calls = 10
        assert kept(memory) == ["Fact 0."]


def test_the_second_half_of_a_batch_fails(store: Store) -> None:
    """A batch that is too large for the engine is halved; what the first half kept is not lost either."""
    engine = FailingEngine(on_call=1, reason="input_too_large")
    faulty = FaultyStore(store, method="commit", error=StoreError(store.url, "the disk is full"), on_call=2)
    with opened(faulty, engine) as memory:
        with pytest.raises(WriteInterruptedError) as told:
            memory.write_many([candidate(f"Fact {number}.") for number in range(4)], caller=caller())

        contents = [one.record.content for one in told.value.outcomes if isinstance(one, WriteReceipt)]
        assert contents == ["Fact 0.", "Fact 1."]
        assert sorted(kept(memory)) == contents


def test_what_fails_at_once_is_raised_as_it_is(store: Store) -> None:
    """Where nothing has been settled there is nothing to carry: the failure is that of a single write."""
    failing = FaultyStore(store, method="commit", error=StoreError(store.url, "the disk is full"))
    with opened(failing) as memory:
        with pytest.raises(StoreError, match="the disk is full"):
            memory.write_many(replacements(3), caller=caller())
        assert kept(memory) == []
    engine = FailingEngine(on_call=1, reason="engine_undefined")
    with opened(open_store("memory:"), engine) as memory, pytest.raises(EngineFailureError):
        memory.write_many(replacements(3), caller=caller())


def test_the_rest_can_be_written_later(store: Store) -> None:
    """Whoever goes on after the outcomes that there are has written everything once."""
    facts = replacements(5)
    failing = FaultyStore(store, method="commit", error=StoreError(store.url, "the disk is full"), on_call=3)
    with opened(failing) as memory:
        with pytest.raises(WriteInterruptedError) as told:
            memory.write_many(facts, caller=caller())
        rest = memory.write_many(facts[len(told.value.outcomes) :], caller=caller())

        assert len(told.value.outcomes) + len(rest) == 5
        assert kept(memory) == ["Fact 4."]


def test_the_error_travels_and_ends_a_command_as_its_cause_would(store: Store) -> None:
    """It survives pickling with its outcomes, and its exit code is that of the failure."""
    receipt = opened(store).write(candidate(), caller=caller())
    failure = StoreCapabilityError("memory:", "it cannot")
    error = WriteInterruptedError([receipt], 2, failure)
    again = pickle.loads(pickle.dumps(error))

    assert (str(again), again.outcomes) == (str(error), (receipt,))
    assert code_of(error) == code_of(failure) == 2
    assert code_of(WriteInterruptedError([], 2, StoreError("memory:", "it broke"))) == 3
