"""Events of what happens beside the gates, in the log and in its mirrors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_runtime_ref import GovernedMemory
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


def test_a_field_that_the_catalogue_lacks_is_a_mistake(memory: GovernedMemory) -> None:
    """Content cannot slip into an event by a new field."""
    with pytest.raises(AssertionError, match="content"):
        memory.tell("session_constraints_merged", {"content": "x"}, caller=caller())
