"""Kinds of fault that users of memory systems reported, each tried on every kind of store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import Caller, GovernedMemory, PolicyDeniedError
from agent_runtime_ref.errors import GovernanceError
from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.policy.embedded import EmbeddedEngine
from agent_runtime_ref.preferences import PreferenceStore
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.testing import CountedIds, FrozenClock, RacingStore
from tests.postgres import OPERATOR
from tests.preferring import finding, inferred
from tests.reviewing import ATTACK, REVIEWER, held, shown
from tests.support import caller, candidate, note, query

KINDS = ("memory", "sqlite", "jsonl", "file", "postgresql", "redis")
PERSON = caller(subject="user-42")


@pytest.fixture(params=KINDS)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store, one of each kind."""
    if request.param == "memory":
        return "memory:"
    if request.param == "postgresql":
        postgres = request.getfixturevalue("postgres")
        return str(postgres.url(OPERATOR, request.getfixturevalue("database")))
    if request.param == "redis":
        server = request.getfixturevalue("durable_redis")
        server.empty()
        return str(server.url())
    return f"{request.param}:{tmp_path / 'memory'}"


@pytest.fixture
def clock() -> FrozenClock:
    """The clock of the fixture `memory`."""
    return FrozenClock()


@pytest.fixture
def memory(address: str, clock: FrozenClock) -> Iterator[GovernedMemory]:
    """An empty governed memory."""
    with GovernedMemory.open(address, clock=clock, ids=CountedIds()) as opened:
        yield opened


def _contents(memory: GovernedMemory, text: str | None = None, **changes: Any) -> list[str]:
    hits = memory.read(query(limit=100, **changes), caller=PERSON, text=text).hits
    return [hit.record.content for hit in hits]


# --- what runs behind somebody's back ----------------------------------------------------------------------


def _replaced(rival: GovernedMemory, ids: list[str]) -> None:
    rival.write(note("newer words", key="k", subject="user-42", revision_mode="replace"), caller=PERSON)


def _forgotten(rival: GovernedMemory, ids: list[str]) -> None:
    rival.forget(subject="user-42", caller=PERSON)


def _quarantined(rival: GovernedMemory, ids: list[str]) -> None:
    rival.quarantine(ids, caller=REVIEWER, reason="SEC-1")


def _compacted(rival: GovernedMemory, ids: list[str]) -> None:
    rival.compact(caller=PERSON)


@pytest.mark.parametrize(
    ("act", "left"),
    [
        (_replaced, ["newer words"]),
        (_forgotten, []),
        (_quarantined, []),
        (_compacted, ["same words"]),
    ],
)
def test_a_rewrite_in_the_background_revives_nothing(
    address: str, act: Callable[[GovernedMemory, list[str]], None], left: list[str]
) -> None:
    """What is superseded, forgotten or withheld while a compaction is at work stays so."""
    bundle, store = load_bundle(), open_store(address)
    ids = CountedIds()

    def over(inner: Any) -> GovernedMemory:
        return GovernedMemory(
            store=inner, engine=EmbeddedEngine(bundle), bundle=bundle, clock=FrozenClock(), ids=ids
        )

    rival = over(store)
    kept = [
        rival.write(
            note("same words", key="k", subject="user-42", provenance=f"turn-{n}"), caller=PERSON
        ).record.memory_id
        for n in (1, 2)
    ]
    racing = RacingStore(store, method="commit", action=lambda: act(rival, kept))
    over(racing).compact(caller=PERSON)

    assert _contents(rival) == left
    assert _contents(rival, "same") == [one for one in left if "same" in one]
    active = [one.content for one in shown(rival) if one.status == "active"]
    assert active == left
    rival.close()


def test_what_is_forgotten_while_it_is_concluded_is_not_learnt(address: str) -> None:
    """An inference that was decided before its preference was forgotten, and commits after, is refused."""
    bundle, store = load_bundle(), open_store(address)
    ids = CountedIds()

    def over(inner: Any) -> GovernedMemory:
        return GovernedMemory(
            store=inner, engine=EmbeddedEngine(bundle), bundle=bundle, clock=FrozenClock(), ids=ids
        )

    rival = over(store)
    liked = PreferenceStore(memory=rival)
    liked.write(inferred(), caller=PERSON)
    key = "dislike:material:general:plastic"
    racing = RacingStore(store, method="commit", action=lambda: liked.forget(key, caller=PERSON))
    outcome = PreferenceStore(memory=over(racing)).write(inferred("Avoids plastic"), caller=PERSON)

    assert outcome.outcome == "refused"
    assert liked.read(caller=PERSON) == ()
    rival.close()


# --- reviews -----------------------------------------------------------------------------------------------


def test_a_release_lands_once_and_where_the_record_waits(address: str, tmp_path: Path) -> None:
    """Of two stores with a record of the same id, the one that is told to lets its own go, and once."""
    other_address = f"sqlite:{tmp_path / 'other.db'}"
    with (
        GovernedMemory.open(address, clock=FrozenClock(), ids=CountedIds()) as memory,
        GovernedMemory.open(other_address, clock=FrozenClock(), ids=CountedIds()) as other,
    ):
        record_id = held(memory)
        assert held(other) == record_id
        receipt = memory.release(record_id, caller=REVIEWER, reason="SEC-1")
        with pytest.raises(PolicyDeniedError, match="not_in_quarantine"):
            memory.release(record_id, caller=REVIEWER, reason="SEC-1")

        assert receipt.record is not None
        assert [(one.memory_id, one.status) for one in shown(memory)] == [(record_id, "active")]
        assert [(one.memory_id, one.status) for one in shown(other)] == [(record_id, "quarantined")]
        assert (_contents(memory), _contents(other)) == ([ATTACK], [])


def test_a_release_changes_nothing_but_what_a_review_decides(memory: GovernedMemory) -> None:
    """Key, subject, lineage, labels and instants are those that the writer gave."""
    given = {"key": "k", "subject": "user-42", "scope": ("a", "b:c"), "provenance": "turn-1"}
    record_id = held(memory, by=PERSON, **given)
    (before,) = shown(memory)
    memory.release(record_id, caller=REVIEWER, reason="SEC-1")

    (after,) = shown(memory)
    decided = {"status": after.status, "trust_level": after.trust_level, "retention": after.retention,
               "expires_at": after.expires_at}  # fmt: skip
    assert (after, after.status) == (replace(before, **decided), "active")


def test_a_released_preference_is_where_its_reader_looks(memory: GovernedMemory) -> None:
    """Approved, it is read as any other; before, and after another took its place, it is not."""
    liked = PreferenceStore(memory=memory)
    waiting = liked.write(finding(ATTACK), caller=PERSON)
    assert (waiting.outcome, liked.read(caller=PERSON)) == ("quarantined", ())
    assert waiting.record_id is not None
    memory.release(waiting.record_id, caller=REVIEWER, reason="SEC-1")

    assert [one.content for one in liked.read(caller=PERSON)] == [ATTACK]
    assert liked.write(finding("I hate plastic"), caller=PERSON).outcome == "repeated"
    assert [one.content for one in liked.read(caller=PERSON)] == ["I hate plastic"]


# --- one record, one state, for every reader ---------------------------------------------------------------


def test_values_that_go_back_and_forth_leave_one_active(memory: GovernedMemory) -> None:
    """A, B and A again under a key: three revisions, the last is active."""
    for value in ("A", "B", "A"):
        memory.write(note(f"value {value}", key="k", revision_mode="replace"), caller=caller())

    assert _contents(memory) == ["value A"]
    assert [one.revision for one in shown(memory) if one.status == "active"] == [3]


def test_no_reader_shows_what_is_withheld_over_or_gone(memory: GovernedMemory, clock: FrozenClock) -> None:
    """Quarantined, superseded, expired and forgotten records are hidden from every way of reading."""
    memory.write(note("apricot that ends", subject="user-42"), caller=PERSON)
    clock.advance(days=31)
    memory.write(note("apricot before", key="k", subject="user-42"), caller=PERSON)
    memory.write(note("apricot now", key="k", subject="user-42", revision_mode="replace"), caller=PERSON)
    held(memory, f"{ATTACK} apricot", by=PERSON)
    gone = memory.write(note("apricot gone", subject="user-7"), caller=caller(subject="user-7")).record
    memory.forget(subject="user-7", caller=caller(subject="user-7"))
    seen: list[str] = []

    def choose(records: Any) -> list[int]:
        seen.extend(record.content for record in records)
        return []

    memory.choose(query(), choose, caller=PERSON)
    assert seen == ["apricot now"]
    for operation in ("search", "get", "list"):
        for text in ("apricot", None):
            result = memory.read(query(), caller=PERSON, text=text, operation=operation)
            assert [hit.record.content for hit in result.hits] == ["apricot now"]
    for subject in ("user-42", "user-7"):
        got = memory.read(query(record_ids=[gone.memory_id]), caller=caller(subject=subject))
        assert got.hits == ()
    assert memory.recall("apricot", caller=PERSON).hits == ()


def test_expired_records_leave_live_ones_their_place(memory: GovernedMemory, clock: FrozenClock) -> None:
    """Five that match better and have expired do not use up the limit."""
    for number in range(5):
        memory.write(note(f"alpha beta gamma {number}"), caller=caller())
    clock.advance(days=31)
    memory.write(note("alpha only"), caller=caller())

    hits = memory.read(query(limit=5), caller=caller(), text="alpha beta gamma").hits
    assert [hit.record.content for hit in hits] == ["alpha only"]


def test_ties_are_ordered_by_id(memory: GovernedMemory) -> None:
    """Equal scores, trust and time fall back to the id, in every store alike."""
    for number in range(6):
        memory.write(note("same words", provenance=f"turn-{number}"), caller=caller())
    for text in ("same", None):
        orders = {
            tuple(
                hit.record.memory_id for hit in memory.read(query(limit=3), caller=caller(), text=text).hits
            )
            for _ in range(5)
        }
        assert len(orders) == 1
        assert list(next(iter(orders))) == sorted(one.memory_id for one in shown(memory))[:3]


def test_one_subjects_removal_counts_its_own(memory: GovernedMemory) -> None:
    """The receipt counts what went, and what is of others is as it was, the same subject elsewhere too."""
    there = caller(tenant_id="tenant-b", subject="user-42")
    memory.write(note("of b", tenant_id="tenant-b", subject="user-42"), caller=there)
    memory.write(note("of seven", subject="user-7"), caller=caller(subject="user-7"))
    memory.write(note("of nobody"), caller=caller())
    for number in range(3):
        memory.write(note(f"mine {number}", subject="user-42"), caller=PERSON)

    assert memory.forget(subject="user-42", caller=PERSON, dry_run=True).records == 3
    assert memory.forget(subject="user-42", caller=PERSON).records == 3
    assert _contents(memory) == ["of nobody"]
    assert [hit.record.content for hit in memory.read(
        query(tenant_id="tenant-b"), caller=there).hits] == ["of b"]  # fmt: skip
    assert len(shown(memory)) == 2


def test_lower_trust_never_replaces_higher(memory: GovernedMemory) -> None:
    """A confirmed fact stays when something less certain is offered under its key."""
    memory.write(
        candidate("allergic to nuts", key="nuts", source="user_confirmed_preference", subject="user-42",
                  kind="preference", memory_class="profile", provenance="form"), caller=PERSON)  # fmt: skip
    with pytest.raises(PolicyDeniedError, match="lower_trust_replaces_higher"):
        memory.write(
            candidate("eats nuts", key="nuts", subject="user-42", kind="preference", memory_class="profile",
                      source="trusted_service", revision_mode="replace"), caller=PERSON)  # fmt: skip

    assert _contents(memory) == ["allergic to nuts"]


def test_a_subject_that_only_begins_like_it_has_nothing(memory: GovernedMemory) -> None:
    """Asking for somebody without data returns nobody else's, preferences and conversations neither."""
    liked = PreferenceStore(memory=memory)
    liked.write(finding(), caller=caller(subject="u1"))
    for subject in ("u", "u11", "U1", "u*", "u?", "[u]1", "u%", "u_"):
        who: Caller = caller(subject=subject)
        assert liked.read(caller=who) == ()
        assert liked.read_relevant("plastic", caller=who) == ()
        try:
            removed = liked.forget("dislike:material:general:plastic", caller=who).removed
        except GovernanceError:
            removed = ()
        assert removed == ()
    assert len(liked.read(caller=caller(subject="u1"))) == 1
