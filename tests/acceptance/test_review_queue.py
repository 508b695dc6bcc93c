"""Who takes a record out of quarantine, why, and what is written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import (
    Caller,
    GovernedMemory,
    Origin,
    PolicyDeniedError,
)
from agent_runtime_ref.errors import (
    DocumentTypeError,
    DocumentValueError,
)
from agent_runtime_ref.runtime import Inspection
from tests.reviewing import ATTACK, NOW, OTHER, REVIEWER, held, refusal, shown
from tests.support import TENANT, caller, candidate, events, query

# --- who, and why -------------------------------------------------------------------------------------------


def test_a_role_is_needed(memory: GovernedMemory) -> None:
    """Neither step is open to callers without a role for it, whatever the id they name."""
    record_id = held(memory)
    for step in ("release", "reject"):
        for by in (caller(), caller(roles=["curator"]), Caller(TENANT, "anonymous", roles=["reviewer"])):
            known, unknown = (refusal(memory, one, by, step=step) for one in (record_id, "mem-nobody"))
            assert known.rule_ids == unknown.rule_ids == ("MEM-W-401",)


def test_who_wrote_it_does_not_release_it(memory: GovernedMemory) -> None:
    """Not as the principal, not through the same agent, not as an agent of that name: four eyes."""
    by = caller(roles=["operator"], agent_id="assistant-1", subject="user-7")
    record_id = held(memory, by=by)
    for other in (
        by,
        Caller(TENANT, "user-42", roles=["reviewer"]),
        Caller(TENANT, "ada", roles=["reviewer"], agent_id="assistant-1"),
        Caller(TENANT, "assistant-1", roles=["reviewer"]),
        Caller(TENANT, "ada", roles=["reviewer"], agent_id="user-42"),
    ):
        assert refusal(memory, record_id, other).reasons == ("four_eyes",)
    memory.release(record_id, caller=REVIEWER, reason="SEC-9")


def test_whom_it_is_about_does_not_release_it(memory: GovernedMemory) -> None:
    """Nobody lets go what is said about herself."""
    record_id = held(memory, subject="user-42")
    about = Caller(TENANT, "ada", subject="user-42", roles=["reviewer"])

    assert refusal(memory, record_id, about).reasons == ("four_eyes",)


def test_who_wrote_it_may_reject_it(memory: GovernedMemory) -> None:
    """To take back one's own is no danger to anybody."""
    by = caller(roles=["reviewer"])
    record_id = held(memory, by=by)
    memory.reject(record_id, caller=by, reason="a mistake of mine")

    assert shown(memory) == []


def test_being_forgotten_does_not_open_four_eyes(memory: GovernedMemory) -> None:
    """Whoever is forgotten as a subject is still known as the writer of what is about nobody."""
    by = caller(roles=["operator"])
    record_id = held(memory, by=by)
    memory.forget(subject="user-42", caller=by)

    assert refusal(memory, record_id, by).reasons == ("four_eyes",)


def test_nothing_a_candidate_says_changes_its_writer(memory: GovernedMemory) -> None:
    """Origin, provenance and labels that name somebody else make nobody else the writer."""
    by = caller(roles=["reviewer"])
    origin = Origin("ada", "principal", "ada", NOW)
    record_id = held(memory, by=by, provenance="ada", origin=origin, scope=("principal:ada",))

    assert refusal(memory, record_id, by).reasons == ("four_eyes",)
    memory.release(record_id, caller=REVIEWER, reason="SEC-10")


def test_tenants_do_not_review_each_other(memory: GovernedMemory) -> None:
    """A reviewer of another tenant finds nothing under the id."""
    record_id = held(memory)
    other = Caller("tenant-b", "ada", roles=["reviewer", "operator"])
    for step in ("release", "reject"):
        assert refusal(memory, record_id, other, step=step).reasons == ("not_in_quarantine",)

    assert len(shown(memory, statuses=("quarantined",))) == 1


@pytest.mark.parametrize("step", ["release", "reject"])
def test_only_what_is_in_quarantine_is_reviewed(memory: GovernedMemory, step: str) -> None:
    """Active, superseded, released, rejected and unknown records are refused alike."""
    superseded = memory.write(candidate("One.", key="k"), caller=caller()).record.memory_id
    active = memory.write(
        candidate("Two.", key="k", revision_mode="replace"), caller=caller()
    ).record.memory_id
    released, rejected = held(memory), held(memory, OTHER)
    memory.release(released, caller=REVIEWER, reason="SEC-11")
    memory.reject(rejected, caller=REVIEWER, reason="SEC-12")
    for record_id in (active, superseded, released, rejected, "mem-nobody"):
        assert refusal(memory, record_id, REVIEWER, step=step).reasons == ("not_in_quarantine",)

    assert len(shown(memory)) == 3


def test_a_reason_is_a_text(memory: GovernedMemory) -> None:
    """No reason, an empty one and one without end are mistakes; a long one and a password are refusals."""
    record_id = held(memory)
    mistakes = {None: DocumentTypeError, " \n": DocumentValueError, "\ud800": DocumentValueError}
    for wrong, error in {**mistakes, "x" * 2001: DocumentValueError}.items():
        with pytest.raises(error, match=r"^reason: must "):
            memory.release(record_id, caller=REVIEWER, reason=wrong)  # type: ignore[arg-type]
    for wrong_id, error in ((7, DocumentTypeError), ("", DocumentValueError)):
        with pytest.raises(error, match=r"^record_id: must "):
            memory.reject(wrong_id, caller=REVIEWER, reason="SEC-13")  # type: ignore[arg-type]

    assert refusal(memory, record_id, REVIEWER, why="long " * 101).reasons == ("reason_too_long",)
    password = f"deploy with AKIA{'QYLPMN5HHHFPZAM2'} today"
    assert refusal(memory, record_id, REVIEWER, why=password).reasons == ("reason_holds_secret",)
    memory.release(record_id, caller=REVIEWER, reason=f"it only quotes: {ATTACK}")


# --- who sees the queue -------------------------------------------------------------------------------------


def test_a_reviewer_sees_the_queue_of_its_tenant_and_nothing_else(memory: GovernedMemory) -> None:
    """Records in quarantine, whoever they are about; not active ones, and no other tenant's."""
    memory.write(candidate("Active.", subject="user-42"), caller=caller())
    record_id = held(memory, subject="user-42")

    def look(**changes: Any) -> list[str]:
        base: dict[str, Any] = {
            "principal_id": "ada",
            "limit": 10,
            "tenant_id": TENANT,
            "statuses": ("quarantined",),
        }
        found = memory.inspect(Inspection(**(base | changes)), caller=REVIEWER)
        return [hit.record.memory_id for hit in found.hits]

    assert look() == [record_id]
    for wider in (
        {"statuses": ()},
        {"statuses": ("active",)},
        {"tenant_id": None},
        {"tenant_id": "tenant-b"},
    ):
        with pytest.raises(PolicyDeniedError):
            look(**wider)


# --- what is written down -----------------------------------------------------------------------------------


def test_each_step_is_a_decision_and_an_event(memory: GovernedMemory, trace: Path) -> None:
    """Release, rejection and refusal each have a decision line and event; the first two say what happened."""
    first, second = held(memory), held(memory, OTHER)
    memory.release(first, caller=REVIEWER, reason="SEC-1423")
    memory.reject(second, caller=REVIEWER, reason="an attack, see the ticket")
    refusal(memory, first, REVIEWER)

    told = [one for one in events(trace) if one["payload"].get("operation") in ("release", "reject")]
    assert [(one["event_type"], one["payload"]["effect"], one["payload"]["record_id"]) for one in told] == [
        ("memory_write_decision", "allow", first),
        ("memory_write_decision", "allow", second),
        ("memory_write_decision", "deny", first),
    ]
    done = {one["event_type"]: one["payload"] for one in events(trace)}
    assert done["memory_released"]["record_id"] == first
    assert done["memory_released"]["reviewer"] == "ada"
    assert done["memory_released"]["reason"] == "SEC-1423"
    assert done["memory_rejected"]["reviewer"] == "ada"
    assert done["memory_rejected"]["reason"].startswith("hmac:")
    lines = [json.loads(line) for line in memory.log_lines()]
    decided = [one["input"]["operation"] for one in lines if one["type"] == "decision"]
    assert decided == ["write", "write", "release", "reject", "release"]


def test_no_content_reason_or_name_of_a_subject_is_in_the_log(memory: GovernedMemory) -> None:
    """A reason in words stands as a digest, a subject and its key as pseudonyms, content nowhere."""
    record_id = held(memory, subject="user-42", key="home-address")
    memory.release(record_id, caller=REVIEWER, reason="asked Margaret about it")
    log = "\n".join(memory.log_lines())

    for word in ("Margaret", "Ignore all", "home-address"):
        assert word not in log
    lines = [json.loads(line) for line in log.splitlines()]
    release = next(
        one for one in lines if one["type"] == "decision" and one["input"]["operation"] == "release"
    )
    assert release["input"]["candidates"][0]["subject"].startswith("subject:")


def test_writers_are_digests_that_tell_nothing_of_each_other(memory: GovernedMemory) -> None:
    """Two records of one writer carry two digests, so that a log does not tell that they are of one hand."""
    for record_id in (held(memory), held(memory, OTHER)):
        memory.release(record_id, caller=REVIEWER, reason="SEC-1")
    lines = [json.loads(line) for line in memory.log_lines()]
    queues = [
        one["input"]["candidates"][0]["queue"]
        for one in lines
        if one["type"] == "decision" and one["input"]["operation"] == "release"
    ]

    assert len({one["written_by"]["principal"] for one in queues}) == 2
    assert len({one["reviewer"]["principal"] for one in queues}) == 2


SVC = caller(principal_id="svc", agent_id="bot-1")
FOR_USER_9 = caller(principal_id="svc", subject="user-9")


@pytest.mark.parametrize(
    "name",
    ["SVC", "svc ", " svc", "svc\u00a0", "s\u200bvc", "\uff53\uff56\uff43", "\u0455vc", "s\u0301vc", "BOT-1"],
    ids=ascii,
)
@pytest.mark.parametrize("role", ["principal_id", "agent_id"])
def test_a_name_that_looks_like_the_writers_has_the_writers_eyes(
    memory: GovernedMemory, role: str, name: str
) -> None:
    """Case, blanks, invisible signs and letters of other alphabets make no second person of the first."""
    record_id = held(memory, by=SVC)
    who = {"principal_id": "ada", role: name}

    assert refusal(memory, record_id, Caller(TENANT, roles=["reviewer"], **who)).reasons == ("four_eyes",)
    assert memory.release(record_id, caller=REVIEWER, reason="SEC-1").record is not None


@pytest.mark.parametrize(
    "who",
    [
        {"principal_id": "user-9", "subject": "user-7"},
        {"principal_id": "ada", "agent_id": "user-9"},
        {"principal_id": "USER-9"},
        {"principal_id": "ada", "subject": "user-9\u200b"},
        {"principal_id": "ada", "subject": "svc"},
    ],
    ids=str,
)
def test_neither_whom_it_is_about_nor_a_deputy_releases_it(
    memory: GovernedMemory, who: dict[str, str]
) -> None:
    """Whatever part of a caller names the subject, or whom it acts for, is looked at; the log agrees."""
    record_id = held(memory, by=FOR_USER_9, subject="user-9")

    decision = refusal(memory, record_id, Caller(TENANT, roles=["reviewer"], **who))

    assert decision.reasons == ("four_eyes",)
    lines = [json.loads(line) for line in memory.log_lines()]
    decided = [one for one in lines if one["type"] == "decision"][-1]
    record, asks = decided["input"]["candidates"][0], decided["input"]["caller"]
    queue = record["queue"]
    assert decided["decision_id"] == decision.decision_id
    assert (
        asks["subject"] == record["subject"]
        or queue["reviewer"]["principal"] == queue["written_by"]["principal"]
    )


@pytest.mark.parametrize("reason", ["\u200b", "\u2060\ufeff", "...", " - "], ids=ascii)
def test_signs_that_say_nothing_are_no_reason(memory: GovernedMemory, reason: str) -> None:
    """A reason has a letter or a digit of some alphabet in it."""
    record_id = held(memory)
    with pytest.raises(DocumentValueError, match="must not be empty"):
        memory.release(record_id, caller=REVIEWER, reason=reason)
    assert memory.release(record_id, caller=REVIEWER, reason="\u8bef\u62a5").record is not None


@pytest.mark.parametrize("step", ["release", "reject"])
@pytest.mark.parametrize("subject", [None, "user-9"])
def test_a_reason_out_of_the_record_is_not_in_the_log(
    memory: GovernedMemory, trace: Path, step: str, subject: str | None
) -> None:
    """A word of the content, the key or the subject's id is a plain word too, and stays out all the same."""
    by = caller(principal_id="svc", subject=subject)
    for number, reason in enumerate(["Xylophone", "my-key", "user-9"]):
        if subject is None and reason == "user-9":
            continue
        record_id = held(memory, f"{OTHER} xylophone {number}", by=by, subject=subject, key="my-key")
        getattr(memory, step)(record_id, caller=REVIEWER, reason=reason)

    told = "".join([*memory.log_lines(), trace.read_text(encoding="utf-8")]).casefold()
    assert "xylophone" not in told
    assert "user-9" not in told
    assert '"reason":"my-key"' not in told.replace(" ", "")


def test_ids_of_a_call_that_name_the_subject_are_pseudonyms(memory: GovernedMemory) -> None:
    """Session, trace and agent may be called after a user, who is to be gone from the log once forgotten."""
    named = {"session_id": "user-9", "trace_id": "user-9", "agent_id": "user-9"}
    by = caller(principal_id="svc", subject="user-9", **named)
    record_id = held(memory, by=by, subject="user-9")
    memory.read(query(principal_id="svc", trace_id="user-9", session_id="user-9"), caller=by)
    memory.reject(record_id, caller=Caller(TENANT, "ada", roles=["reviewer"], **named), reason="SEC-1")

    assert "user-9" not in "".join([*memory.log_lines(), *memory.log_lines(read=True)])
