"""Recall through the read gate: the seed's answer, as far as the policy shows it."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import AsyncGovernedMemory, Caller, GovernedMemory, Origin, PolicyDeniedError
from agent_runtime_ref.clock import instant
from agent_runtime_ref.contracts.stored import MemoryKind
from agent_runtime_ref.enforcement import ranked
from agent_runtime_ref.enforcement.recollection import FIRST_TAKE
from agent_runtime_ref.errors import (
    RemoteMemoryScopeError,
    RemoteMemoryValidationError,
    StoreCapabilityError,
)
from agent_runtime_ref.recall import HybridRanker, RecallEngine
from agent_runtime_ref.resources import policies_path
from agent_runtime_ref.testing import NOW_US, CountedIds, FaultyStore, FrozenClock, LyingStore
from tests.acceptance.test_foreign_bundle import NOT_IN_THE_PLAN
from tests.hash_embedding import HashEmbedding
from tests.recalling import SCOPE, Held, ago, loaded, stored
from tests.support import caller, candidate, events


def opened(store_url: str = "memory:", **options: Any) -> GovernedMemory:
    """Return governed memory with a frozen clock and counted ids."""
    return GovernedMemory.open(store_url, clock=FrozenClock(), ids=CountedIds(), **options)


def test_the_answer_is_the_tool_json(store_url: str) -> None:
    """The result has the seed's five keys; a hit also names the decision that let it out."""
    with opened(store_url) as memory:
        loaded(memory, [stored("c-1", "Layered memory", captured=ago(1)), stored("c-2", "other")], caller())
        result = memory.recall(" LAYERED   Memory ", caller=caller())

    document = result.to_dict()
    assert list(document) == ["query", "hits", "searched_records", "candidate_records", "empty_reason"]
    assert document["query"] == {
        "query_id": document["query"]["query_id"],
        "text": "LAYERED Memory",
        "normalized_text": "layered memory",
        "terms": ["layered", "memory"],
        "user_scope": SCOPE,
        "limit": 5,
    }
    source = {
        "source_id": "transcript-c-1",
        "source_type": "conversation_transcript",
        "title": "a title",
        "captured_at": ago(1),
    }
    [hit] = document["hits"]
    assert hit == {
        "memory_id": "c-1",
        "rank": 1,
        "scope": {"user_scope": SCOPE, "memory_kind": "conversation"},
        "provenance": source,
        "source": source,
        "score": 0.995161,
        "score_breakdown": {
            "matched_terms": ["layered", "memory"],
            "query_term_count": 2,
            "lexical_coverage": 1.0,
            "recency": 0.967742,
            "weights": {"lexical": 0.85, "recency": 0.15},
            "contributions": {"lexical": 0.85, "recency": 0.145161},
            "total": 0.995161,
        },
        "decision_id": result.hits[0].decision_id,
    }
    assert result.decision is not None
    assert result.hits[0].decision_id == result.decision.decision_id
    assert (document["searched_records"], document["candidate_records"]) == (2, 1)
    assert document["empty_reason"] is None


def test_what_happened_last_comes_first_whenever_it_was_kept(store_url: str) -> None:
    """Recency is by captured_at; a record that was kept late gains nothing, nor does one from the future."""
    records = [
        stored("kept-late", "memory", captured=ago(90), kept=ago(0)),
        stored("kept-early", "memory", captured=ago(10), kept=ago(9)),
        stored("tomorrow", "memory", captured=ago(-1), kept=ago(400)),
    ]
    with opened(store_url) as memory:
        loaded(memory, records, caller())
        result = memory.recall("memory", caller=caller())

    assert [hit.memory_id for hit in result.hits] == ["tomorrow", "kept-early", "kept-late"]
    assert result.hits[0].score == 1.0


def test_the_best_is_found_however_far_down_the_stores_order_it_stands(store_url: str) -> None:
    """More matches than one search brings: the gate looks on, and answers as the pure pipeline does."""
    count = 3 * FIRST_TAKE
    records = [
        stored(f"c-{number:04d}", "memory", captured=ago(300 - number), kept=ago(number))
        for number in range(count)
    ]
    with opened(store_url) as memory:
        loaded(memory, records, caller())
        governed = memory.recall("memory", caller=caller())
    pure = RecallEngine(Held(records)).recall("memory", as_of=instant(NOW_US))

    assert [hit.memory_id for hit in governed.hits] == [hit.memory_id for hit in pure.hits]
    assert governed.hits[0].memory_id == f"c-{count - 1:04d}"
    assert governed.candidate_records == governed.searched_records == count


def test_the_word_conversation_finds_only_those_who_speak_of_one(store_url: str) -> None:
    """Recall looks at summary and content; kind and key, by which a read also finds, do not count."""
    records = [stored("c-1", "a conversation about sqlite"), stored("c-2", "sqlite")]
    with opened(store_url) as memory:
        loaded(memory, records, caller())
        result = memory.recall("conversation", caller=caller())

    assert [hit.memory_id for hit in result.hits] == ["c-1"]
    assert (result.searched_records, result.candidate_records) == (2, 1)


def test_profiles_are_never_hits_and_the_latest_is_shown(store_url: str) -> None:
    """The snapshot that was captured last begins a conversation, whenever it was kept."""
    records = [
        stored("c-1", "sqlite"),
        stored("p-1", "knows sqlite well", kind=MemoryKind.PROFILE, captured=ago(3), kept=ago(1)),
        stored("p-2", "knows sqlite", kind=MemoryKind.PROFILE, captured=ago(9), kept=ago(0)),
    ]
    with opened(store_url) as memory:
        assert memory.latest_profile(caller=caller()) is None
        loaded(memory, records, caller())
        result = memory.recall("sqlite", caller=caller())
        profile = memory.latest_profile(caller=caller())
        assert memory.latest_profile(caller=caller(principal_id="user-43")) is None

    assert [hit.memory_id for hit in result.hits] == ["c-1"]
    assert result.searched_records == 1
    assert profile == records[1]


def test_what_the_policy_keeps_out_is_no_hit_and_is_counted(store_url: str) -> None:
    """Low trust stays out of answers: where that was every match, the reason says so."""
    untrusted = candidate(
        "sqlite notes", kind="conversation", source="agent_authored", subject="user-42", provenance="turn-1"
    )
    with opened(store_url) as memory:
        memory.write(untrusted, caller=caller())
        loaded(memory, [stored("c-1", "postgres")], caller())
        kept_out = memory.recall("sqlite", caller=caller())
        found = memory.recall("postgres sqlite", caller=caller())
        nothing = memory.recall("redis", caller=caller())

    assert (kept_out.hits, kept_out.empty_reason) == ((), "excluded_by_policy")
    assert (kept_out.searched_records, kept_out.candidate_records) == (2, 0)
    assert [hit.memory_id for hit in found.hits] == ["c-1"]
    assert (found.searched_records, found.candidate_records, found.empty_reason) == (2, 1, None)
    assert nothing.empty_reason == "no_matching_terms"


def test_a_purpose_that_may_not_read_is_refused(store_url: str) -> None:
    """As any read is: the refusal carries the decision, and nothing was looked at."""
    with opened(store_url) as memory:
        loaded(memory, [stored("c-1", "sqlite")], caller())
        with pytest.raises(PolicyDeniedError, match="purpose_unknown"):
            memory.recall("sqlite", caller=caller(), purpose="marketing")


def test_nobody_recalls_what_others_talked_about(store_url: str) -> None:
    """Neither another user of the tenant nor the same user id in another tenant."""
    with opened(store_url) as memory:
        loaded(memory, [stored("c-1", "sqlite")], caller())
        for stranger in (caller(principal_id="user-43"), Caller("tenant-b", "user-42")):
            result = memory.recall("sqlite", caller=stranger)
            assert (result.hits, result.searched_records, result.candidate_records) == ((), 0, 0)
            assert result.empty_reason == "no_matching_terms"


def test_recalling_writes_nothing_but_its_decision(store_url: str) -> None:
    """The log of writes stays as it is; that of reads grows by one decision, whatever was found."""
    with opened(store_url) as memory:
        loaded(memory, [stored("c-1", "sqlite")], caller())
        before = list(memory.log_lines())
        for text in ("sqlite", "redis"):
            memory.recall(text, caller=caller())
        assert list(memory.log_lines()) == before
        lines = [json.loads(line) for line in memory.log_lines(read=True)]

    decisions = [line for line in lines if line["type"] == "decision"]
    assert [line["input"]["query"]["kinds"] for line in decisions] == [["conversation"]] * 2
    assert "sqlite" not in json.dumps(decisions)


def test_a_query_without_anything_to_search_by_is_a_refusal_on_record(store_url: str) -> None:
    """It is the seed's error, and the log says that nothing was read."""
    with opened(store_url) as memory:
        for text, said in ((" ", "must not be empty"), ("。!?", "no searchable terms")):
            with pytest.raises(RemoteMemoryValidationError, match=said):
                memory.recall(text, caller=caller())
        lines = [json.loads(line) for line in memory.log_lines(read=True)]
        with pytest.raises(RemoteMemoryValidationError, match="between 1 and 10"):
            memory.recall("sqlite", caller=caller(), limit=11)
        with pytest.raises(RemoteMemoryValidationError, match="must be a string"):
            memory.recall(b"sqlite", caller=caller())  # type: ignore[arg-type]

    assert [line["result"]["effect"] for line in lines if line["type"] == "decision"] == ["deny", "deny"]


def test_a_record_without_origin_is_told_by_its_provenance(store_url: str) -> None:
    """What was written through the write gate is recalled too, by the instant at which it was kept."""
    written = candidate("sqlite was chosen", kind="conversation", subject="user-42", provenance="turn-7")
    with opened(store_url) as memory:
        memory.write(written, caller=caller())
        [hit] = memory.recall("sqlite", caller=caller()).hits

    assert hit.provenance.to_dict() == {
        "source_id": "turn-7",
        "source_type": "trusted_service",
        "title": "conversation",
        "captured_at": ago(0),
    }
    assert hit.snippet == "sqlite was chosen"


def test_a_rule_beyond_the_plan_is_asked_about_each_match(store_url: str, tmp_path: Path) -> None:
    """Where the plan does not say everything, the answer is as exact."""
    folder = tmp_path / "policies"
    shutil.copytree(policies_path(None), folder)
    module = folder / "memory" / "read" / "filters.rego"
    rule = NOT_IN_THE_PLAN.replace("external_tool", "user_input")
    module.write_text(module.read_text(encoding="utf-8") + rule, encoding="utf-8")
    said = [
        candidate(
            f"sqlite {number}",
            kind="conversation",
            source="user_input",
            provenance=f"turn-{number}",
            origin=Origin("t", "transcript", "t", instant(NOW_US)),
        )
        for number in range(9)
    ]
    records = [stored(f"c-{number}", "sqlite", captured=ago(number), kept=ago(0)) for number in range(9)]
    with opened(store_url, policies=folder) as memory:
        memory.write_many(said, caller=caller())
        loaded(memory, records, caller())
        result = memory.recall("sqlite", caller=caller(), limit=3)

    assert [hit.memory_id for hit in result.hits] == ["c-0", "c-1", "c-2"]
    assert (result.searched_records, result.candidate_records) == (18, 9)


def test_a_store_that_lies_gains_nothing(tmp_path: Path) -> None:
    """What the policy refuses is dropped after ranking, told as a mismatch, and counts nowhere."""
    trace = tmp_path / "trace.jsonl"
    with opened(trace=trace) as memory:
        loaded(memory, [stored("c-1", "sqlite")], caller())
        loaded(memory, [stored("x-1", "sqlite", user="user-43")], caller(principal_id="user-43"))
        gates = memory._gates
        gates.reads._store = LyingStore(gates.reads._store)
        result = memory.recall("sqlite", caller=caller())

    assert [hit.memory_id for hit in result.hits] == ["c-1"]
    assert result.hits[0].rank == 1
    assert "plan_mismatch" in {event["event_type"] for event in events(trace)}


def test_no_answer_leaves_without_its_line() -> None:
    """Where the decision cannot be written down, there is no recall."""
    with opened() as memory:
        loaded(memory, [stored("c-1", "sqlite")], caller())
        gates = memory._gates
        gates.recorder._store = FaultyStore(
            gates.recorder._store, method="append_lines", error=RuntimeError("disk"), on_call=1
        )
        with pytest.raises(RuntimeError, match="disk"):
            memory.recall("sqlite", caller=caller())


def test_counts_follow_what_is_written(store_url: str) -> None:
    """The number of records in a scope is kept for a state of the store, and no longer."""
    with opened(store_url) as memory:
        for number in range(4):
            loaded(memory, [stored(f"c-{number}", "sqlite")], caller())
            assert memory.recall("sqlite", caller=caller()).searched_records == number + 1
            assert memory.recall("redis", caller=caller()).searched_records == number + 1
        officer = Caller("tenant-acme", "dpo", roles=("privacy_officer",))
        memory.forget(subject="user-42", caller=officer)
        assert memory.recall("sqlite", caller=caller()).searched_records == 0


def test_records_of_another_user_are_not_loaded() -> None:
    """A file that was handed over to the wrong person is not taken apart."""
    with opened() as memory, pytest.raises(RemoteMemoryScopeError, match="another user scope"):
        memory.load_stored([stored("c-1", "sqlite", user="user-43")], caller=caller())


def test_the_asynchronous_facade_recalls_too() -> None:
    """The same answer off the event loop."""

    async def scenario() -> tuple[list[str], str | None]:
        with opened() as inner:
            loaded(inner, [stored("c-1", "sqlite"), stored("p-1", "p", kind=MemoryKind.PROFILE)], caller())
            async with AsyncGovernedMemory(inner) as memory:
                result = await memory.recall("sqlite", caller=caller())
                profile = await memory.latest_profile(caller=caller())
                return [hit.memory_id for hit in result.hits], profile and profile.memory_id

    assert asyncio.run(scenario()) == (["c-1"], "p-1")


RANKERS = [HybridRanker(), HybridRanker(HashEmbedding(), floor=0.3)]


@pytest.mark.parametrize("ranker", RANKERS, ids=["BM25", "hybrid"])
def test_another_ranker_is_given_what_the_policy_admits(store_url: str, ranker: HybridRanker) -> None:
    """The answer is that of the pure pipeline with this ranker over the admitted records."""
    records = [
        stored(f"c-{number}", "sqlite wal " * (number % 3 + 1), captured=ago(number)) for number in range(9)
    ]
    untrusted = candidate(
        "sqlite sqlite", kind="conversation", source="agent_authored", subject="user-42", provenance="turn-1"
    )
    with opened(store_url) as memory:
        loaded(memory, records, caller())
        memory.write(untrusted, caller=caller())
        loaded(memory, [stored("x-1", "sqlite", user="user-43")], caller(principal_id="user-43"))
        governed = memory.recall("sqlite log", caller=caller(), ranker=ranker)
    engine = RecallEngine(Held(records), find=ranker.find, rank=ranker.rank)
    pure = engine.recall("sqlite log", as_of=instant(NOW_US))

    assert [(hit.memory_id, hit.score_breakdown) for hit in governed.hits] == [
        (hit.memory_id, hit.score_breakdown) for hit in pure.hits
    ]
    assert {hit.decision_id for hit in governed.hits} == {governed.decision and governed.decision.decision_id}
    assert governed.candidate_records == pure.candidate_records
    assert governed.searched_records == pure.searched_records + 1


@pytest.mark.parametrize("ranker", RANKERS, ids=["BM25", "hybrid"])
def test_another_ranker_tells_what_the_policy_kept_out(ranker: HybridRanker) -> None:
    """The same two reasons for the same two cases."""
    untrusted = candidate(
        "sqlite", kind="conversation", source="agent_authored", subject="user-42", provenance="turn-1"
    )
    with opened() as memory:
        memory.write(untrusted, caller=caller())
        kept_out = memory.recall("sqlite", caller=caller(), ranker=ranker)
        nothing = memory.recall("zebra", caller=caller(), ranker=ranker)

    assert (kept_out.hits, kept_out.empty_reason) == ((), "excluded_by_policy")
    assert (kept_out.searched_records, kept_out.candidate_records) == (1, 0)
    assert nothing.empty_reason == "no_matching_terms"


@pytest.mark.parametrize("ranker", RANKERS, ids=["BM25", "hybrid"])
def test_another_ranker_after_a_rule_beyond_the_plan(tmp_path: Path, ranker: HybridRanker) -> None:
    """The policy is asked about each record before any is ranked."""
    folder = tmp_path / "policies"
    shutil.copytree(policies_path(None), folder)
    module = folder / "memory" / "read" / "filters.rego"
    rule = NOT_IN_THE_PLAN.replace("external_tool", "user_input")
    module.write_text(module.read_text(encoding="utf-8") + rule, encoding="utf-8")
    said = candidate("sqlite", kind="conversation", source="user_input", provenance="turn-1")
    with opened(policies=folder) as memory:
        memory.write(said, caller=caller())
        loaded(memory, [stored("c-1", "sqlite"), stored("c-2", "sqlite wal")], caller())
        result = memory.recall("sqlite", caller=caller(), limit=1, ranker=ranker)

    assert len(result.hits) == 1
    assert (result.searched_records, result.candidate_records) == (3, 2)


@pytest.mark.parametrize("ranker", RANKERS, ids=["BM25", "hybrid"])
def test_more_records_than_a_ranker_may_be_given(
    monkeypatch: pytest.MonkeyPatch, ranker: HybridRanker
) -> None:
    """An answer from a part of them would be another answer, so there is none."""
    monkeypatch.setattr(ranked, "RANKED_MAX", 2)
    with opened() as memory:
        loaded(memory, [stored(f"c-{number}", "sqlite") for number in range(3)], caller())
        with pytest.raises(StoreCapabilityError, match="2 records and 3 match"):
            memory.recall("sqlite", caller=caller(), ranker=ranker)
        assert len(memory.recall("sqlite", caller=caller()).hits) == 3
