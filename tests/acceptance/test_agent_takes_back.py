"""A preference that is taken back stays so, also where words of before are only curated afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from agent_runtime_ref import AgentRuntime, Caller, GovernedMemory
from agent_runtime_ref.curator import CurationResult, Curator
from agent_runtime_ref.preferences import PreferenceStore
from agent_runtime_ref.testing import FrozenClock
from tests.support import caller

KEY = "dislike:material:general:plastic"
HATES = "I always hate plastic."


@pytest.fixture
def memory(clock: FrozenClock) -> Iterator[GovernedMemory]:
    """An empty governed memory."""
    with GovernedMemory.open("memory:", clock=clock) as opened:
        yield opened


class Held:
    """A curator that goes on when it is let, and keeps what came of each turn."""

    def __init__(self, memory: GovernedMemory) -> None:
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.results: list[CurationResult | None] = []
        self._curator = Curator(memory)

    def curate_turn(self, user_text: str, reply: str, *, caller: Caller) -> object:
        """Curate, once it may."""
        assert self.may_go_on.wait(60)
        self.results.append(self._curator.curate_turn(user_text, reply, caller=caller))
        return None


def test_a_turn_that_waited_does_not_state_it_anew(memory: GovernedMemory, clock: FrozenClock) -> None:
    """Said twice, and forgotten before the second time was curated: the rest of that turn is kept."""
    held, store = Held(memory), PreferenceStore(memory=memory)
    with AgentRuntime.open(memory, curation=held) as runtime:
        runtime.run(HATES, caller=caller())
        assert runtime.drain()
        held.may_go_on.clear()
        clock.advance(seconds=1)
        runtime.run(f"{HATES} I always hate leather.", caller=caller(session_id="session-002"))
        clock.advance(seconds=1)
        assert store.forget(KEY, caller=caller()).removed == (KEY,)
        held.may_go_on.set()
        assert runtime.drain()

    assert [one.slug for one in store.read(caller=caller())] == ["leather"]
    result = held.results[-1]
    assert result is not None
    assert [one.outcome for one in result.curated] == ["forgotten", "added"]


def test_said_again_it_is_learnt_again(memory: GovernedMemory, clock: FrozenClock) -> None:
    """Only words of before are passed over: what its user says later he means."""
    held, store = Held(memory), PreferenceStore(memory=memory)
    with AgentRuntime.open(memory, curation=held) as runtime:
        for _ in range(2):
            runtime.run(HATES, caller=caller())
            assert runtime.drain()
            clock.advance(seconds=1)
            assert store.forget(KEY, caller=caller()).removed == (KEY,)
            clock.advance(seconds=1)
        runtime.run(HATES, caller=caller())
        assert runtime.drain()

    assert [str(one.key) for one in store.read(caller=caller())] == [KEY]


def test_what_another_took_back_is_his_alone(memory: GovernedMemory, clock: FrozenClock) -> None:
    """Who forgets what one dislikes takes nothing from another who said the same."""
    held, store = Held(memory), PreferenceStore(memory=memory)
    other = caller(principal_id="user-7")
    with AgentRuntime.open(memory, curation=held) as runtime:
        for who in (caller(), other):
            runtime.run(HATES, caller=who)
            assert runtime.drain()
        held.may_go_on.clear()
        clock.advance(seconds=1)
        runtime.run(HATES, caller=caller())
        clock.advance(seconds=1)
        store.forget(KEY, caller=other)
        held.may_go_on.set()
        assert runtime.drain()

    assert [str(one.key) for one in store.read(caller=caller())] == [KEY]
    assert store.read(caller=other) == ()
