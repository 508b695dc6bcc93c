"""What is said about decisions: complete, in the catalogue's fields, and never content."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import Caller, GovernedMemory, validation
from agent_runtime_ref.errors import GovernanceError
from agent_runtime_ref.telemetry.chain import verify
from agent_runtime_ref.testing import CountedIds, FrozenClock
from tests.support import caller, candidate, events, note, query

SECRET = "ghp_" + "a8Kd02LmQx7RtZ4vW9bYc1NeHs6Jf3UpGi5T"


def test_every_event_is_valid_and_names_who(memory: GovernedMemory, trace: Path) -> None:
    """Each event follows its schema and carries ids of event, decision, session, tenant and principal."""
    memory.write(candidate(), caller=caller(agent_id="agent-9"))
    memory.read(query(), caller=caller(agent_id="agent-9"), text="queue")

    told = events(trace)

    assert [event["event_type"] for event in told] == [
        "memory_write_decision",
        "memory_persisted",
        "retrieval",
        "context_layers_built",
    ]
    for event in told:
        assert validation.is_valid("event", event), event
        payload = event["payload"]
        assert (payload["tenant_id"], payload["principal_id"]) == ("tenant-acme", "user-42")
        assert (payload["agent_id"], payload["session_id"]) == ("agent-9", "session-001")
        assert payload["event_id"]
        assert payload["decision_id"]
    assert len({event["payload"]["event_id"] for event in told}) == 4


def test_inspection_builds_no_context(memory: GovernedMemory, trace: Path) -> None:
    """A read for inspection or review puts nothing into a prompt, and says nothing of one."""
    memory.write(candidate(), caller=caller())
    memory.read(query(purpose="compliance_review"), caller=caller())

    assert "context_layers_built" not in {event["event_type"] for event in events(trace)}


def test_the_log_holds_decisions_and_events_in_a_chain(memory: GovernedMemory) -> None:
    """Decision lines have OPA's fields; reads and writes verify, each log by itself or both as one."""
    memory.write(candidate(), caller=caller())
    memory.write(note("the queue is slow"), caller=caller())
    memory.read(query(filters={"trust_min": "medium"}), caller=caller(), text="queue")

    writes = [json.loads(line) for line in memory.log_lines()]
    reads = [json.loads(line) for line in memory.log_lines(read=True)]

    assert verify(memory.log_lines()) is None
    assert verify(memory.log_lines(read=True)) is None
    decision = next(line for line in reads if line["path"] == "memory/read/decision")
    assert decision["input"]["query"]["purpose"] == "answer_generation"
    assert decision["considered"]["considered"] == 2
    assert decision["considered"]["considered_logged"] == 2
    assert decision["considered"]["exclusions"] == {"trust_below_minimum": 1}
    assert {line["type"] for line in writes} == {"decision", "event"}
    assert {"decision_id", "trace_id", "bundles", "timestamp", "requested_by", "result"} <= set(decision)


def _plants(memory: GovernedMemory) -> None:
    """Try to get a secret into everything that is said."""
    person = caller(principal_id="agent-1", subject=SECRET, agent_id=SECRET)
    attempts: list[Any] = [
        lambda: memory.write(candidate(f"the token is {SECRET}"), caller=caller()),
        lambda: memory.write(note(f"the token is {SECRET}", summary=SECRET), caller=caller()),
        lambda: memory.write(note("a", key=SECRET), caller=caller()),
        lambda: memory.write(note("b", source=SECRET), caller=caller()),
        lambda: memory.write(note("c", provenance=SECRET), caller=caller()),
        lambda: memory.write(note("d", kind=SECRET), caller=caller()),
        lambda: memory.write(note("e", tenant_id=SECRET), caller=caller(tenant_id=SECRET)),
        lambda: memory.write(note("f", subject=SECRET), caller=person),
        lambda: memory.write(note("g", derived_from=(SECRET,)), caller=caller()),
        lambda: memory.read(query(), caller=caller(), text=f"where is {SECRET}"),
        lambda: memory.read(query(purpose=SECRET), caller=caller(), text="x"),
        lambda: memory.read(query(keys=[SECRET], kinds=[SECRET], sources=[SECRET]), caller=caller()),
        lambda: memory.read(query(trace_id=SECRET, session_id=SECRET), caller=caller()),
        lambda: memory.read(query(principal_id="agent-1"), caller=person),
        lambda: memory.read(query(), caller=Caller(SECRET, SECRET, roles=(SECRET,))),
        lambda: memory.forget(subject=SECRET, caller=caller(roles=("operator",))),
    ]
    for attempt in attempts:
        try:
            attempt()
        except GovernanceError:
            continue


def test_a_planted_secret_is_in_no_event_span_or_line(
    store_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A secret in query, content, key, source, error or provenance reaches no telemetry at all."""
    from opentelemetry import _logs, trace
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    caplog.set_level(logging.DEBUG)
    spans, records = InMemorySpanExporter(), InMemoryLogRecordExporter()
    tracers, loggers = TracerProvider(), LoggerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    loggers.add_log_record_processor(SimpleLogRecordProcessor(records))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "get_tracer", tracers.get_tracer)
        patch.setattr(_logs, "get_logger", loggers.get_logger)
        path = tmp_path / "trace.jsonl"
        with GovernedMemory.open(store_url, clock=FrozenClock(), ids=CountedIds(), trace=path) as memory:
            _plants(memory)
            lines = [*memory.log_lines(), *memory.log_lines(read=True)]
    said = {
        "trace": path.read_text(encoding="utf-8"),
        "log": "\n".join(lines),
        "spans": "\n".join(span.to_json() for span in spans.get_finished_spans()),
        "records": "\n".join(repr(record.log_record) for record in records.get_finished_logs()),
        "streams": "".join(capsys.readouterr()) + caplog.text,
    }

    assert len(lines) > 20
    assert len(spans.get_finished_spans()) > 10
    assert len(records.get_finished_logs()) > 10
    for place, text in said.items():
        assert SECRET not in text, place
        assert SECRET[4:20] not in text, place


def test_events_are_log_records_correlated_with_the_gates_span(store_url: str) -> None:
    """Each event is a log record with an event name, inside the gate's span of the memory convention."""
    from opentelemetry import _logs, trace
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans, records = InMemorySpanExporter(), InMemoryLogRecordExporter()
    tracers, loggers = TracerProvider(), LoggerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    loggers.add_log_record_processor(SimpleLogRecordProcessor(records))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "get_tracer", tracers.get_tracer)
        patch.setattr(_logs, "get_logger", loggers.get_logger)
        with GovernedMemory.open(store_url, clock=FrozenClock(), ids=CountedIds()) as memory:
            memory.write(candidate(), caller=caller())

    opened, *logged = [record.log_record for record in records.get_finished_logs()]
    assert opened.event_name == "agent_memory.policy_loaded"
    span = spans.get_finished_spans()[0]
    assert span.name == "upsert_memory"
    assert [record.event_name for record in logged] == [
        "agent_memory.memory_write_decision",
        "agent_memory.memory_persisted",
    ]
    assert {record.span_id for record in logged} == {span.context.span_id}
    # What is exported from the log later on finds the span by these.
    assert {record.attributes["agent_memory.otel_span_id"] for record in logged} == {
        trace.format_span_id(span.context.span_id)
    }
    assert logged[0].attributes["agent_memory.effect"] == "allow"
    assert logged[0].attributes["agent_memory.event_type"] == "memory_write_decision"
    assert logged[0].timestamp == FrozenClock().now_us() * 1000
