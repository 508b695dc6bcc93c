"""The spans of a turn: agent, model, tools and gates, and the work behind the reply linked to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from agent_runtime_ref import AgentRuntime, GovernedMemory
from agent_runtime_ref.agent import Answer, Tool, ToolCall, ToolSpec
from agent_runtime_ref.session_state import Sessions
from agent_runtime_ref.telemetry import conventions
from tests.acceptance.test_conventions import Heard, heard
from tests.support import caller
from tests.turns import Scripted

__all__ = ["heard"]
TOOL = Tool(
    ToolSpec("look_up", "for a test", {"type": "object"}), lambda arguments, *, caller, purpose: "found"
)
CALLS = Answer(calls=(ToolCall("look_up", {}), ToolCall("no such tool", {})))


@pytest.fixture
def memory(heard: Heard) -> Iterator[GovernedMemory]:
    """An empty governed memory of an application that listens."""
    with GovernedMemory.open("memory:") as opened:
        yield opened


def _turn(memory: GovernedMemory, folder: Path, *steps: object, **who: str) -> None:
    sessions = Sessions(memory, folder=folder)
    with AgentRuntime.open(memory, model=Scripted(*steps), tools=[TOOL], sessions=sessions) as runtime:
        runtime.run("No plastic this time", caller=caller(**who))
        assert runtime.drain()


def _named(heard: Heard, name: str) -> list[ReadableSpan]:
    return [span for span in heard.spans.get_finished_spans() if span.name == name]


def test_a_turn_is_a_span_with_its_steps_below(memory: GovernedMemory, heard: Heard, tmp_path: Path) -> None:
    """The agent is invoked; its model, its tools and its gates are below that, whatever their names."""
    _turn(memory, tmp_path, CALLS, Answer("done"), agent_id="agent-9")

    (turn,) = _named(heard, "invoke_agent")
    asked, tool, unknown = (
        _named(heard, "chat scripted"),
        _named(heard, "execute_tool look_up"),
        _named(heard, "execute_tool"),
    )
    own = [span for span in heard.spans.get_finished_spans() if span.parent == turn.context]
    assert (len(asked), len(tool), len(unknown)) == (2, 1, 1)
    assert {"chat scripted", "execute_tool look_up", "execute_tool", "search_memory"} == {
        one.name for one in own
    }
    assert (turn.kind, asked[0].kind, tool[0].kind) == (SpanKind.INTERNAL, SpanKind.CLIENT, SpanKind.INTERNAL)
    said = dict(turn.attributes or {})
    assert (said["gen_ai.conversation.id"], said["gen_ai.agent.id"]) == ("session-001", "agent-9")
    assert (said["gen_ai.operation.name"], said["agent_memory.effect"]) == ("invoke_agent", "allow")
    assert (unknown[0].status.status_code, (unknown[0].attributes or {})["error.type"]) == (
        StatusCode.ERROR,
        "ToolError",
    )
    assert turn.status.status_code is StatusCode.UNSET


def test_the_work_behind_a_reply_links_to_its_turn(
    memory: GovernedMemory, heard: Heard, tmp_path: Path
) -> None:
    """It has a trace of its own, since nobody waits for it, and says which turn it is for."""
    _turn(memory, tmp_path, Answer("done"))

    (turn,) = _named(heard, "invoke_agent")
    behind = [span for span in heard.spans.get_finished_spans() if span.parent is None and span is not turn]
    assert {"upsert_memory"} <= {span.name for span in behind}
    assert all([link.context for link in span.links] == [turn.context] for span in behind)
    assert all(not span.links for span in heard.spans.get_finished_spans() if span.parent is not None)


def test_a_failing_model_fails_its_span_and_the_turns(
    memory: GovernedMemory, heard: Heard, tmp_path: Path
) -> None:
    """By the type of the error: its sentence may quote what the user wrote."""
    _turn(memory, tmp_path, ZeroDivisionError("No plastic"))

    for name in ("invoke_agent", "chat scripted"):
        (span,) = _named(heard, name)
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
        assert (span.attributes or {})["error.type"] == "ZeroDivisionError"
        assert not span.events


def test_spans_of_a_turn_are_registered(memory: GovernedMemory, heard: Heard, tmp_path: Path) -> None:
    """Each by its operation, with attributes of its row alone."""
    _turn(memory, tmp_path, CALLS, Answer("done"), agent_id="agent-9")

    registered = {one.name: set(one.attributes) for one in (*conventions.SPANS, *conventions.AGENT_SPANS)}
    for span in heard.spans.get_finished_spans():
        assert set(span.attributes or {}) <= registered[span.name.partition(" ")[0]]


def test_the_operations_of_metrics_are_registered(
    memory: GovernedMemory, heard: Heard, tmp_path: Path
) -> None:
    """That of the precheck too, which is no gate's; the page is made from the registry."""
    _turn(memory, tmp_path, Answer("done"))

    told = {place[0] for place in heard.points(conventions.DECISIONS)}
    assert conventions.PRECHECK in told
    assert told <= set(conventions.METRIC_OPERATIONS)
