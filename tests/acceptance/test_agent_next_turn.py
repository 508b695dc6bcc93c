"""The next turn of a thread knows what was said before in it, however slow the work behind the reply is."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import AgentRuntime, Caller, GovernedMemory
from agent_runtime_ref.agent import Answer, Tool, ToolCall, ToolSpec, TurnResult
from agent_runtime_ref.config import load_settings
from agent_runtime_ref.curator import Curator
from agent_runtime_ref.errors import EngineFailureError, StoreError
from agent_runtime_ref.session_state import Enforcer, Sessions
from tests.support import caller
from tests.turns import Scripted, payloads

SAYS, ASKS = "No plastic, please.", "And which box?"
ITEMS = [{"name": "Plastic box", "price": "$12"}, {"name": "Tin box", "price": "$20"}]
PATIENT, AT_ONCE = 60_000, 0


@pytest.fixture
def store_url() -> str:
    """In memory: the waiting is the same over every store."""
    return "memory:"


class Held:
    """A curator that goes on when it is let, and fails as often as it is told to."""

    def __init__(self, memory: GovernedMemory, sessions: Sessions) -> None:
        self.may_go_on = threading.Event()
        self.is_asked = threading.Event()
        self.failures: list[Exception] = []
        self.order: list[str] = []
        self._curator = Curator(memory, sessions=sessions)

    def curate_turn(self, user_text: str, reply: str, *, caller: Caller) -> object:
        """Curate, once it may."""
        self.is_asked.set()
        assert self.may_go_on.wait(60)
        self.order.append(caller.principal_id)
        if self.failures:
            raise self.failures.pop()
        return self._curator.curate_turn(user_text, reply, caller=caller)


@pytest.fixture
def sessions(memory: GovernedMemory, tmp_path: Path) -> Sessions:
    """Threads in a folder of the test."""
    return Sessions(memory, folder=tmp_path / "sessions")


@pytest.fixture
def held(memory: GovernedMemory, sessions: Sessions) -> Iterator[Held]:
    """A curator that waits; it is let go when the test ends."""
    made = Held(memory, sessions)
    yield made
    made.may_go_on.set()


def pick(arguments: Mapping[str, Any], *, caller: Caller, purpose: str) -> str:
    """Return the names of what the enforcer lets through."""
    return json.dumps([item["name"] for item in Enforcer().apply(ITEMS).items])


def opened(memory: GovernedMemory, sessions: Sessions, held: Held, wait_ms: int, **more: Any) -> AgentRuntime:
    """Return a runtime whose model replies with what the picker found."""
    settings = load_settings()
    call = Answer(calls=(ToolCall("pick", {}),))
    model = Scripted(lambda request: Answer(request.exchanges[-1].result) if request.exchanges else call)
    return AgentRuntime.open(
        memory,
        replace(settings, agent=replace(settings.agent, thread_wait_ms=wait_ms)),
        model,
        tools=[Tool(ToolSpec("pick", "what the shop has", {"type": "object"}), pick)],
        curation=held,
        sessions=sessions,
        **more,
    )


def shown(result: TurnResult) -> list[str]:
    """Return which items a turn showed."""
    return [item["name"] for item in ITEMS if item["name"] in result.reply]


def test_the_next_turn_waits_until_the_one_before_is_curated(
    memory: GovernedMemory, sessions: Sessions, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A constraint holds in the next turn also where its curation begins only when that turn has begun."""
    begins = memory.begin_run

    def beginning(message: str, **options: Any) -> Any:
        run = begins(message, **options)
        if message == ASKS:
            held.may_go_on.set()
        return run

    monkeypatch.setattr(memory, "begin_run", beginning)
    with opened(memory, sessions, held, PATIENT) as runtime:
        runtime.run(SAYS, caller=caller())
        result = runtime.run(ASKS, caller=caller())

    assert shown(result) == ["Tin box"]


def test_a_turn_that_has_waited_long_enough_fails(
    memory: GovernedMemory, sessions: Sessions, held: Held
) -> None:
    """It does not go on without the constraint; asked again when it is kept, it is held to it."""
    with opened(memory, sessions, held, AT_ONCE) as runtime:
        runtime.run(SAYS, caller=caller())
        late = runtime.run(ASKS, caller=caller())
        held.may_go_on.set()
        assert runtime.drain()
        again = runtime.run(ASKS, caller=caller())
        assert runtime.drain()

    assert (late.status, late.reply) == ("failed", "")
    assert "ask again" in (late.error or "")
    assert payloads(late, "run_failed")[0]["error.type"] == "SessionStateError"
    assert shown(again) == ["Tin box"]


@pytest.mark.parametrize("who", [{"session_id": "session-002"}, {"principal_id": "user-7"}])
def test_another_thread_does_not_wait(
    memory: GovernedMemory, sessions: Sessions, held: Held, who: Mapping[str, str]
) -> None:
    """What was said in a thread is nothing to the others, and a slow one keeps nobody else waiting."""
    with opened(memory, sessions, held, AT_ONCE) as runtime:
        runtime.run(SAYS, caller=caller())
        result = runtime.run(ASKS, caller=caller(**who))
        held.may_go_on.set()

    assert shown(result) == ["Plastic box", "Tin box"]


@pytest.mark.parametrize("error", [StoreError("memory:", "down"), EngineFailureError("engine_timeout", "")])
def test_a_curation_that_a_store_or_an_engine_keeps_back_is_tried_first(
    memory: GovernedMemory, sessions: Sessions, held: Held, error: Exception
) -> None:
    """While it fails the thread's turns fail, and once it can be done the next one is held to it."""
    held.failures = [error, error]
    held.may_go_on.set()
    with opened(memory, sessions, held, PATIENT) as runtime:
        runtime.run(SAYS, caller=caller())
        assert not runtime.drain()
        still = runtime.run(ASKS, caller=caller())
        again = runtime.run(ASKS, caller=caller())

    assert (still.status, still.reply) == ("failed", "")
    assert shown(again) == ["Tin box"]


def test_a_curation_that_fails_by_itself_changes_nothing(
    memory: GovernedMemory, sessions: Sessions, held: Held
) -> None:
    """A broken judge must not end a conversation: the turn goes on with what is known."""
    held.failures = [ValueError("broken")] * 9
    held.may_go_on.set()
    with opened(memory, sessions, held, PATIENT) as runtime:
        runtime.run(SAYS, caller=caller())
        result = runtime.run(ASKS, caller=caller())

    assert shown(result) == ["Plastic box", "Tin box"]


def test_a_job_that_is_broken_does_not_keep_a_constraint_from_being_kept(
    memory: GovernedMemory, sessions: Sessions, held: Held
) -> None:
    """Each job behind a reply does without the others: what proposes candidates may fail for good."""

    def broken(_: object) -> Any:
        raise ValueError("broken")

    held.may_go_on.set()
    with opened(memory, sessions, held, PATIENT, propose=broken) as runtime:
        runtime.run(SAYS, caller=caller())
        result = runtime.run(ASKS, caller=caller())

    assert shown(result) == ["Tin box"]


def test_who_waits_goes_before_the_rest(memory: GovernedMemory, sessions: Sessions, held: Held) -> None:
    """What others said before is curated behind it: a busy runtime must not let a thread wait for all."""
    mine, others = caller(), [caller(principal_id=f"user-{number}") for number in range(3)]
    with opened(memory, sessions, held, AT_ONCE) as runtime:
        for who in (*others, mine):
            runtime.run(SAYS, caller=who)
            assert held.is_asked.wait(60)  # about the first
        runtime.run(ASKS, caller=mine)  # asks for its own to go first, and does not wait
        held.may_go_on.set()
        assert runtime.drain()

    assert held.order[:2] == ["user-0", mine.principal_id]  # the first was under way
