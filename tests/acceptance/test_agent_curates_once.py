"""What a turn says of its user is kept once, however often the work behind its reply is begun."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import AgentRuntime, Caller, GovernedMemory
from agent_runtime_ref.agent import Answer, ToolCall
from agent_runtime_ref.background import PendingFile, taken_over
from agent_runtime_ref.background.pending import Waiting
from agent_runtime_ref.curator import Curator
from agent_runtime_ref.errors import SessionStateError
from agent_runtime_ref.preferences import PreferenceStore
from agent_runtime_ref.session_state import Sessions
from agent_runtime_ref.telemetry.turns import Said, keeping
from agent_runtime_ref.testing import CountedIds
from tests.support import caller
from tests.turns import Scripted, answered

HATES = "I always hate plastic."


@pytest.fixture
def store_url() -> str:
    """In memory: what is learnt is the same over every store."""
    return "memory:"


class FailingOnce:
    """A curator whose first turn named `message` fails, before or after it was kept."""

    def __init__(self, curator: Curator, message: str, *, is_kept: bool) -> None:
        self._curator = curator
        self._message = message
        self._is_kept = is_kept
        self._left = 1

    def curate_turn(self, user_text: str, reply: str, *, caller: Caller) -> object:
        """Curate, or fail."""
        fails = user_text == self._message and self._left > 0
        if fails:
            self._left -= 1
        if not fails or self._is_kept:
            self._curator.curate_turn(user_text, reply, caller=caller)
        if fails:
            raise RuntimeError("interrupted")
        return None


def test_preferences_of_another_memory_are_kept_once(memory: GovernedMemory, tmp_path: Path) -> None:
    """That they were kept is on record where they are, and is looked for there."""
    with PreferenceStore(f"sqlite:{tmp_path / 'preferences.db'}") as store:
        curation = FailingOnce(Curator(memory, preferences=store), HATES, is_kept=True)
        with AgentRuntime.open(memory, curation=curation, preferences=store) as runtime:
            runtime.run(HATES, caller=caller())
            drained = [runtime.drain(), runtime.drain()]
        (kept,) = store.read(caller=caller())

    assert drained[-1]
    assert kept.confidence == pytest.approx(0.6)


def test_an_exchange_is_kept_though_its_curation_was_done_before(
    memory: GovernedMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of sessions that fails behind the curation has only its own step done again."""
    sessions = Sessions(memory, folder=tmp_path / "sessions")
    adds, failures = sessions.add_turn, [SessionStateError("a folder is full")]

    def failing(*arguments: Any, **options: Any) -> object:
        if failures:
            raise failures.pop()
        return adds(*arguments, **options)

    monkeypatch.setattr(sessions, "add_turn", failing)
    with AgentRuntime.open(memory, sessions=sessions) as runtime:
        result = runtime.run(HATES, caller=caller())
        drained = [runtime.drain(), runtime.drain()]
    (preference,) = PreferenceStore(memory=memory).read(caller=caller())

    assert drained[-1]
    assert failures == []
    assert [(one.user_text, one.reply) for one in sessions.turns("session-001", caller=caller())] == [
        (HATES, result.reply)
    ]
    assert preference.confidence == pytest.approx(0.6)


def test_each_exchange_of_a_thread_is_kept_once(memory: GovernedMemory, tmp_path: Path) -> None:
    """The same words in two turns of one trace are two exchanges; a turn that is done again is one."""
    sessions = Sessions(memory, folder=tmp_path / "sessions")
    with AgentRuntime.open(memory, model=Scripted(Answer("ok")), sessions=sessions) as runtime:
        for message in ("more", "more", "less"):
            first = runtime.run(message, caller=caller())
            assert runtime.drain()
    for turn in sessions.turns("session-001", caller=caller())[:2]:
        with keeping(Said(turn.turn_id or "", turn.at_us)):
            sessions.add_turn("session-001", "more", "ok", caller=caller())

    kept = sessions.turns("session-001", caller=caller())
    assert [one.user_text for one in kept] == ["more", "more", "less"]
    assert kept[-1].turn_id == first.turn_id


def test_an_exchange_that_failed_is_kept_as_failed(memory: GovernedMemory, tmp_path: Path) -> None:
    """Whoever looks at a thread sees that there was no reply, and why."""
    sessions = Sessions(memory, folder=tmp_path / "sessions")
    with AgentRuntime.open(memory, model=Scripted(RuntimeError("down")), sessions=sessions) as runtime:
        runtime.run("more", caller=caller())
        assert runtime.drain()

    (kept,) = sessions.turns("session-001", caller=caller())
    assert (kept.user_text, kept.reply, kept.status) == ("more", None, "failed")


def test_what_a_tool_forgot_in_the_turn_is_no_curation_of_it(memory: GovernedMemory, tmp_path: Path) -> None:
    """The rest of the turn is kept where its curation failed and is done again."""
    forgets = Answer(
        calls=(ToolCall("forget_preference", {"text_or_key": "dislike:material:general:plastic"}),)
    )
    message = "Forget that I always hate plastic. I always hate leather."
    curation = FailingOnce(Curator(memory), message, is_kept=False)
    model = Scripted(Answer("Yes."), forgets, Answer("Done."))
    with AgentRuntime.open(memory, model=model, curation=curation) as runtime:
        runtime.run(HATES, caller=caller())
        assert runtime.drain()
        runtime.run(message, caller=caller())
        drained = [runtime.drain(), runtime.drain()]

    assert drained[-1]
    assert [one.slug for one in PreferenceStore(memory=memory).read(caller=caller())] == ["leather"]


def test_a_turn_that_is_put_aside_says_what_was_begun(tmp_path: Path) -> None:
    """Whoever takes it up knows that a step is done again, and how often it failed."""
    turn = answered()
    waits = Waiting(turn, done={"candidates"}, begun={"candidates", "curation"}, attempts=2)
    PendingFile.in_folder(tmp_path, CountedIds()).aside(waits).close()
    (file,) = taken_over(tmp_path)
    (found,) = file.waiting
    file.close()

    assert (found.done, found.begun, found.attempts) == ({"candidates"}, {"candidates", "curation"}, 2)
