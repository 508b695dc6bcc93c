"""Kinds of fault that users of memory systems reported, tried on what is built on the gates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import AgentRuntime, Caller, GovernedMemory
from agent_runtime_ref.agent import Answer
from agent_runtime_ref.agent.models.base import ToolCall
from agent_runtime_ref.clock import instant
from agent_runtime_ref.contracts import Origin
from agent_runtime_ref.contracts.key_part import PART_CHARACTERS_MAX, part
from agent_runtime_ref.curator import Curator
from agent_runtime_ref.errors import EngineFailureError, PreferenceInvalidError
from agent_runtime_ref.preferences import PreferenceStore
from agent_runtime_ref.session_state import Sessions
from agent_runtime_ref.testing import NOW_US, CountedIds, FrozenClock
from tests.constraining import budget
from tests.preferring import finding, inferred, opened
from tests.support import TENANT, caller, candidate, note, query
from tests.turns import Scripted

KEY = "dislike:material:general:plastic"
SAID = "I always hate plastic. Budget 300 this time."


def _keys(store: PreferenceStore, who: Caller | None = None) -> list[str]:
    return [str(one.key) for one in store.read(caller=who or caller())]


def _confirmed(memory: GovernedMemory) -> str:
    """Return the id of an allergy that a form confirmed, of high trust."""
    allergy = candidate(
        "allergic to nuts",
        memory_class="profile",
        kind="preference",
        source="user_confirmed_preference",
        provenance="confirmed_in_a_form",
        key="dislike:food:general:nuts",
        subject="user-42",
    )
    record = memory.write(allergy, caller=caller()).record
    assert record.trust_level == "high"
    return record.memory_id


@pytest.mark.parametrize("polarity", ["like", "dislike"])
def test_a_later_anecdote_takes_no_confirmed_fact_away(polarity: str) -> None:
    """Lower trust neither replaces a record of higher trust nor removes it by saying the opposite."""
    store, memory = opened()
    confirmed = _confirmed(memory)
    outcome = store.write(finding("I like nuts", "nuts", category="food", polarity=polarity), caller=caller())

    assert (outcome.outcome, outcome.superseded) == ("refused", ())
    assert outcome.decision is not None
    assert outcome.decision.reasons == ("lower_trust_replaces_higher",)
    assert [one.record_id for one in store.read(caller=caller())] == [confirmed]


def test_a_key_that_a_judge_names_removes_no_confirmed_fact() -> None:
    """What a finding says that it supersedes is looked at too, whatever key it has itself."""
    store, memory = opened()
    confirmed = _confirmed(memory)
    store.write(
        finding("I love peanuts", "peanuts", category="food", polarity="like",
                keys_to_supersede=("dislike:food:general:nuts",)),
        caller=caller(),
    )  # fmt: skip

    assert [one.record_id for one in store.read(caller=caller())] == [confirmed]


def test_its_user_still_has_a_confirmed_fact_forgotten() -> None:
    """Whatever its trust, a person may take back what is kept of him."""
    store, memory = opened()
    _confirmed(memory)
    assert store.forget("dislike:food:general:nuts", caller=caller()).removed == (
        "dislike:food:general:nuts",
    )
    assert _keys(store) == []


@pytest.mark.parametrize("at_once", [False, True])
def test_what_was_said_firmly_is_not_weakened_by_the_way(at_once: bool) -> None:
    """A repeat in milder words takes the words and leaves the strength: it is still enforced."""
    store, _ = opened()
    hard = finding("I am allergic to nuts", "nuts", category="food")
    mild = finding("I do not like nuts much", "nuts", category="food", strength="soft")
    for said in [[hard, mild]] if at_once else [[hard], [mild]]:
        store.write_many(said, caller=caller())

    (kept,) = store.read(caller=caller())
    assert (kept.content, kept.strength) == ("I do not like nuts much", "hard")


def test_a_mild_preference_is_made_firm_by_saying_so() -> None:
    """What is soft becomes hard where its user says it firmly, and an inference makes nothing hard."""
    store, _ = opened()
    store.write(inferred(), caller=caller())
    store.write(finding("I'd rather not have plastic", strength="soft"), caller=caller())
    assert [one.strength for one in store.read(caller=caller())] == ["soft"]

    store.write(finding("Never plastic"), caller=caller())
    assert [one.strength for one in store.read(caller=caller())] == ["hard"]


def test_what_was_said_six_hundred_times_can_be_changed_and_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Old revisions neither count against a writer nor keep a preference from going, in one call."""
    from agent_runtime_ref.enforcement import removals

    # Asked about in many parts, as six hundred would be of the bound of an engine.
    monkeypatch.setattr(removals, "ASKED_MAX", 7)
    store, memory = opened()
    for number in range(20):
        store.write(finding(f"I always hate plastic {number}"), caller=caller())
    assert store.write(finding("I like plastic", polarity="like"), caller=caller()).superseded == (KEY,)
    for number in range(20):
        store.write(finding(f"I always hate plastic {number}"), caller=caller())

    assert store.forget(KEY, caller=caller()).removed == (KEY,)
    assert _keys(store) == []
    assert memory.forget(subject="user-42", caller=caller()).records == 0


def test_more_revisions_than_one_question_holds_stand_in_no_writers_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A preference that was said more often than a call may change is still learnt once more."""
    from agent_runtime_ref.enforcement import removals

    monkeypatch.setattr(removals, "RECORDS_MAX", 10)
    store, _ = opened()
    outcomes = {store.write(finding(f"plastic {n}"), caller=caller()).outcome for n in range(15)}

    assert outcomes == {"added", "repeated"}


@pytest.mark.parametrize("size", [501, 2_001, 1_000_000])
def test_a_long_preference_is_refused_with_the_limit(size: int) -> None:
    """Nothing that a user said is cut in silence."""
    store, _ = opened()
    offered = {"content": "w" * size, "category": "material", "polarity": "dislike"}
    with pytest.raises(PreferenceInvalidError, match="at most 500"):
        store.write(offered, caller=caller())
    assert _keys(store) == []


def test_two_long_sentences_that_begin_alike_are_two_preferences() -> None:
    """What does not fit into a key still tells it from another."""
    store, _ = opened()
    begun = "coats with a very long description of what they are made of and how, in the colour "
    for colour in ("red", "blue"):
        store.write({"content": begun + colour, "category": "colour", "polarity": "like"}, caller=caller())

    keys = _keys(store)
    assert len(set(keys)) == 2
    assert all(part(key.split(":")[3]) == key.split(":")[3] for key in keys)
    assert all(len(key.split(":")[3]) <= PART_CHARACTERS_MAX for key in keys)


@pytest.mark.parametrize("word", ["caf\u00e9", "cafe\u0301", "\uff43\uff41\uff46\u00e9"])
def test_forms_of_a_word_are_one_preference(word: str) -> None:
    """Composed, decomposed and full-width words make the same key, and any of them forgets it."""
    store, _ = opened()
    for one in ("caf\u00e9", word):
        offered = {"content": f"I hate a {one}", "category": "place", "polarity": "dislike"}
        store.write(offered, caller=caller())

    (key,) = _keys(store)
    assert store.forget(f"a {word}", caller=caller()).removed == (key,)


def test_a_preference_that_goes_back_and_forth_is_there_once() -> None:
    """Disliked, liked and disliked again: one is active, the last."""
    store, _ = opened()
    for polarity in ("dislike", "like", "dislike"):
        store.write(finding(f"I {polarity} plastic", polarity=polarity), caller=caller())

    assert _keys(store) == [KEY]


def test_a_bound_that_goes_back_and_forth_is_there_once(tmp_path: Path) -> None:
    """A budget of 300, of 200 and of 300 again is one constraint, in the file and in the records."""
    _, memory = opened()
    sessions = Sessions(memory, folder=tmp_path)
    for value in ("300", "200", "300"):
        state = sessions.merge("t", [budget(value)], caller=caller()).state
    assert [one.content for one in state.findings] == ["budget 300"]
    assert sessions.load("t", caller=caller()) == state


def test_what_begins_as_a_key_does_is_not_that_key() -> None:
    """Forgetting one thing leaves those alone whose name only begins like it."""
    store, _ = opened()
    for slug in ("plastic", "plastic-bag", "plas"):
        store.write(finding(f"I hate {slug}", slug), caller=caller())

    assert store.forget(KEY, caller=caller()).removed == (KEY,)
    assert sorted(_keys(store)) == ["dislike:material:general:plas", f"{KEY}-bag"]


def test_a_model_names_nobody() -> None:
    """A tool takes no user and no tenant from a model, and works for the caller alone."""
    store, memory = opened()
    store.write(finding(), caller=caller(principal_id="bob"))
    calls = [
        ToolCall("forget_preference", {"text_or_key": KEY, "user_id": "bob"}, "1"),
        ToolCall("forget_preference", {"text_or_key": KEY, "tenant_id": TENANT, "subject": "bob"}, "2"),
        ToolCall("recall_history", {"query": "plastic", "user_id": "bob"}, "3"),
        ToolCall("forget_preference", {"text_or_key": KEY}, "4"),
    ]
    model = Scripted(Answer("", tuple(calls)), Answer("done"))
    with AgentRuntime.open(memory, model=model, preferences=store) as runtime:
        result = runtime.run("hello", caller=caller(session_id=None))

    statuses = [item.status for item in result.layers[3].items]
    assert statuses == ["refused", "refused", "refused", "ok"]
    assert '"removed": []' in result.layers[3].items[-1].text
    assert _keys(store, caller(principal_id="bob")) == [KEY]


def test_what_an_agent_learns_of_a_user_is_the_users(tmp_path: Path) -> None:
    """Acting for somebody, an agent keeps it under him: he reads it as himself, and the agent does not."""
    store, memory = opened()
    sessions = Sessions(memory, folder=tmp_path)
    agent = Caller(TENANT, "agent-x", subject="user-9", session_id="s", trace_id="t")
    with AgentRuntime.open(memory, sessions=sessions, preferences=store) as runtime:
        runtime.run(SAID, caller=agent)
        assert runtime.drain()

    user, itself = Caller(TENANT, "user-9"), Caller(TENANT, "agent-x")
    assert (_keys(store, user), _keys(store, itself)) == ([KEY], [])
    assert len(sessions.load("s", caller=user).findings) == 1
    assert sessions.load("s", caller=itself).findings == ()


def test_a_user_who_comes_back_after_being_forgotten_starts_empty(tmp_path: Path) -> None:
    """No layer, cache or file of an open runtime knows him."""
    store, memory = opened()
    sessions = Sessions(memory, folder=tmp_path)
    with AgentRuntime.open(memory, sessions=sessions, preferences=store) as runtime:
        runtime.run(SAID, caller=caller())
        assert runtime.drain()
        assert "plastic" in runtime.run("plastic?", caller=caller()).context
        assert runtime.drain()
        memory.forget(subject="user-42", caller=caller())
        sessions.forget("user-42", caller=caller())

        again = runtime.run("plastic?", caller=caller())

    assert "plastic" not in again.context
    assert store.read_relevant("plastic", caller=caller()) == ()


class _Failing:
    """An engine that can be made to fail; what it is asked otherwise, the real one answers."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.fails = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def evaluate(self, entrypoint: str, document: str) -> Any:
        """Answer, or time out."""
        if self.fails:
            raise EngineFailureError("timeout")
        return self._inner.evaluate(entrypoint, document)


def _over_failing_engine() -> tuple[GovernedMemory, _Failing]:
    from agent_runtime_ref.policy.bundle import load_bundle
    from agent_runtime_ref.policy.embedded import EmbeddedEngine
    from agent_runtime_ref.stores.registry import open_store

    bundle = load_bundle()
    engine = _Failing(EmbeddedEngine(bundle))
    memory = GovernedMemory(
        store=open_store("memory:"), engine=engine, bundle=bundle, clock=FrozenClock(), ids=CountedIds()
    )
    return memory, engine


@pytest.mark.parametrize("said", ["I always hate plastic.", "Budget 300 this time."])
def test_an_engine_that_fails_is_no_refusal_to_the_curator(said: str, tmp_path: Path) -> None:
    """A turn that could not be judged by policy is told as undone, and kept when the engine answers again."""
    memory, engine = _over_failing_engine()
    store, sessions = PreferenceStore(memory=memory), Sessions(memory, folder=tmp_path)
    curator = Curator(memory, sessions=sessions, preferences=store)
    engine.fails = True
    with pytest.raises(EngineFailureError):
        curator.curate_turn(said, "", caller=caller())

    engine.fails = False
    result = curator.curate_turn(said, "", caller=caller())
    assert result is not None
    assert (len(result.session) + len(result.standing), result.refused) == (1, ())
    assert len(store.read(caller=caller())) + len(sessions.load("session-001", caller=caller()).findings) == 1


def test_constraints_that_ended_leave_no_record_behind_an_engine_that_fails(tmp_path: Path) -> None:
    """The file that knows whose records they are stays until these could be removed."""
    memory, engine = _over_failing_engine()
    sessions = Sessions(memory, folder=tmp_path)
    sessions.merge("t", [budget("300")], caller=caller())
    clock = memory.clock
    assert isinstance(clock, FrozenClock)
    clock.advance(days=2)
    engine.fails = True
    with pytest.raises(EngineFailureError):
        sessions.merge("t", [], caller=caller())
    assert [path.name for path in tmp_path.rglob("pt.json")] == ["pt.json"]


def test_a_merged_memory_names_every_message_it_came_from() -> None:
    """Compaction keeps one record, and the ids of both messages."""
    _, memory = opened()
    for number in (1, 2, 3):
        origin = Origin(f"message-{number}", "message", "a talk", instant(NOW_US))
        memory.write(note("same words", origin=origin, provenance=f"turn-{number}"), caller=caller())

    assert len(memory.compact(caller=caller()).removed) == 2
    (hit,) = memory.read(query(), caller=caller()).hits
    assert hit.record.origin is not None
    named = [hit.record.origin.source_id, *hit.record.scope]
    assert {"message-1", "origin:message-2", "origin:message-3"} <= set(named)
    assert memory.compact(caller=caller()).removed == ()
