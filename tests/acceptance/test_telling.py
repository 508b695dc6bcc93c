"""Events of what happens beside the gates, in the log and in its mirrors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.enforcement.runs import Built, LateEnd
from agent_runtime_ref.errors import DocumentValueError
from tests.support import TENANT, caller, events

COUNTS = {"counts": {"negative_hard": 1}, "total": 1, "refused": 0}


def test_an_event_is_in_the_log_and_in_the_trace(memory: GovernedMemory, trace: Path) -> None:
    """What is told names who and in which conversation, and is a line of the log as well."""
    memory.tell("session_constraints_merged", COUNTS, caller=caller(), decision_id="dec-000001")

    (event,) = events(trace)
    assert event["event_type"] == "session_constraints_merged"
    assert event["trace_id"] == "trace-001"
    payload = event["payload"]
    assert {name: payload[name] for name in COUNTS} == COUNTS
    assert (payload["tenant_id"], payload["session_id"]) == (TENANT, "session-001")
    assert payload["decision_id"] == "dec-000001"
    logged = [json.loads(line) for line in memory.log_lines()]
    assert [line["event_id"] for line in logged] == [payload["event_id"]]


def test_keys_are_pseudonyms_of_the_subject(memory: GovernedMemory, trace: Path) -> None:
    """A key tells what somebody wants; in the event stands what forgetting makes unreadable."""
    told = caller(subject="user-42")
    for _ in range(2):
        memory.tell("session_constraints_merged", COUNTS, caller=told, keys=["dislike:material:plastic"])

    first, second = (event["payload"]["keys"] for event in events(trace))
    assert first == second
    assert first[0].startswith("subject:")
    assert "plastic" not in trace.read_text(encoding="utf-8")


def test_free_text_stands_as_a_digest(memory: GovernedMemory, trace: Path) -> None:
    """A string that is no identifier never enters an event as it is."""
    memory.tell("session_constraints_merged", {"counts": {"no plastic, please": 1}}, caller=caller())

    (name,) = events(trace)[0]["payload"]["counts"]
    assert name.startswith("hmac:")


@pytest.mark.parametrize(
    ("event_type", "payload", "keys", "named"),
    [
        ("session_constraints_merged", {"content": "x"}, (), "content"),
        ("curation_failed", {}, ("a:b",), "keys"),
        ("news_of_tomorrow", {}, (), "event_type"),
    ],
)
def test_what_the_catalogue_lacks_is_refused(
    memory: GovernedMemory, event_type: str, payload: dict[str, Any], keys: Sequence[str], named: str
) -> None:
    """Content cannot slip into an event by a new field; the error names what is wrong."""
    with pytest.raises(DocumentValueError, match=named) as raised:
        memory.tell(event_type, payload, caller=caller(), keys=keys)

    assert raised.value.path == f"$.{named}"
    assert list(memory.log_lines()) == []


@pytest.mark.parametrize(
    "name",
    ["event_id", "session_id", "tenant_id", "principal_id", "agent_id", "otel_trace_id", "log_seq"],
)
def test_nobody_tells_in_the_name_of_another(memory: GovernedMemory, name: str) -> None:
    """Who did it, where and when are facts of the event, and no part of what is told."""
    with pytest.raises(DocumentValueError, match=name):
        memory.tell("session_constraints_merged", {**COUNTS, name: "somebody-else"}, caller=caller())

    assert list(memory.log_lines()) == []


@pytest.mark.parametrize(
    ("event_type", "payload"),
    [
        ("retrieval", {"effect": "allow", "rule_ids": ["MEM-R-1"]}),
        ("memory_write_decision", {}),
        ("memory_forgotten", {"subject": "user-42"}),
    ],
)
def test_nobody_tells_of_a_decision(memory: GovernedMemory, event_type: str, payload: dict[str, Any]) -> None:
    """A gate takes it and writes it down; one that was told would be one that nobody took."""
    with pytest.raises(DocumentValueError, match="only a gate"):
        memory.tell(event_type, payload, caller=caller(), decision_id="dec-000001")

    assert list(memory.log_lines()) == []


def test_keys_are_not_told_as_they_are(memory: GovernedMemory) -> None:
    """A key is a harmless word by its looks, and would stay readable when its person is forgotten."""
    with pytest.raises(DocumentValueError, match="hand the keys over") as raised:
        memory.tell("session_constraints_merged", {"keys": ["dislike:material:plastic"]}, caller=caller())

    assert raised.value.path == "$.keys"
    assert list(memory.log_lines()) == []


@pytest.mark.parametrize("value", [object(), b"x", {1: "a"}, [{"a": {2}}], float("nan"), float("-inf")])
def test_what_is_no_json_is_refused(memory: GovernedMemory, value: object) -> None:
    """A line of the log is JSON; the error names the field and not what it held."""
    with pytest.raises(DocumentValueError, match="total") as raised:
        memory.tell("session_constraints_merged", {"total": value}, caller=caller())

    assert raised.value.path == "$.total"
    assert list(memory.log_lines()) == []


def test_a_decision_id_that_is_none_stands_as_a_digest(memory: GovernedMemory) -> None:
    """It comes from outside as every other string does."""
    memory.tell("session_constraints_merged", COUNTS, caller=caller(), decision_id="no plastic, please")

    (line,) = memory.log_lines()
    assert json.loads(line)["payload"]["decision_id"].startswith("hmac:")


def test_a_context_that_a_file_tells_of_names_nobody(memory: GovernedMemory) -> None:
    """Of what a process that died left, only the fields of a context enter the event."""
    built = {"static_items": 1, "context_digest": "hmac:0", "principal_id": "somebody-else", "content": "x"}
    assert memory.end_run(LateEnd(caller(), "no plastic, please", built))

    entered, failed = (json.loads(line)["payload"] for line in memory.log_lines(read=True))
    assert (entered["principal_id"], entered["static_items"]) == ("user-42", 1)
    assert "content" not in entered
    assert entered["decision_id"].startswith("hmac:")
    assert failed["decision_id"] == entered["decision_id"]
    assert not memory.end_run(LateEnd(caller(), "no plastic, please", built))


def test_a_context_that_a_file_tells_of_holds_no_text(memory: GovernedMemory) -> None:
    """Words that could not stand in an event of the turn itself do not come in by way of its file."""
    built = {"record_ids": {"no plastic, please": ["mem-1", "no leather"]}, "left_out": ["no wool"]}
    memory.end_run(LateEnd(caller(), "dec-1", built))

    text = "".join(memory.log_lines(read=True))
    assert "mem-1" in text
    assert not any(word in text for word in ("plastic", "leather", "wool"))


def test_every_field_of_a_context_may_come_late(memory: GovernedMemory) -> None:
    """Those that a turn tells of itself are those that are taken from a file."""
    run = memory.begin_run("the queue", caller=caller(), purpose="answer_generation", limit=5)
    built = run.built_payload(Built({"static": 1}, {}, (), "text"))
    memory.end_run(LateEnd(caller(), "dec-late", built))

    (entered,) = (
        line["payload"]
        for line in map(json.loads, memory.log_lines(read=True))
        if line.get("event_type") == "context_layers_built"
    )
    assert {name: entered[name] for name in built} == built
