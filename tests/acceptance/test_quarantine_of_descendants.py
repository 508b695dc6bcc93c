"""Putting records into quarantine: a step of its own, and all that came of a record in one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from agent_runtime_ref import Caller, GovernedMemory, PolicyDeniedError, WriteReceipt
from agent_runtime_ref.clock import timestamp
from agent_runtime_ref.errors import RevisionConflictError
from agent_runtime_ref.resources import policies_path
from agent_runtime_ref.stores.in_memory import InMemoryStore
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.testing import FrozenClock, RacingStore
from tests.acceptance.addresses import address
from tests.acceptance.command import Command
from tests.reviewing import ATTACK, OPERATOR, REVIEWER, opened, read_ids
from tests.support import TENANT, caller, candidate, note, query

__all__ = ["address"]
START_US = 1_700_000_000_000_000


def _family(memory: GovernedMemory) -> list[str]:
    """Write a fact, a note of it, and a note of that note; return their ids."""
    fact = memory.write(candidate("Orders go to Basel", key="orders"), caller=caller()).record.memory_id
    child = memory.write(note("Basel it is", derived_from=(fact,)), caller=caller()).record.memory_id
    last = memory.write(note("Basel, still", derived_from=(child,)), caller=caller()).record.memory_id
    return [fact, child, last]


def _decisions(memory: GovernedMemory) -> list[dict[str, Any]]:
    lines = (json.loads(line) for line in memory.log_lines())
    return [one for one in lines if one["type"] == "decision" and one["input"]["operation"] == "quarantine"]


@pytest.fixture
def told(address: str) -> Iterator[GovernedMemory]:
    """An empty memory in each durable store, on a clock that stands still."""
    with GovernedMemory.open(address, clock=FrozenClock(START_US)) as memory:
        yield memory


def test_what_is_put_into_quarantine_is_read_by_nobody(told: GovernedMemory) -> None:
    """Each record has its decision and its event, and is in the queue with the reason of the queue."""
    ids = _family(told)
    decisions = told.quarantine(ids[1:], caller=OPERATOR, reason="SEC-1")

    assert read_ids(told) == ids[:1]
    logged = _decisions(told)
    assert [one["decision_id"] for one in logged] == [one.decision_id for one in decisions]
    assert {one["result"]["effect"] for one in logged} == {"allow"}
    lines = [json.loads(line) for line in told.log_lines()]
    events = [one["payload"] for one in lines if one.get("event_type") == "memory_quarantined"]
    assert [one["record_id"] for one in events] == ids[1:]
    assert {(one["reviewer"], one["reason"]) for one in events} == {("oscar", "SEC-1")}


def test_another_person_lets_it_go(told: GovernedMemory) -> None:
    """Who put it there counts as its writer; a released record is found as before, with its lineage."""
    ids = _family(told)
    told.quarantine(ids, caller=OPERATOR, reason="SEC-1")
    with pytest.raises(PolicyDeniedError) as refused:
        told.release(ids[0], caller=OPERATOR, reason="SEC-2")
    assert refused.value.decision.reasons == ("four_eyes",)

    for record_id in ids:
        assert told.release(record_id, caller=REVIEWER, reason="SEC-2").record is not None
    assert sorted(read_ids(told)) == sorted(ids)
    found = told.read(query(), caller=caller(), text="Basel")
    assert sorted(hit.record.memory_id for hit in found.hits) == sorted(ids)
    descent = told.descent(ids[0], caller=OPERATOR)
    assert [one.memory_id for one in descent.descendants] == ids[1:]


def test_the_slot_is_free_while_it_waits(told: GovernedMemory) -> None:
    """A new record under its key is no replacement of it; released, it stands beside and replaces nothing."""
    fact = told.write(candidate("The queue is Q1", key="queue"), caller=caller()).record.memory_id
    told.quarantine([fact], caller=OPERATOR, reason="SEC-1")
    new = told.write(
        candidate("The queue is Q2", key="queue", revision_mode="replace"), caller=caller()
    ).record.memory_id
    assert read_ids(told) == [new]

    assert told.release(fact, caller=REVIEWER, reason="SEC-2").supersedes is None
    assert sorted(read_ids(told)) == sorted([fact, new])


def test_all_or_none(told: GovernedMemory) -> None:
    """One that waits there already, or that another tenant has, keeps all of them where they are."""
    ids = _family(told)
    waiting = told.write(candidate(ATTACK), caller=caller()).record.memory_id
    for wrong in (waiting, "mem-nowhere"):
        with pytest.raises(PolicyDeniedError) as refused:
            told.quarantine([*ids, wrong], caller=OPERATOR, reason="SEC-1")
        assert refused.value.decision.reasons == ("not_active",)
        assert len(read_ids(told)) == 3
    foreign = Caller("tenant-b", "oscar", roles=("operator",))
    with pytest.raises(PolicyDeniedError):
        told.quarantine(ids, caller=foreign, reason="SEC-1")
    assert told.quarantine([], caller=OPERATOR, reason="SEC-1") == []
    assert len(read_ids(told)) == 3


def test_only_a_reviewer_may(told: GovernedMemory) -> None:
    """Whoever writes and reads does not put away what is in others' way."""
    ids = _family(told)
    with pytest.raises(PolicyDeniedError) as refused:
        told.quarantine(ids, caller=caller(), reason="SEC-1")

    assert refused.value.decision.rule_ids == ("MEM-W-401",)
    assert {one["result"]["effect"] for one in _decisions(told)} == {"deny"}


def test_a_record_that_changes_meanwhile_is_decided_again() -> None:
    """Superseded between the decision and the commit, it is no longer active, and the policy says so."""
    store = open_store("memory:")
    with opened(store, FrozenClock()) as plain:
        old = plain.write(candidate("The queue is Q1", key="queue"), caller=caller()).record.memory_id

        def replaced() -> None:
            newer = candidate("The queue is Q2", key="queue", revision_mode="replace")
            plain.write(newer, caller=caller())

        racing = RacingStore(store, method="commit", action=replaced)
        with pytest.raises(PolicyDeniedError) as refused:
            opened(racing, FrozenClock()).quarantine([old], caller=OPERATOR, reason="SEC-1")

    assert refused.value.decision.reasons == ("not_active",)


def test_a_record_that_keeps_changing_is_given_up() -> None:
    """Where every look is outdated by the commit, nothing is done and that is said."""
    store = open_store("memory:")
    with opened(store, FrozenClock()) as plain:
        old = plain.write(candidate(), caller=caller()).record.memory_id

        class Restless:
            """A store in which no commit finds what was seen."""

            def __getattr__(self, name: str) -> Any:
                return getattr(store, name)

            def commit(self, batch: Any) -> Any:
                if batch.changes:
                    raise RevisionConflictError("memory:", "the record is no longer as it was")
                return store.commit(batch)

        with pytest.raises(RevisionConflictError):
            opened(Restless(), FrozenClock()).quarantine([old], caller=OPERATOR, reason="SEC-1")
        assert read_ids(plain) == [old]


def test_what_came_of_a_record_goes_in_one_step(address: str, command: Command) -> None:
    """A dry run says what would be done; with --apply it is done, and what is not active is left."""
    with GovernedMemory.open(address) as memory:
        ids = _family(memory)
        memory.quarantine(ids[2:], caller=OPERATOR, reason="SEC-0")
    words = ("trace", "exposure", ids[0], "--store", address, "--quarantine", "all")
    who = ("--tenant", TENANT, "--principal", "oscar")

    dry = command(*words, *who)
    assert (dry.code, "nothing was put into quarantine" in dry.err) == (0, True)
    step = dry.document["quarantine"]
    left = [{"record_id": ids[2], "status": "quarantined"}]
    assert step == {"applied": False, "records": ids[:2], "left": left, "decision_ids": []}
    done = command(*words, *who, "--reason", "SEC-1", "--apply").document["quarantine"]
    assert (done["applied"], done["records"], len(done["decision_ids"])) == (True, ids[:2], 2)
    with GovernedMemory.open(address) as memory:
        assert read_ids(memory) == []


def test_descendants_leave_the_record_itself(address: str, command: Command) -> None:
    """What came of it is put away; the record stays where it is."""
    with GovernedMemory.open(address) as memory:
        ids = _family(memory)
    words = ("trace", "exposure", ids[0], "--store", address, "--quarantine", "descendants")
    assert command(*words, "--reason", "SEC-1", "--apply").code == 0
    with GovernedMemory.open(address) as memory:
        assert read_ids(memory) == ids[:1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--apply",), "say it with --quarantine"),
        (("--reason", "SEC-1"), "say it with --quarantine"),
        (("--quarantine", "all", "--apply"), "--apply needs --reason"),
        (("--quarantine", "none"), "invalid choice"),
    ],
)
def test_half_of_a_step_is_a_mistake(words: tuple[str, ...], sentence: str, command: Command) -> None:
    """Each exits 2 before anything is opened."""
    answer = command("trace", "exposure", "mem-1", "--store", "sqlite:nowhere.db", *words)

    assert (answer.code, answer.out) == (2, "")
    assert sentence in answer.err


def test_as_of_and_replay_know_when_it_went(address: str, command: Command) -> None:
    """Before the step it was shown, between step and release it was not, after that it was again."""
    clock = FrozenClock(START_US)
    moments = []
    with GovernedMemory.open(address, clock=clock) as memory:
        ids = _family(memory)
        for step in (None, "quarantine", "release", "quarantine"):
            if step == "quarantine":
                memory.quarantine(ids[:1], caller=OPERATOR, reason="SEC-1")
            elif step == "release":
                memory.release(ids[0], caller=REVIEWER, reason="SEC-2")
            moments.append((timestamp(clock.now_us()), ids[0] in read_ids(memory)))
            clock.advance(days=1)

    assert [shown for _, shown in moments] == [True, False, True, False]
    who = ("--tenant", TENANT, "--as", "user-42", "--purpose", "answer_generation")
    for at, shown in moments:
        answer = command("inspect-memory", *who, "--as-of", at, "--store", address)
        found = [one["memory_id"] for one in answer.document["records"]]
        assert (at, ids[0] in found) == (at, shown)
    replayed = command(
        "policy", "replay", "--policies", policies_path(), "--store", address, "--format", "json"
    )
    assert replayed.document["unchanged"] == replayed.document["decisions"]


def test_the_log_names_who_wrote_what_is_taken_back() -> None:
    """The store keeps the writer of what waits, not of what is active: who releases looks into the log."""
    writer = Caller(TENANT, "ada", roles=["reviewer"])
    with GovernedMemory.open("memory:") as memory:
        record_id = memory.write(candidate("Orders go to Basel"), caller=writer).record.memory_id
        memory.quarantine([record_id], caller=OPERATOR, reason="SEC-1")
        with pytest.raises(PolicyDeniedError, match="four_eyes"):
            memory.release(record_id, caller=OPERATOR, reason="SEC-2")

        lines = [json.loads(line) for line in memory.log_lines()]
        (kept,) = [one["payload"] for one in lines if one.get("event_type") == "memory_persisted"]
        assert (kept["record_id"], kept["principal_id"]) == (record_id, "ada")
        assert memory.release(record_id, caller=writer, reason="SEC-2").record is not None


def test_a_descent_asks_once_for_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many records a step has, the store is asked once what came of them."""
    asked: list[int] = []
    children = InMemoryStore.children

    def counted(self: InMemoryStore, tenant_id: str, ids: Sequence[str]) -> list[str]:
        asked.append(len(ids))
        return children(self, tenant_id, ids)

    with GovernedMemory.open("memory:") as memory:
        fact = memory.write(candidate("Orders go to Basel"), caller=caller()).record.memory_id
        many = memory.write_many(
            [note(f"Basel {number}", derived_from=(fact,)) for number in range(60)], caller=caller()
        )
        parents = tuple(one.record.memory_id for one in many if isinstance(one, WriteReceipt))
        memory.write(note("Basel, all of it", derived_from=parents), caller=caller())
        monkeypatch.setattr(InMemoryStore, "children", counted)
        assert len(memory.descent(fact, caller=OPERATOR).descendants) == 61
    assert asked == [1, 60, 1]
