"""A person who is forgotten while a turn is under way does not come back by the work behind its reply."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import AgentRuntime, Caller, GovernedMemory
from agent_runtime_ref.agent import Answer
from agent_runtime_ref.background import BackgroundWorker
from agent_runtime_ref.errors import StoreError
from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.policy.engines import open_engine
from agent_runtime_ref.session_state import Sessions
from agent_runtime_ref.stores.in_memory import InMemoryStore
from agent_runtime_ref.testing import CountedIds, FrozenClock
from tests.support import caller, candidate
from tests.turns import Scripted, answered, payloads, told

MESSAGE = "Where do support tickets go?"


@pytest.fixture
def store_url() -> str:
    """In memory: the same holds over every store."""
    return "memory:"


class Judging:
    """Keeps what it was shown."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def curate_turn(self, user_text: str, reply: str, *, caller: object) -> None:
        """Take a turn."""
        self.seen.append(user_text)


def test_a_person_forgotten_while_the_model_answers_stays_forgotten(memory: GovernedMemory) -> None:
    """The mark of a turn is that of its beginning, so its words are thrown away when it ends."""
    memory.write(candidate(subject="user-42"), caller=caller())
    judging = Judging()

    def forgets(_: Any) -> Answer:
        memory.forget(subject="user-42", caller=caller())
        return Answer("To the queue.")

    with AgentRuntime.open(memory, model=Scripted(forgets), curation=judging) as runtime:
        result = runtime.run(MESSAGE, caller=caller())
        assert runtime.drain()

    assert result.status == "complete"
    assert judging.seen == []
    assert memory.recall("tickets", caller=caller()).hits == ()


def test_a_person_forgotten_between_two_jobs_stays_forgotten(memory: GovernedMemory) -> None:
    """It is looked at before each job, not once for all of them."""
    memory.write(candidate(subject="user-42"), caller=caller())
    done: list[str] = []

    def forgets(_: object) -> None:
        memory.forget(subject="user-42", caller=caller())

    turn = answered(mark=memory.subject_mark(caller=caller()))
    worker = BackgroundWorker(memory, jobs=[("first", forgets), ("second", lambda _: done.append("second"))])
    worker.submit(turn)
    drained = worker.drain()
    worker.close()

    assert (drained, done) == (True, [])


def test_work_that_is_thrown_away_leaves_no_name_behind() -> None:
    """Looking whether somebody was forgotten does not write his name into the store again."""
    bundle, store = load_bundle(), InMemoryStore()
    engine = open_engine("embedded", bundle)
    with GovernedMemory(
        store=store, engine=engine, bundle=bundle, clock=FrozenClock(), ids=CountedIds()
    ) as memory:
        turn = answered(mark=memory.subject_mark(caller=caller()))
        memory.forget(subject="user-42", caller=caller())
        worker = BackgroundWorker(memory)
        worker.submit(turn)
        assert worker.drain()
        worker.close()

        assert store.subject_key("tenant-acme", "user-42", False) is None


def test_a_turn_whose_person_was_forgotten_still_ends() -> None:
    """The run that began has its end in the log, of nobody, and what was said is worked on no further."""
    bundle, store, judging = load_bundle(), InMemoryStore(), Judging()
    engine = open_engine("embedded", bundle)
    with GovernedMemory(
        store=store, engine=engine, bundle=bundle, clock=FrozenClock(), ids=CountedIds()
    ) as memory:
        run = memory.begin_run("hello", caller=caller(), purpose="answer_generation", limit=5)
        mark = memory.subject_mark(caller=caller())
        turn = answered(mark=mark, decision_id=run.decision.decision_id, log_seq=run.log_seq)
        memory.forget(subject="user-42", caller=caller())
        worker = BackgroundWorker(memory, curation=judging)
        worker.submit(turn, untold={"retrieved_items": 2})
        assert worker.drain()
        worker.close()

        ended = [line for line in memory.log_lines(read=True) if '"event_type":"run_failed"' in line]
        assert [json.loads(line)["payload"]["decision_id"] for line in ended] == [run.decision.decision_id]
        assert '"status":"interrupted"' in ended[0]
        assert store.subject_key("tenant-acme", "user-42", False) is None
    assert judging.seen == []


def test_a_turn_whose_mark_cannot_be_asked_for_fails_and_is_told(
    memory: GovernedMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store that is down there ends the turn as anywhere else: a result, and the run's own end."""

    answers, turns_own = memory.subject_mark, threading.get_ident()

    def down(*, caller: Caller) -> str:
        if threading.get_ident() == turns_own:  # the store is there again for the work behind the reply
            raise StoreError("memory:", "gone")
        return answers(caller=caller)

    monkeypatch.setattr(memory, "subject_mark", down)
    model = Scripted(Answer("yes"))
    with AgentRuntime.open(memory, model=model) as runtime:
        result = runtime.run(MESSAGE, caller=caller())
        assert runtime.drain()

    assert (result.status, result.reply, model.asked) == ("failed", "", [])
    assert "gone" in (result.error or "")
    assert "run_failed" in told(result)
    assert payloads(result, "run_failed")[0]["error.type"] == "StoreError"
    assert memory.recall("tickets", caller=caller()).hits == ()


def test_what_a_turn_leaves_of_a_forgotten_name_is_what_the_receipt_says(
    memory: GovernedMemory, tmp_path: Path
) -> None:
    """As the subject she is a digest; as who asked about her session's constraints she is named."""
    who = caller(subject="user-42")
    sessions = Sessions(memory, folder=tmp_path)
    with AgentRuntime.open(memory, model=Scripted(Answer("ok")), sessions=sessions) as runtime:
        for message in ("No plastic this time", "and now?"):
            runtime.run(message, caller=who)
            assert runtime.drain()
    receipt = memory.forget(subject="user-42", caller=who)

    lines = [json.loads(line) for read in (False, True) for line in memory.log_lines(read=read)]
    decisions = [one for one in lines if one["type"] == "decision" and one["input"]["operation"] != "delete"]
    named = [one for one in decisions if one["requested_by"] == "user-42"]
    assert named
    assert len(named) < len(decisions)
    assert all(_is_of_a_session(one) for one in named)
    assert not any(_is_of_a_session(one) for one in decisions if one not in named)
    assert any("in those about a session's constraints and turns" in line for line in receipt.not_covered)


def _is_of_a_session(decision: dict[str, Any]) -> bool:
    asked = decision["input"]
    sources = [one["source"] for one in asked["candidates"]] or asked.get("query", {}).get("sources")
    return bool(sources == ["session_state"])
