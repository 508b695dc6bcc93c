"""An event that leaves the process carries the place of its line in the decision log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import GovernedMemory, PolicyDeniedError
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.telemetry.events import Event
from agent_runtime_ref.telemetry.lines import event_text
from agent_runtime_ref.telemetry.otel import attributes_of
from agent_runtime_ref.telemetry.places import placed
from tests.support import caller, candidate, events, query, rebuilt_result


def _places(memory: GovernedMemory, *, file: bool) -> dict[str, tuple[str, int, str]]:
    """The place of each event line, by the id of the event."""
    places = {}
    for read in (False, True):
        name = "log" if file else "reads" if read else "writes"
        for line in memory.log_lines(read=read):
            document = json.loads(line)
            if document["type"] == "event":
                places[document["event_id"]] = (name, *chain.head(line))
    return places


def _place(event: dict[str, Any]) -> tuple[str, int, str]:
    payload = event["payload"]
    return payload["log_chain"], payload["log_seq"], payload["log_hash"]


@pytest.mark.parametrize("store", ["memory", "sqlite", "file"])
def test_every_exported_event_is_an_anchor(tmp_path: Path, store: str) -> None:
    """Of reads, writes, refusals and removals: each names chain, number and hash of the line it is."""
    trace = tmp_path / "trace.jsonl"
    address = f"sqlite:{tmp_path / 'memory.db'}" if store == "sqlite" else "memory:"
    log = tmp_path / "log.jsonl" if store == "file" else None
    with GovernedMemory.open(address, log=log, trace=trace) as memory:
        memory.write_many([candidate(), candidate(content="api key AKIAIOSFODNN7EXAMPLE")], caller=caller())
        memory.write(candidate(content="Tea at four", subject="user-42"), caller=caller(subject="user-42"))
        memory.read(query(), caller=caller(), text="support")
        with pytest.raises(PolicyDeniedError):
            memory.read(query(tenant_id="tenant-other"), caller=caller())
        memory.forget(subject="user-42", caller=caller(roles=("operator",)))
        expected = _places(memory, file=store == "file")

    told = events(trace)
    assert {event["payload"]["event_id"]: _place(event) for event in told} == expected
    assert len(told) >= 8


def test_the_place_goes_to_opentelemetry_too() -> None:
    """Each part of it is an attribute of the log record, named as every field of a payload is."""
    event = Event("context_layers_built", "trace-001", 1, {"event_id": "evt-1"})
    body = event_text(event)
    (line,) = [line for _, line in chain.seal_all([body], seq=6, prev_hash=chain.GENESIS)]
    (told,) = placed([event], [line], chain="reads")
    attributes = attributes_of(told)

    assert attributes["agent_memory.log_chain"] == "reads"
    assert (attributes["agent_memory.log_seq"], attributes["agent_memory.log_hash"]) == chain.head(line)


def test_the_answer_is_still_rebuilt_byte_for_byte(tmp_path: Path) -> None:
    """What an exported event carries beside its payload does not change the answer made from it."""
    trace = tmp_path / "trace.jsonl"
    with GovernedMemory.open(trace=trace) as memory:
        result = memory.read(query(), caller=caller())
    (retrieval,) = [event for event in events(trace) if event["event_type"] == "retrieval"]

    assert json.dumps(rebuilt_result(retrieval)) == json.dumps(result.document)
