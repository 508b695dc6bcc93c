"""Threads and users apart from each other, and the clearing of one and of all."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_runtime_ref import GovernedMemory, PolicyDeniedError
from agent_runtime_ref.session_state import Sessions, SessionState
from agent_runtime_ref.testing import FrozenClock
from tests.acceptance.session_state.threads import THREAD, TURN, USER, Told, pt
from tests.constraining import finding, like
from tests.support import caller, query


def test_users_and_tenants_have_threads_of_their_own(sessions: Sessions) -> None:
    """The same name of a thread is another thread for another user, and for another tenant."""
    sessions.merge(THREAD, [finding("plastic")], caller=USER)
    others = [
        caller(principal_id="user-43", subject="user-43"),
        caller(tenant_id="tenant-b", subject="user-42"),
        caller(subject="user-42/thread-1"),
    ]

    assert [sessions.load(THREAD, caller=other) for other in others] == [SessionState()] * 3


def test_no_read_in_another_thread_shows_its_constraints(sessions: Sessions, memory: GovernedMemory) -> None:
    """The records of one thread stand behind the subject wall: the user's own reads do not see them."""
    sessions.merge(THREAD, TURN, caller=USER)

    for text in (None, "plastic"):
        result = memory.read(query(), caller=USER, text=text)
        assert (result.hits, result.document["excluded_records"]) == ((), 0)


def test_every_durable_store_takes_what_a_session_needs(tmp_path: Path, clock: FrozenClock) -> None:
    """Merge, resolve, load and clear over files as over memory."""
    for url in ("sqlite:memory.db", "jsonl:memory.jsonl"):
        scheme, _, name = url.partition(":")
        with GovernedMemory.open(f"{scheme}:{tmp_path / name}", clock=clock) as durable:
            sessions = Sessions(durable, folder=tmp_path / scheme, clock=clock)
            sessions.merge(THREAD, TURN, caller=USER)
            sessions.merge(THREAD, [like("plastic")], caller=USER)

            assert sessions.load(THREAD, caller=USER).negative_hard == ()
            assert sessions.clear(THREAD, caller=USER)


def test_clearing_removes_files_and_records_and_the_same_may_be_said_again(
    sessions: Sessions, folder: Path, told: Told
) -> None:
    """One call, one decision for each file; what was cleared has no tombstone that outlives the clearing."""
    sessions.merge(THREAD, TURN, caller=USER)
    sessions.add_turn(THREAD, "hello", "hi", caller=USER)

    assert sessions.clear(THREAD, caller=USER)

    assert list(folder.glob("*/*")) == []
    assert sessions.load(THREAD, caller=USER) == SessionState()
    counts = [one["payload"]["counts"] for one in told() if one["event_type"] == "memory_forgotten"]
    assert counts == [{"short_term": 4}, {"short_term": 2}]
    assert sessions.merge(THREAD, TURN, caller=USER).refused == ()
    assert not sessions.clear("never-begun", caller=USER)


def test_clearing_a_damaged_thread_takes_its_records(sessions: Sessions, folder: Path, told: Told) -> None:
    """Whose records they are is found in what is left of the file, and in what was put aside."""
    sessions.merge(THREAD, [finding("plastic")], caller=USER)
    pt(folder).write_bytes(pt(folder).read_bytes()[:150])
    sessions.add_turn(THREAD, 'he said\n "life": "session-of-somebody-else"', None, caller=USER)
    sessions.merge(THREAD, [finding("leather")], caller=USER)

    assert sessions.clear(THREAD, caller=USER)

    counts = [one["payload"]["counts"] for one in told() if one["event_type"] == "memory_forgotten"]
    assert counts == [{"short_term": 1}] * 3


def test_a_clearing_that_is_refused_changes_nothing(sessions: Sessions, folder: Path) -> None:
    """An anonymous caller has no erasure of his own; files and state stay."""
    anonymous = caller(principal_id="anonymous")
    sessions.merge(THREAD, [finding("plastic")], caller=anonymous)

    with pytest.raises(PolicyDeniedError):
        sessions.clear(THREAD, caller=anonymous)

    assert sessions.load(THREAD, caller=anonymous).negative_hard == (finding("plastic"),)


def test_forgetting_a_person_takes_every_thread(sessions: Sessions, folder: Path) -> None:
    """Whoever may erase removes all threads of one person, and nobody else's."""
    other = caller(principal_id="user-43", subject="user-43")
    for thread in ("thread-1", "thread-2"):
        sessions.merge(thread, [finding("plastic")], caller=USER)
    sessions.merge(THREAD, [finding("leather")], caller=other)

    with pytest.raises(PolicyDeniedError):
        sessions.forget("user-43", caller=caller(principal_id="anonymous"))
    assert sessions.forget("user-42", caller=caller(principal_id="dpo", roles=("operator",))) == 2

    assert len(list(folder.glob("*/*"))) == 1
    assert sessions.load(THREAD, caller=other).negative_hard == (finding("leather"),)


@pytest.mark.parametrize("dry_run", [False, True])
def test_nobody_else_has_a_person_forgotten(
    sessions: Sessions, folder: Path, told: Told, dry_run: bool
) -> None:
    """A named caller without a role is refused on record: nothing goes, and nothing is counted for him."""
    sessions.merge(THREAD, [finding("plastic")], caller=USER)

    for person in ("user-42", "user-without-threads"):
        with pytest.raises(PolicyDeniedError):
            sessions.forget(person, caller=caller(principal_id="mallory"), dry_run=dry_run)

    assert sessions.load(THREAD, caller=USER).negative_hard == (finding("plastic"),)
    assert [one["event_type"] for one in told()].count("memory_forgotten") == 2
    assert sessions.forget("user-42", caller=USER, dry_run=dry_run) == 1
    assert bool(list(folder.glob("*/*/pt.json"))) == dry_run


def test_a_damaged_thread_is_cleared_by_nobody_who_may_not_erase(
    sessions: Sessions, folder: Path, told: Told
) -> None:
    """Where no life is found the person himself is decided about; an allowed clearing is on record too."""
    anonymous = caller(principal_id="anonymous")
    sessions.merge(THREAD, [finding("plastic")], caller=anonymous)
    pt(folder).write_bytes(b"{")

    with pytest.raises(PolicyDeniedError):
        sessions.clear(THREAD, caller=anonymous)

    assert pt(folder).read_bytes() == b"{"
    sessions.merge(THREAD, [finding("plastic")], caller=USER)
    (own,) = [path for path in folder.glob("*/*/pt.json") if path.read_bytes() != b"{"]
    own.write_bytes(b"{")
    before = len(told())
    assert sessions.clear(THREAD, caller=USER)
    assert [one["event_type"] for one in told()[before:]] == ["memory_forgotten"]
