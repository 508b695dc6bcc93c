"""A turn of the runtime keeps to what its user always or never wants, and learns it through the curator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import AgentRuntime, GovernedMemory
from agent_runtime_ref.agent import Answer, ToolCall
from agent_runtime_ref.preferences import PreferenceStore
from agent_runtime_ref.session_state import Sessions, current
from tests.support import caller
from tests.turns import Scripted, payloads, told

HATES = "I always hate plastic. Budget 300 this time."


@pytest.fixture
def store_url() -> str:
    """In memory: what is learnt is the same over every store."""
    return "memory:"


@pytest.fixture
def runtime(memory: GovernedMemory, tmp_path: Path) -> Iterator[AgentRuntime]:
    """A runtime with the offline model and the curator of the rules."""
    sessions = Sessions(memory, folder=tmp_path / "sessions")
    with AgentRuntime.open(memory, sessions=sessions) as opened:
        yield opened


def ran(runtime: AgentRuntime, message: str, **changes: Any) -> Any:
    """Return a turn whose background work is done."""
    result = runtime.run(message, caller=caller(**changes))
    assert runtime.drain()
    assert result.status == "complete", result.error
    return result


def test_what_is_said_for_good_outlives_the_conversation(
    memory: GovernedMemory, runtime: AgentRuntime
) -> None:
    """A preference is shown in the next conversation, with its record; a constraint is not."""
    assert "preferences_curated" in told(ran(runtime, HATES))
    same = ran(runtime, "a bag please")
    other = ran(runtime, "a bag please", session_id="session-002", trace_id="trace-002")

    (preference,) = PreferenceStore(memory=memory).read(caller=caller())
    assert str(preference.key) == "dislike:material:general:plastic"
    for result in (same, other):
        assert 'key="dislike:material:general:plastic"' in result.context
        assert preference.record_id in result.layers[1].record_ids
        entered = payloads(result, "context_layers_built")[0]["record_ids"]["session"]
        assert entered == [*result.layers[1].record_ids]
        assert entered[0] == preference.record_id
    assert "<session_constraints>" in same.context
    assert len(same.layers[1].record_ids) == 2  # that of the constraint too
    assert other.layers[1].record_ids == (preference.record_id,)
    assert "<session_constraints>" not in other.context


@pytest.mark.parametrize("is_named", [False, True], ids=["own memory", "named place"])
def test_where_a_runtime_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_named: bool) -> None:
    """In its own memory, which is an address too, or where the environment names a place for all."""
    monkeypatch.setenv("AGENT_RUNTIME_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AGENT_RUNTIME_PREFERENCES", raising=False)
    if is_named:
        monkeypatch.setenv("AGENT_RUNTIME_PREFERENCES", f"file:{tmp_path / 'named'}")
    own = f"sqlite:{tmp_path / 'm.db'}"
    with GovernedMemory.open(own) as memory, AgentRuntime.open(memory) as runtime:
        ran(runtime, HATES)

    found = {}
    for name, address in (("default", None), ("own", own)):
        with PreferenceStore(address) as store:
            found[name] = [one.slug for one in store.read(caller=caller())]
    assert found == {"default": ["plastic"] if is_named else [], "own": [] if is_named else ["plastic"]}


def test_a_preference_is_enforced_whatever_a_model_passes_on(memory: GovernedMemory, tmp_path: Path) -> None:
    """The enforcer of a tool finds it in the context of the turn."""
    standing: list[Any] = []

    def looking(_: Any) -> Any:
        from agent_runtime_ref.agent import Answer

        standing.append([one.slug for one in current().standing])
        return Answer("done")

    sessions = Sessions(memory, folder=tmp_path / "sessions")
    with AgentRuntime.open(memory, model=Scripted(looking), sessions=sessions) as runtime:
        ran(runtime, HATES)
        ran(runtime, "a bag please")
        ran(runtime, "a bag please", principal_id="user-7")

    assert standing == [[], ["plastic"], []]


def test_a_preference_is_forgotten_at_once(memory: GovernedMemory, runtime: AgentRuntime) -> None:
    """The tool removes it in the turn, and the sentence that asks for it does not teach it again."""
    ran(runtime, HATES)
    result = ran(runtime, "Forget that I always hate plastic")

    assert payloads(result, "tool_execution")[0]["tool"] == "forget_preference"
    assert PreferenceStore(memory=memory).read(caller=caller()) == ()
    assert "plastic" not in ran(runtime, "a bag please").layers[1].rendered()


def test_nobody_in_particular_has_no_preferences(memory: GovernedMemory, runtime: AgentRuntime) -> None:
    """An anonymous user's wishes hold for the session and no longer."""
    ran(runtime, HATES, principal_id="anonymous")
    same = ran(runtime, "a bag please", principal_id="anonymous")
    other = ran(runtime, "a bag please", principal_id="anonymous", session_id="session-002")

    assert "plastic" in same.layers[1].rendered()
    assert "plastic" not in other.layers[1].rendered()


def test_a_turn_without_a_conversation_leaves_no_constraints(runtime: AgentRuntime, tmp_path: Path) -> None:
    """Nobody will come back to it, so nothing is kept for it on disk."""
    ran(runtime, "Budget 300 this time.", session_id=None)

    assert not (tmp_path / "sessions").exists()


@pytest.mark.parametrize(
    "message",
    [
        "Forget that I always hate plastic. Budget 500 this time. I always hate leather.",
        "请忘掉我一直讨厌塑料这件事。这次预算500。我一直讨厌皮革。",
    ],
)
def test_what_is_forgotten_is_not_learned_again_and_the_rest_is(
    memory: GovernedMemory, tmp_path: Path, message: str
) -> None:
    """The words that have something forgotten teach nothing; what the turn says besides is kept."""
    forgets = Answer(
        calls=(ToolCall("forget_preference", {"text_or_key": "dislike:material:general:plastic"}),)
    )
    sessions = Sessions(memory, folder=tmp_path / "sessions")
    model = Scripted(Answer("Yes."), forgets, Answer("Done."))
    with AgentRuntime.open(memory, model=model, sessions=sessions) as runtime:
        ran(runtime, "I always hate plastic.")
        result = ran(runtime, message)

    assert [one["tool"] for one in payloads(result, "tool_execution")] == ["forget_preference"]
    kept = PreferenceStore(memory=memory).read(caller=caller())
    assert [one.slug for one in kept] == ["leather"]
    state = sessions.load("session-001", caller=caller())
    assert [one.amount.value for one in state.budget if one.amount is not None] == ["500"]


def test_words_that_the_rules_do_not_know_and_have_something_forgotten_teach_nothing(
    memory: GovernedMemory, tmp_path: Path
) -> None:
    """Where a model took them for a wish to forget, they are not learned from either."""
    forgets = Answer(calls=(ToolCall("forget_preference", {"text_or_key": "plastic"}),))
    sessions = Sessions(memory, folder=tmp_path / "sessions")
    with AgentRuntime.open(memory, model=Scripted(forgets, Answer("Done.")), sessions=sessions) as runtime:
        ran(runtime, "Strike it from your list: I always hate plastic.")

    assert PreferenceStore(memory=memory).read(caller=caller()) == ()
