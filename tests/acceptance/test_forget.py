"""Forgetting: everything about a subject goes, in the store and in its files, and the receipt is honest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_runtime_ref import GovernedMemory, PolicyDeniedError
from agent_runtime_ref.telemetry.chain import verify
from tests.support import caller, candidate, events, note, query

PERSON = caller(principal_id="agent-1", subject="person-7351")
PLANTED = ("zanzibarquartz", "mulberrythistle", "kettledrumfern")


def _remember(memory: GovernedMemory) -> None:
    first = memory.write(
        candidate(f"{PLANTED[0]} is the first word", subject="person-7351", key="favourite"), caller=PERSON
    )
    memory.write(
        note(f"from {PLANTED[0]}", subject="person-7351", derived_from=(first.record.memory_id,)),
        caller=PERSON,
    )
    memory.write(
        candidate(
            f"{PLANTED[1]} is the second word",
            subject="person-7351",
            key="favourite",
            revision_mode="replace",
            summary=f"about {PLANTED[2]}",
        ),
        caller=PERSON,
    )
    memory.write(candidate("somebody else's queue fact"), caller=caller())


def test_removes_records_revisions_and_what_was_derived(memory: GovernedMemory, trace: Path) -> None:
    """The person's records, old revisions and what was derived among them are gone; others stay."""
    _remember(memory)
    dry = memory.forget(subject="person-7351", caller=PERSON, dry_run=True)
    assert (dry.records, dry.superseded, dry.dry_run) == (3, 1, True)
    assert len(memory.read(query(principal_id="agent-1"), caller=PERSON).hits) == 3

    receipt = memory.forget(subject="person-7351", caller=PERSON)

    assert (receipt.records, receipt.derived, receipt.superseded) == (3, 0, 1)
    assert receipt.by_class == {"long_term": 2, "short_term": 1}
    assert receipt.log_key_destroyed
    assert any("backups" in line for line in receipt.not_covered)
    left = memory.read(query(principal_id="agent-1"), caller=PERSON)
    assert [hit.record.content for hit in left.hits] == ["somebody else's queue fact"]
    assert left.document["excluded_records"] == 0
    told = [event for event in events(trace) if event["event_type"] == "memory_forgotten"]
    assert told[-1]["payload"]["counts"] == {"long_term": 2, "short_term": 1}
    assert "person-7351" not in trace.read_text(encoding="utf-8")


def test_nothing_planted_is_left_in_any_file(tmp_path: Path) -> None:
    """Database, WAL, read log and trace hold none of the forgotten words, nor the person's id."""
    url = f"sqlite:{tmp_path / 'memory.db'}"
    with GovernedMemory.open(url, trace=tmp_path / "trace.jsonl") as memory:
        _remember(memory)
        memory.read(query(principal_id="agent-1"), caller=PERSON, text="first word")
        memory.forget(subject="person-7351", caller=PERSON)
        files = [path for path in tmp_path.iterdir() if path.is_file()]
        assert len(files) >= 3
        for path in files:
            data = path.read_bytes()
            for word in (*PLANTED, "person-7351"):
                assert word.encode() not in data, f"{word} in {path.name}"


def test_the_log_still_verifies(memory: GovernedMemory) -> None:
    """The chain of log lines is whole after the subject's key is gone."""
    _remember(memory)
    memory.forget(subject="person-7351", caller=PERSON)

    assert verify(memory.log_lines()) is None


def test_forgotten_content_is_not_learned_again_unless_the_user_says_it(memory: GovernedMemory) -> None:
    """A service cannot write a forgotten memory again; the user's own confirmation can."""
    _remember(memory)
    memory.forget(subject="person-7351", caller=PERSON)

    with pytest.raises(PolicyDeniedError) as refused:
        memory.write(candidate(f"{PLANTED[0]}  is the FIRST word", subject="person-7351"), caller=PERSON)
    assert refused.value.decision.reasons == ("forgotten_content",)
    again = candidate(
        f"{PLANTED[0]} is the first word", subject="person-7351", source="user_confirmed_preference"
    )
    assert memory.write(again, caller=PERSON).effect == "allow"


def test_one_persons_forgetting_refuses_nobody_else(memory: GovernedMemory) -> None:
    """The same words about somebody else may be written."""
    _remember(memory)
    memory.forget(subject="person-7351", caller=PERSON)
    other = caller(principal_id="agent-2", subject="person-9")

    same = candidate(f"{PLANTED[0]} is the first word", subject="person-9")
    assert memory.write(same, caller=other).effect == "allow"


def test_what_was_redacted_is_not_learned_again(memory: GovernedMemory) -> None:
    """A note that was kept redacted is known again in the words in which it was written."""
    secret = note("deploy with AKIA" + "Q3EGRIXW7T5ZPLMN today", subject="person-7351")
    kept = memory.write(secret, caller=PERSON).record
    assert kept.content != secret.content
    memory.forget(subject="person-7351", caller=PERSON)

    for text in (secret.content, kept.content):
        with pytest.raises(PolicyDeniedError) as refused:
            memory.write(note(text, subject="person-7351"), caller=PERSON)
        assert refused.value.decision.reasons == ("forgotten_content",)


def test_only_the_person_or_an_erasure_role_may_forget(memory: GovernedMemory) -> None:
    """Another principal is refused; an operator of the tenant is not."""
    _remember(memory)
    with pytest.raises(PolicyDeniedError) as refused:
        memory.forget(subject="person-7351", caller=caller())

    assert refused.value.decision.reasons == ("erasure_not_permitted",)
    assert memory.forget(subject="person-7351", caller=caller(roles=("operator",))).records == 3


def test_another_tenants_person_of_the_same_name_is_untouched(memory: GovernedMemory) -> None:
    """Forgetting is within one tenant."""
    _remember(memory)
    other = caller(tenant_id="tenant-b", principal_id="agent-1", subject="person-7351")
    memory.write(candidate("b's fact", tenant_id="tenant-b", subject="person-7351"), caller=other)

    memory.forget(subject="person-7351", caller=PERSON)

    left = memory.read(query(tenant_id="tenant-b", principal_id="agent-1"), caller=other)
    assert [hit.record.content for hit in left.hits] == ["b's fact"]


def test_another_process_stops_using_a_destroyed_key(tmp_path: Path) -> None:
    """A memory that was open elsewhere while somebody was forgotten shows them under a new pseudonym."""
    url = f"sqlite:{tmp_path / 'memory.db'}"
    with GovernedMemory.open(url) as here, GovernedMemory.open(url) as there:
        here.write(note("about the person", subject="person-7351"), caller=PERSON)
        asked = query(principal_id="agent-1", subject="person-7351")
        here.read(asked, caller=PERSON)
        before = _subjects(here)
        there.forget(subject="person-7351", caller=PERSON)
        here.read(asked, caller=PERSON)

        assert len(_subjects(here) - before) == 1


def test_nobody_is_written_down_for_being_mentioned(tmp_path: Path) -> None:
    """A refused write and a dry run about an unknown person leave no name in any file."""
    with GovernedMemory.open(f"sqlite:{tmp_path / 'memory.db'}") as memory:
        with pytest.raises(PolicyDeniedError):
            memory.write(candidate(subject="zdenied99", source="recall"), caller=caller(subject="zdenied99"))
        memory.forget(subject="zdry55", caller=caller(roles=("operator",)), dry_run=True)
        for path in tmp_path.iterdir():
            assert b"zdenied99" not in path.read_bytes(), path.name
            assert b"zdry55" not in path.read_bytes(), path.name


def _subjects(memory: GovernedMemory) -> set[str]:
    """Return the pseudonyms of callers' subjects in the read log."""
    lines = [json.loads(line) for line in memory.log_lines(read=True)]
    return {line["input"]["caller"]["subject"] for line in lines if line["type"] == "decision"}
