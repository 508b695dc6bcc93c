"""What a governed read lets out, what it counts, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_runtime_ref import GovernedMemory, PolicyDeniedError, validation
from agent_runtime_ref.testing import FrozenClock
from tests.support import caller, candidate, events, note, query, rebuilt_result


def test_returns_what_policy_selects_with_reasons(memory: GovernedMemory) -> None:
    """A selected record comes with rank, score, provenance and the filters that it passed."""
    kept = memory.write(candidate(), caller=caller())

    result = memory.read(query(), caller=caller(), text="support queue")

    assert [hit.record for hit in result.hits] == [kept.record]
    hit = result.hits[0]
    assert (hit.rank, hit.provenance) == (1, "validated_service_rule")
    assert hit.score_breakdown is not None
    assert hit.score_breakdown.matched_terms == ("support", "queue")
    assert hit.score_breakdown.total == 1.0
    assert result.document["selection_reason"] == [
        "tenant_match",
        "class_match",
        "trust_filter_passed",
        "age_filter_passed",
        "provenance_present",
        "text_match",
    ]
    assert validation.is_valid("retrieval_result", result.document)


def test_counts_what_filters_keep_out(memory: GovernedMemory) -> None:
    """Excluded records are those the query considered; each is counted once, under its first reason."""
    memory.write(candidate("the queue is open", source="trusted_service"), caller=caller())
    memory.write(note("the queue was slow today"), caller=caller())
    memory.write(note("nothing about it"), caller=caller())

    result = memory.read(query(filters={"trust_min": "medium"}), caller=caller(), text="queue")

    assert result.exclusions == {"trust_below_minimum": 1}
    assert result.document["excluded_records"] == 1
    without_text = memory.read(query(filters={"trust_min": "medium"}), caller=caller())
    assert without_text.exclusions == {"trust_below_minimum": 2}


@pytest.mark.parametrize(
    ("change", "who", "reason", "rule_id"),
    [
        ({"tenant_id": "tenant-b"}, {}, "tenant_mismatch", "MEM-R-101"),
        ({"principal_id": "user-43"}, {}, "principal_mismatch", "MEM-R-103"),
        ({"purpose": "marketing"}, {}, "purpose_unknown", "MEM-R-104"),
        ({"limit": 0}, {}, "limit_out_of_bounds", "MEM-R-105"),
        ({"limit": 101}, {}, "limit_out_of_bounds", "MEM-R-105"),
        ({"allowed_classes": ["secrets"]}, {}, "class_not_permitted", "MEM-R-106"),
        ({"purpose": "personalization"}, {}, "class_not_permitted", "MEM-R-106"),
        ({"subject": "somebody"}, {}, "subject_mismatch", "MEM-R-107"),
    ],
)
def test_refuses_whole_queries(
    memory: GovernedMemory,
    trace: Path,
    change: dict[str, object],
    who: dict[str, object],
    reason: str,
    rule_id: str,
) -> None:
    """A query that policy refuses is denied whole, with rule id and event; nothing is read."""
    memory.write(candidate(), caller=caller())

    with pytest.raises(PolicyDeniedError) as refused:
        memory.read(query(**change), caller=caller(**who))

    assert reason in refused.value.decision.reasons
    assert rule_id in refused.value.decision.rule_ids
    last = events(trace)[-1]
    assert (last["event_type"], last["payload"]["effect"]) == ("retrieval", "deny")
    assert rule_id in last["payload"]["rule_ids"]


def test_other_tenants_and_subjects_are_walls(memory: GovernedMemory) -> None:
    """What lies behind a wall is neither returned nor counted nor named."""
    memory.write(candidate("shared queue fact"), caller=caller())
    other = caller(tenant_id="tenant-b")
    memory.write(candidate("shared queue fact", tenant_id="tenant-b"), caller=other)
    somebody = caller(principal_id="agent-1", subject="user-7")
    memory.write(candidate("queue fact of seven", subject="user-7"), caller=somebody)

    mine = memory.read(query(), caller=caller(), text="queue")
    theirs = memory.read(query(principal_id="agent-1", subject="user-7"), caller=somebody, text="queue")

    assert [hit.record.content for hit in mine.hits] == ["shared queue fact"]
    assert mine.document["excluded_records"] == 0
    assert {hit.record.content for hit in theirs.hits} == {"shared queue fact", "queue fact of seven"}
    assert "subject_match" in theirs.document["selection_reason"]


def test_a_record_disappears_at_the_instant_of_expiry(memory: GovernedMemory, clock: FrozenClock) -> None:
    """One microsecond before its end a note is shown; at its end it is not, and is counted as expired."""
    kept = memory.write(note("the queue is slow"), caller=caller())
    assert kept.record.expires_at is not None
    clock.advance(days=30, microseconds=-1)
    assert len(memory.read(query(), caller=caller(), text="queue").hits) == 1

    clock.advance(microseconds=1)

    result = memory.read(query(), caller=caller(), text="queue")
    assert (result.hits, result.exclusions) == ((), {"expired": 1})


def test_a_label_finds_what_the_text_does_not_say(memory: GovernedMemory) -> None:
    """Where no term is in summary or content, kind and key are searched, split at underscores."""
    memory.write(
        candidate(
            "Prefers English replies",
            memory_class="profile",
            kind="language_preference",
            source="user_confirmed_preference",
            key="preferred_language",
        ),
        caller=caller(),
    )

    result = memory.read(query(), caller=caller(), text="language preference")

    assert [hit.record.kind for hit in result.hits] == ["language_preference"]


def test_chinese_is_found_by_bigrams_and_by_one_character(memory: GovernedMemory) -> None:
    """Chinese text is found without spaces between words."""
    memory.write(note("用户喜欢分层记忆设计"), caller=caller())

    assert len(memory.read(query(), caller=caller(), text="分层记忆").hits) == 1
    assert len(memory.read(query(), caller=caller(), text="记").hits) == 1
    assert memory.read(query(), caller=caller(), text="火车").hits == ()


def test_order_without_text_is_trust_then_newest_then_id(memory: GovernedMemory, clock: FrozenClock) -> None:
    """Without a text the most trusted comes first, then the newest."""
    for content in ("first note", "second note"):
        memory.write(note(content), caller=caller())
        clock.advance(seconds=1)
    memory.write(candidate("a fact"), caller=caller())

    result = memory.read(query(), caller=caller())

    assert [hit.record.content for hit in result.hits] == ["a fact", "second note", "first note"]


def test_a_summary_never_stands_in_for_a_more_trusted_record(memory: GovernedMemory) -> None:
    """A summary about a key is kept out while a record of higher trust about that key exists."""
    memory.write(
        note("summary: the plan is basic", kind="session_summary", source="agent_authored", key="plan"),
        caller=caller(),
    )
    assert len(memory.read(query(), caller=caller(), text="plan").hits) == 1
    memory.write(candidate("the plan is premium", key="plan"), caller=caller())

    result = memory.read(query(), caller=caller(), text="plan")

    assert [hit.record.content for hit in result.hits] == ["the plan is premium"]
    assert result.exclusions == {"summary_outranked": 1}


def test_the_result_can_be_rebuilt_from_the_trace(memory: GovernedMemory, trace: Path) -> None:
    """The retrieval event holds the whole result document."""
    memory.write(candidate(), caller=caller())
    memory.write(note("support queue is slow"), caller=caller())

    result = memory.read(query(filters={"trust_min": "medium"}), caller=caller(), text="support queue")

    retrieval = [event for event in events(trace) if event["event_type"] == "retrieval"][-1]
    assert rebuilt_result(retrieval) == result.document
    assert list(rebuilt_result(retrieval)) == list(result.document)


def test_same_input_same_bytes(tmp_path: Path) -> None:
    """Two runs with the same clock and ids differ in nothing, whatever the store."""
    documents = []
    for url in ("memory:", f"sqlite:{tmp_path / 'a.db'}", f"sqlite:{tmp_path / 'b.db'}"):
        from agent_runtime_ref.testing import CountedIds

        with GovernedMemory.open(url, clock=FrozenClock(), ids=CountedIds()) as memory:
            for number in range(12):
                memory.write(note(f"queue note number {number}"), caller=caller())
            result = memory.read(query(limit=7), caller=caller(), text="queue number")
            documents.append((result.document, [hit.record.to_document() for hit in result.hits]))

    assert documents[0] == documents[1] == documents[2]
