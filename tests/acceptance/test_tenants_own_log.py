"""What a process asks of the log about its own tenant needs no more rights than that tenant's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent_runtime_ref import AgentRuntime, Caller, GovernedMemory
from agent_runtime_ref.background import Turn
from agent_runtime_ref.background.curated import CuratedTurns
from agent_runtime_ref.curator import Curator
from agent_runtime_ref.enforcement.runs import LateEnd
from agent_runtime_ref.errors import StoreCapabilityError
from agent_runtime_ref.preferences import PreferenceStore
from agent_runtime_ref.telemetry import turns
from agent_runtime_ref.testing import FrozenClock
from tests.postgres import OPERATOR, SERVICE, PostgresProcess
from tests.support import caller

KEY = "dislike:material:general:plastic"
HATES = "I always hate plastic."


@pytest.fixture
def memory(postgres: PostgresProcess, database: str, clock: FrozenClock) -> Iterator[GovernedMemory]:
    """A memory of a login that may not look across tenants."""
    with GovernedMemory.open(postgres.url(SERVICE, database), clock=clock) as opened:
        yield opened


class _Telling:
    """A curator, and the ids of the turns that it was asked about."""

    def __init__(self, memory: GovernedMemory) -> None:
        self._curator = Curator(memory)
        self.turns: list[str] = []

    def curate_turn(self, user_text: str, reply: str, *, caller: Caller) -> object:
        """Curate, within the turn that is being kept."""
        said = turns.said()
        assert said is not None
        self.turns.append(said.turn_id)
        return self._curator.curate_turn(user_text, reply, caller=caller)


def _left(turn_id: str) -> Turn:
    return Turn(
        turn_id=turn_id,
        caller=caller(),
        purpose="answer_generation",
        message=HATES,
        reply="",
        status="complete",
        at_us=1,
        decision_id="dec-1",
        mark="",
    )


def test_what_was_taken_back_is_known(memory: GovernedMemory, clock: FrozenClock) -> None:
    """A preference that was forgotten since is not stated anew, and may be said again afterwards."""
    store = PreferenceStore(memory=memory)
    with AgentRuntime.open(memory) as runtime:
        runtime.run(HATES, caller=caller())
        assert runtime.drain()
    before = clock.now_us()
    clock.advance(seconds=1)
    assert store.forget(KEY, caller=caller()).removed == (KEY,)
    clock.advance(seconds=1)

    assert memory.taken_back([KEY], since_us=before, caller=caller()) == {KEY}
    assert memory.taken_back([KEY], since_us=clock.now_us(), caller=caller()) == frozenset()
    assert memory.taken_back([KEY], since_us=before, caller=caller(tenant_id="tenant-b")) == frozenset()


def test_a_turn_that_was_curated_is_not_curated_again(memory: GovernedMemory) -> None:
    """Whoever takes it over from a process that died finds what the log says of it."""
    telling = _Telling(memory)
    with AgentRuntime.open(memory, curation=telling) as runtime:
        runtime.run(HATES, caller=caller())
        assert runtime.drain()
    (turn_id,) = telling.turns
    curated = CuratedTurns()

    assert curated.holds(_left(turn_id), [memory])
    assert not curated.holds(_left("turn-of-nobody"), [memory])


def test_a_turn_that_ended_does_not_end_again(memory: GovernedMemory) -> None:
    """How it ended is looked up behind its beginning, in the tenant's own chain."""
    run = memory.begin_run("a bag", caller=caller(), purpose="answer_generation", limit=5)
    late = LateEnd(run.caller, run.decision.decision_id, None, run.log_seq)

    assert memory.end_run(late) is True
    assert memory.end_run(late) is False


def test_a_tenants_chain_is_the_one_that_an_operator_sees(
    memory: GovernedMemory, postgres: PostgresProcess, database: str
) -> None:
    """The same name and the same lines, and none of another tenant."""
    memory.begin_run("a bag", caller=caller(), purpose="answer_generation", limit=5)
    memory.begin_run("a bag", caller=caller(tenant_id="tenant-b"), purpose="answer_generation", limit=5)
    (own,) = memory.log_chains(read=True, tenant_id=caller().tenant_id)
    with pytest.raises(StoreCapabilityError):
        list(memory.log_chains(read=True))
    with GovernedMemory.open(postgres.url(OPERATOR, database)) as inspected:
        seen = {one.tenant_id: (one.name, list(one.raw())) for one in inspected.log_chains(read=True)}

    assert seen[caller().tenant_id] == (own.name, list(own.raw()))
    assert len(list(own.raw())) > len(list(own.raw(1))) > 0
