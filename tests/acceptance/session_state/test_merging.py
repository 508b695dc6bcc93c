"""P_t behind the gates: what is loaded, merged, refused and expired."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import DocumentTypeError, DocumentValueError, GovernedMemory, PolicyDeniedError
from agent_runtime_ref.contracts import Finding
from agent_runtime_ref.session_state import TTL, Sessions, SessionState
from agent_runtime_ref.testing import FrozenClock
from tests.acceptance.session_state.threads import AWS_KEY, OVERRIDE, THREAD, TURN, USER, Told, pt
from tests.constraining import budget, finding, like
from tests.support import caller


def test_a_turn_is_merged_and_loaded(sessions: Sessions) -> None:
    """What a turn says is in force in the next one, word for word."""
    receipt = sessions.merge(THREAD, TURN, caller=USER)

    assert (receipt.entered, receipt.refused) == (TURN, ())
    state = sessions.load(THREAD, caller=USER)
    assert state == receipt.state
    assert (state.negative_hard, state.budget, state.category) == ((TURN[1],), (TURN[0],), (TURN[3],))


def test_a_later_turn_adds_and_replaces(sessions: Sessions) -> None:
    """Another thing comes to it; the same thing is replaced, across polarity and strength."""
    sessions.merge(THREAD, TURN, caller=USER)
    sessions.merge(THREAD, [like("plastic"), finding("leather")], caller=USER)

    state = sessions.load(THREAD, caller=USER)
    assert state.negative_hard == (finding("leather"),)
    assert set(state.positive_soft) == {like("plastic"), TURN[2]}
    assert state.budget == (TURN[0],)


def test_merging_is_a_write_decision_and_loading_a_read_decision(sessions: Sessions, told: Told) -> None:
    """Each constraint has its decision, the merge its event, the load its own; none holds a word of it."""
    sessions.merge(THREAD, TURN, caller=USER)
    sessions.load(THREAD, caller=USER)

    writes = [one["payload"] for one in told() if one["event_type"] == "memory_write_decision"]
    assert len(writes) == len(TURN)
    assert {(one["memory_class"], one["kind"], one["source"], one["effect"]) for one in writes} == {
        ("short_term", "working_note", "session_state", "allow")
    }
    (merged,) = [one["payload"] for one in told() if one["event_type"] == "session_constraints_merged"]
    assert merged["counts"] == {"positive_soft": 1, "negative_hard": 1, "budget": 1, "category": 1}
    assert (merged["refused"], merged["total"], len(merged["keys"])) == (0, 4, 4)
    (read,) = [one["payload"] for one in told() if one["event_type"] == "retrieval"]
    assert len(read["selected"]) == len(TURN)
    text = json.dumps(told())
    assert not [word for word in ("plastic", "about blue", "budget 300", "about bag") if word in text]


def test_small_talk_decides_nothing_and_touches_nothing(sessions: Sessions, folder: Path, told: Told) -> None:
    """A turn without constraints leaves no file, no folder of a thread and no event."""
    assert sessions.merge(THREAD, [], caller=USER).state == SessionState()

    assert list(folder.glob("*/*")) == []
    assert told() == []


def test_a_refused_constraint_is_not_enforced_and_its_words_are_not_in_the_file(
    sessions: Sessions, folder: Path
) -> None:
    """What the gate denies or holds back never reaches what is enforced; the rest of the turn does."""
    sessions.merge(THREAD, [finding("plastic")], caller=USER)
    before = pt(folder).read_bytes()

    poisoned = sessions.merge(THREAD, [like("note", content=OVERRIDE)], caller=USER)

    assert [reason for _, reason in poisoned.refused] == ["quarantined"]
    assert json.loads(pt(folder).read_bytes())["findings"] == json.loads(before)["findings"]
    assert b"Ignore" not in pt(folder).read_bytes()
    unchanged = pt(folder).read_bytes()
    nobody = caller(principal_id="", subject="user-42")
    assert sessions.merge(THREAD, [finding("leather")], caller=nobody).refused
    assert pt(folder).read_bytes() == unchanged
    mixed = sessions.merge(THREAD, [like("note", content=OVERRIDE), finding("leather")], caller=USER)
    assert [one.slug for one in mixed.state.findings] == ["plastic", "leather"]


def test_a_denied_merge_leaves_no_file(sessions: Sessions, folder: Path) -> None:
    """A caller whom the policy refuses has no state; the receipt says why."""
    nobody = caller(principal_id="", subject="user-42")
    receipt = sessions.merge(THREAD, [finding("plastic")], caller=nobody)

    assert [reason for _, reason in receipt.refused] == ["principal_missing"]
    assert list(folder.glob("*/*/pt.json")) == []


def test_a_denied_load_raises(sessions: Sessions) -> None:
    """A turn does not begin without the constraints that it may not see."""
    sessions.merge(THREAD, TURN, caller=USER)

    with pytest.raises(PolicyDeniedError):
        sessions.load(THREAD, caller=USER, purpose="personalization")


def test_what_is_redacted_from_the_record_is_redacted_in_the_file(sessions: Sessions, folder: Path) -> None:
    """A credential in a constraint does not live on beside the gate."""
    receipt = sessions.merge(THREAD, [finding("plastic", content=f"no plastic, key {AWS_KEY}")], caller=USER)

    assert receipt.entered[0].content == "no plastic, key [redacted:secret.aws_key]"
    assert AWS_KEY not in pt(folder).read_text(encoding="utf-8")


def test_it_ends_a_day_after_the_last_save(sessions: Sessions, clock: FrozenClock) -> None:
    """Expired reads as empty from the very instant on; a save begins the day anew."""
    sessions.merge(THREAD, [finding("plastic")], caller=USER)
    clock.advance(seconds=int(TTL.total_seconds()) - 1)
    sessions.merge(THREAD, [finding("leather")], caller=USER)
    clock.advance(seconds=86_399)
    assert len(sessions.load(THREAD, caller=USER).findings) == 2

    clock.advance(seconds=1)

    assert sessions.look(THREAD, caller=USER).expired
    assert sessions.load(THREAD, caller=USER) == SessionState()
    receipt = sessions.merge(THREAD, [like("cotton")], caller=USER)
    assert receipt.state.findings == (like("cotton"),)


def test_loading_does_not_prolong(sessions: Sessions, clock: FrozenClock, folder: Path) -> None:
    """A thread that is only looked at ends all the same."""
    sessions.merge(THREAD, [finding("plastic")], caller=USER)
    before = pt(folder).read_bytes()
    clock.advance(seconds=80_000)
    sessions.load(THREAD, caller=USER)
    sessions.merge(THREAD, [], caller=USER)

    assert pt(folder).read_bytes() == before


def test_a_file_from_the_future_has_ended(
    sessions: Sessions, memory: GovernedMemory, folder: Path, clock: FrozenClock
) -> None:
    """A clock that went wrong makes no constraint live for ever."""
    ahead = FrozenClock(clock.now_us())
    ahead.advance(days=400)
    Sessions(memory, folder=folder, clock=ahead).merge(THREAD, [finding("plastic")], caller=USER)

    assert sessions.look(THREAD, caller=USER).expired


def test_turns_are_kept_as_the_gate_admits_them(sessions: Sessions, clock: FrozenClock) -> None:
    """A text that is held back is None, a secret is redacted, and all of it ends with its day."""
    sessions.add_turn(THREAD, f"deploy with {AWS_KEY} today", "noted", caller=USER)
    sessions.add_turn(THREAD, OVERRIDE, None, caller=USER, status="refused")

    turns = sessions.turns(THREAD, caller=USER)

    assert [(turn.user_text, turn.reply, turn.status) for turn in turns] == [
        ("deploy with [redacted:secret.aws_key] today", "noted", "complete"),
        (None, None, "refused"),
    ]
    clock.advance(days=1)
    assert sessions.turns(THREAD, caller=USER) == ()


@pytest.mark.parametrize("reply", ["", " \n", None])
def test_a_turn_in_which_nobody_said_anything_is_refused(
    sessions: Sessions, folder: Path, told: Told, reply: str | None
) -> None:
    """It would begin a life and a file that hold nothing."""
    with pytest.raises(DocumentValueError, match="blank"):
        sessions.add_turn(THREAD, " ", reply, caller=USER)

    assert (list(folder.glob("*/*")), told()) == ([], [])


@pytest.mark.parametrize(
    "given", [{"user_text": 7}, {"reply": b"hi"}, {"status": "fine"}, {"status": ["failed"]}]
)
def test_a_turn_of_another_form_is_refused_before_anything_is_decided(
    sessions: Sessions, told: Told, given: dict[str, Any]
) -> None:
    """Neither a text of it nor a file comes to be."""
    turn = {"user_text": "hello", "reply": "hi"} | given
    with pytest.raises((DocumentTypeError, DocumentValueError)):
        sessions.add_turn(THREAD, **turn, caller=USER)

    assert told() == []


def test_a_standing_preference_is_no_constraint_of_a_session(sessions: Sessions, folder: Path) -> None:
    """It belongs to the long-term store, and is refused before anything is decided."""
    with pytest.raises(DocumentValueError, match="session"):
        sessions.merge(THREAD, [finding("plastic"), finding("leather", scope="standing")], caller=USER)

    assert list(folder.glob("*/*")) == []


def test_a_budget_that_is_taken_back_is_gone_from_the_file(tmp_path: Path) -> None:
    """It passes the gate like any constraint, and the thread has no budget from then on."""
    lift = Finding("session", "dislike", "soft", "budget", "general", "budget", "no budget", anchor="budget")
    with GovernedMemory.open("memory:") as memory:
        sessions = Sessions(memory, folder=tmp_path)
        sessions.merge(THREAD, [budget("300"), finding("plastic")], caller=USER)
        receipt = sessions.merge(THREAD, [lift], caller=USER)
        again = sessions.merge(THREAD, [lift], caller=USER)
        state = sessions.load(THREAD, caller=USER)

    assert [one.effect for one in receipt.decisions] == ["allow"]
    assert (receipt.entered, again.entered) == ((lift,), ())
    assert [one.slug for one in state.findings] == ["plastic"]
