"""Compaction: a memory that was kept twice is kept once, by decisions, on every store."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import AgentRuntime, GovernedMemory, PolicyDeniedError
from agent_runtime_ref.clock import instant
from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.enforcement import compact, uniting
from agent_runtime_ref.enforcement.attributes import Inspection
from agent_runtime_ref.enforcement.removals import Meant
from agent_runtime_ref.enforcement.revise import KEYS_TOLD_MAX
from agent_runtime_ref.stores.in_memory import InMemoryStore
from agent_runtime_ref.testing import NOW_US, CountedIds, FrozenClock
from tests.postgres import OPERATOR, PostgresProcess
from tests.support import caller, candidate, events, note, query

KINDS = ("memory", "sqlite", "jsonl", "file", "postgresql")


@pytest.fixture(params=KINDS)
def every_store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store, one of each kind."""
    if request.param == "memory":
        return "memory:"
    if request.param == "postgresql":
        postgres: PostgresProcess = request.getfixturevalue("postgres")
        return postgres.url(OPERATOR, request.getfixturevalue("database"))
    return f"{request.param}:{tmp_path / 'memory'}"


@pytest.fixture
def store_url() -> str:
    """In memory, where the store is not what a test is about."""
    return "memory:"


def written(memory: GovernedMemory, *provenances: str, **changes: Any) -> list[str]:
    """Write the same memory once for each provenance, and return the ids."""
    return [
        memory.write(candidate(provenance=one, **changes), caller=caller()).record.memory_id
        for one in provenances
    ]


def shown(memory: GovernedMemory) -> list[Any]:
    """Return the records that user-42 is shown."""
    return [hit.record for hit in memory.read(query(), caller=caller()).hits]


def test_repetitions_are_merged_into_the_earliest(every_store: str) -> None:
    """One record stays, the earliest, with the provenance of all; a second compaction finds nothing."""
    clock = FrozenClock()
    with GovernedMemory.open(every_store, clock=clock, ids=CountedIds()) as memory:
        ids = []
        for one in ("first_rule", "second_rule", "third_rule"):
            ids += written(memory, one)
            clock.advance(seconds=1)
        own = written(memory, "first_rule", "second_rule", subject="user-42")
        alone = {record.memory_id: record for record in shown(memory)}
        done = memory.compact(caller=caller())
        again = memory.compact(caller=caller())
        found = {record.memory_id: record for record in shown(memory)}

    assert sorted(done.kept) == sorted((ids[0], own[0]))
    assert sorted(done.removed) == sorted((*ids[1:], own[1]))
    assert (again.kept, again.removed, again.superseded) == ((), (), ())
    assert set(found) == {ids[0], own[0]}
    assert found[ids[0]].scope == ("provenance:second_rule", "provenance:third_rule")
    assert found[ids[0]].provenance == "first_rule"
    assert found[ids[0]].created_at == alone[ids[0]].created_at
    assert found[ids[0]].expires_at == max(alone[one].expires_at for one in ids)


def test_the_confidence_is_that_of_what_lasts_as_long(every_store: str) -> None:
    """Of equal ends the highest counts; what ends sooner lends its confidence to nothing later."""
    clock = FrozenClock()
    with GovernedMemory.open(every_store, clock=clock, ids=CountedIds()) as memory:
        first = written(memory, "sure_rule", confidence=1.0)
        clock.advance(seconds=1)
        written(memory, "doubtful_rule", confidence=0.5)
        written(memory, "better_rule", confidence=0.7)
        memory.compact(caller=caller())
        (kept,) = shown(memory)

    assert (kept.memory_id, kept.confidence) == (first[0], 0.7)


def test_another_retention_is_another_memory() -> None:
    """One record cannot be kept under two promises."""
    record = MemoryRecord(
        "mem-1", "t", "long_term", "fact", "It is so.", "service", 0.9, "rule", 1,
        summary="So.", retention="long_term", created_at=instant(NOW_US),
    )  # fmt: skip
    same = replace(record, memory_id="mem-2")
    assert uniting.groups_of([record, replace(same, retention="short_term")]) == []
    assert uniting.groups_of([record, same]) == [[0, 1]]


def test_a_summary_survives(memory: GovernedMemory) -> None:
    """The first summary that one of them has is that of what stays."""
    written(memory, "first_rule")
    written(memory, "second_rule", summary="Support queue.")
    written(memory, "third_rule", summary="The queue for support.")
    memory.compact(caller=caller())

    assert [record.summary for record in shown(memory)] == ["Support queue."]


@pytest.mark.parametrize("short", [uniting.LABELS_MAX, uniting.PARENTS_MAX], ids=["labels", "parents"])
def test_no_source_is_lost_where_one_record_cannot_say_them_all(short: int) -> None:
    """What does not fit stays a record of its own: forgetting finds it by what it was derived from."""
    record = MemoryRecord(
        "mem-1", "t", "long_term", "fact", "It is so.", "service", 0.9, "rule", 1, created_at=instant(NOW_US)
    )
    full = tuple(f"word-{number}" for number in range(short))
    filled = {"scope": full} if short == uniting.LABELS_MAX else {"derived_from": full}
    more = dict.fromkeys(filled, ("another",))
    records = [
        record,
        replace(record, memory_id="mem-2", **filled),
        replace(record, memory_id="mem-3", **more),
        replace(record, memory_id="mem-4", provenance="r" * 250),
        replace(record, memory_id="mem-5"),
    ]
    groups = uniting.groups_of(records)

    assert groups == [[0, 1], [3, 4]]
    one = uniting.united([records[place] for place in groups[0]])
    assert (one.scope, one.derived_from) == (filled.get("scope", ()), filled.get("derived_from", ()))


def test_what_was_merged_stays_merged(every_store: str) -> None:
    """After a new start it is as it was left, the log's chain holds, and the same write adds nothing."""
    if every_store == "memory:":
        return  # it ends with the process
    with GovernedMemory.open(every_store) as memory:
        written(memory, "first_rule")
        written(memory, "second_rule")
        memory.compact(caller=caller())
        before = shown(memory)
    with GovernedMemory.open(every_store) as memory:
        assert shown(memory) == before
        assert (
            memory.write(candidate(provenance="first_rule"), caller=caller()).duplicate_of
            == before[0].memory_id
        )
        told = [json.loads(line) for line in memory.log_lines()]
    assert [one["event_type"] for one in told if one["type"] == "event"].count("memory_not_persisted") == 0


def test_what_others_were_derived_from_is_superseded_and_not_removed(every_store: str) -> None:
    """Forgetting finds what was derived from somebody's records, so such a record stays, unread."""
    with GovernedMemory.open(every_store) as memory:
        own = written(memory, "first_rule", "second_rule", subject="user-42")
        derived = candidate("It is so.", derived_from=(own[1],), subject="user-42")
        child = memory.write(derived, caller=caller()).record
        done = memory.compact(caller=caller())
        assert (done.removed, done.superseded) == ((), (own[1],))
        told = [json.loads(line) for line in memory.log_lines()]
        assert [one for one in told if one.get("event_type") == "memory_forgotten"] == []
        assert {record.memory_id for record in shown(memory)} == {own[0], child.memory_id}
        memory.forget(subject="user-42", caller=caller())
        assert shown(memory) == []


def test_the_store_is_asked_as_often_for_few_as_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """What others were derived from is looked up at once, not record by record."""
    asked: list[str] = []

    def counted(name: str) -> Any:
        real = getattr(InMemoryStore, name)

        def look(*arguments: Any) -> Any:
            asked.append(name)
            return real(*arguments)

        return look

    def looks(number: int) -> list[str]:
        with GovernedMemory.open("memory:", clock=FrozenClock(), ids=CountedIds()) as memory:
            ids = written(memory, *(f"rule_{one}" for one in range(number)))
            derived = candidate("It is so.", derived_from=tuple(ids[1:3]))
            memory.write(derived, caller=caller())
            asked.clear()
            assert set(memory.compact(caller=caller()).superseded) == {*ids[1:3]}
            return [*asked]

    for name in ("children", "queued"):
        monkeypatch.setattr(InMemoryStore, name, counted(name))

    assert looks(4) == looks(40) == ["children"]


def test_each_removal_is_a_decision(memory: GovernedMemory, trace: Path) -> None:
    """The log has a decision for each record that went, and one event that sums up."""
    ids = written(memory, "first_rule", "second_rule", "third_rule", subject="user-42")
    before = len(list(memory.log_lines()))
    memory.compact(caller=caller())

    lines = [json.loads(line) for line in memory.log_lines()][before:]
    decisions = [one for one in lines if one["type"] == "decision"]
    assert [(one["input"]["operation"], one["result"]["effect"]) for one in decisions] == [
        ("delete", "allow")
    ] * 2
    removals = [one["payload"]["record_id"] for one in lines if one.get("event_type") == "memory_forgotten"]
    assert removals == ids[1:]
    told = [event["payload"] for event in events(trace) if event["event_type"] == "background_compaction"]
    assert [(one["removed"], one["superseded"], one["kept"]) for one in told] == [(2, 0, [ids[0]])]


@pytest.mark.parametrize(
    "changes",
    [
        {"subject": "user-42"},
        {"key": "queue"},
        {"memory_class": "short_term"},
        {"source": "user_confirmed_preference"},
        {"content": "Support tickets go to the Support queue"},
        {"tenant_id": "tenant-b"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_is_not_the_same_is_not_merged(memory: GovernedMemory, changes: dict[str, Any]) -> None:
    """Another subject, key, class, trust, word or tenant is another memory."""
    memory.write(candidate(), caller=caller())
    asking = caller(tenant_id=changes.get("tenant_id", "tenant-acme"))
    memory.write(candidate(**({"provenance": "other"} | changes)), caller=asking)
    done = memory.compact(caller=caller())

    assert (done.kept, done.removed) == ((), ())


def test_nobody_elses_memory_is_merged(memory: GovernedMemory) -> None:
    """A compaction sees what its caller sees, and no more."""
    for one in ("first_rule", "second_rule"):
        memory.write(
            candidate(provenance=one, subject="user-7"),
            caller=caller(principal_id="user-7", subject="user-7"),
        )
    assert memory.compact(caller=caller()).examined == 0


def test_redacted_records_are_left_alone(memory: GovernedMemory) -> None:
    """Two secrets that were taken out look the same; they were not."""
    for secret in ("Z7Q2M4X8R5T1V9B3", "Y7Q2M4X8R5T1V9B4"):
        memory.write(note("key AKIA" + secret, provenance=secret[:4].lower()), caller=caller())

    assert len({record.content for record in shown(memory)}) == 1
    assert memory.compact(caller=caller()).removed == ()


def test_more_than_one_read_answers(memory: GovernedMemory) -> None:
    """Many repetitions are merged in several rounds, into as few as can name where all of them came from."""
    written(memory, *(f"rule_{number}" for number in range(130)))
    done = memory.compact(caller=caller())

    assert len(done.removed) == 128
    both = shown(memory)
    told = {label for record in both for label in (f"provenance:{record.provenance}", *record.scope)}
    assert told == {f"provenance:rule_{number}" for number in range(130)}
    assert [len(record.scope) for record in both] == [uniting.LABELS_MAX] * 2
    assert memory.compact(caller=caller()).kept == ()


def test_a_refusal_leaves_all_as_it_was(memory: GovernedMemory, trace: Path) -> None:
    """Where the policy does not let a record go, none goes, and the refusal is on record."""
    nobody = caller(principal_id="anonymous")
    written(memory, "first_rule", "second_rule")
    done = memory.compact(caller=nobody)

    assert done.removed == ()
    assert [refused.decision.rule_ids for refused in done.refused] == [("MEM-W-120",)]
    assert len(shown(memory)) == 2
    with pytest.raises(PolicyDeniedError):
        memory.compact(caller=caller(), purpose="anything")


def test_the_line_of_a_refusal_does_not_grow_with_what_was_asked(
    memory: GovernedMemory, store_url: str
) -> None:
    """Of candidates that are alike one is named, and the line says how many were asked about."""
    nobody = caller(principal_id="anonymous")
    written(memory, *(f"rule_{number}" for number in range(60)))
    memory.compact(caller=nobody)

    lines = [line for line in memory.log_lines() if '"MEM-W-120"' in line and '"type":"decision"' in line]
    (line,) = lines
    said = json.loads(line)
    assert len(line) < 3_000
    assert (said["result"]["asked"], len(said["input"]["candidates"])) == (59, 1)
    assert [(row["index"], row["rule_id"]) for row in said["result"]["deny"]] == [(0, "MEM-W-120")]


def test_the_event_of_a_removal_names_so_many_keys(memory: GovernedMemory, trace: Path) -> None:
    """What it does not name it counts."""
    keys = tuple(f"key-{number}" for number in range(KEYS_TOLD_MAX + 20))
    memory.write_many([candidate(key, key=key, subject="user-42") for key in keys], caller=caller())
    assert len(memory.remove(Meant("long_term", keys), caller=caller())) == len(keys)

    told = [event["payload"] for event in events(trace) if event["event_type"] == "preferences_curated"]
    assert [(len(one["keys"]), one["counts"]) for one in told] == [
        (KEYS_TOLD_MAX, {"removed": len(keys), "keys_not_named": 20})
    ]


def test_a_record_that_changes_meanwhile_is_not_lost(
    memory: GovernedMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was seen and is another by now is neither removed nor written over."""
    ids = written(memory, "first_rule", "second_rule", subject="user-42")
    decided = compact.Removals.decided

    def forgetting(*arguments: Any, **options: Any) -> Any:
        removals = decided(*arguments, **options)
        memory.forget(subject="user-42", caller=caller())
        return removals

    monkeypatch.setattr(compact.Removals, "decided", forgetting)
    done = memory.compact(caller=caller())

    assert done.removed == ()
    inspection = Inspection(principal_id="op", limit=10, tenant_id="tenant-acme")
    left = memory.inspect(inspection, caller=replace(caller(), principal_id="op", roles=("operator",))).hits
    assert [hit.record.memory_id for hit in left if hit.record.memory_id in ids] == []


def test_a_turn_compacts_behind_its_reply(memory: GovernedMemory) -> None:
    """The work behind a turn merges what its user's memory holds twice, and says so."""
    ids = written(memory, "first_rule", "second_rule")
    with AgentRuntime.open(memory) as runtime:
        result = runtime.run("Where do support tickets go?", caller=caller())
        assert runtime.drain()

    told = [event.payload for event in result.events if event.event_type == "background_compaction"]
    assert [(one["removed"], one["kept"]) for one in told] == [(1, [ids[0]])]


def test_a_large_memory_is_looked_through_less_often(memory: GovernedMemory) -> None:
    """With thirty records it is done again after three turns."""
    for number in range(29):
        memory.write(note(f"note {number}", subject="user-42"), caller=caller())
    with AgentRuntime.open(memory) as runtime:
        results = [runtime.run(f"message {number}", caller=caller()) for number in range(5)]
        assert runtime.drain()

    names = [[event.event_type for event in one.events].count("background_compaction") for one in results]
    assert names == [1, 0, 0, 0, 1]
