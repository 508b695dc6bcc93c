"""Tools of an application that answer something else, or are called like another."""

from __future__ import annotations

from typing import Any

import pytest

from agent_runtime_ref import AgentRuntime, GovernedMemory
from agent_runtime_ref.agent import Answer, ToolAnswer, ToolCall
from agent_runtime_ref.errors import UsageError
from tests.support import caller
from tests.turns import Scripted, payloads, tool


@pytest.mark.parametrize(
    "given",
    [None, 5, b"bytes", {}, ToolAnswer(None), ToolAnswer("x", ("mem-1", 5)), ToolAnswer("x", 5)],  # type: ignore[arg-type]
)
def test_a_tool_that_answers_something_else_has_failed(memory: GovernedMemory, given: Any) -> None:
    """The call is told as failed, to the model and in the log; the turn goes on to its reply."""
    odd = tool("odd", lambda arguments, **_: given)
    model = Scripted(Answer(calls=(ToolCall("odd", {"text": "x"}),)), Answer("Never mind."))
    with AgentRuntime.open(memory, model=model, tools=[odd]) as runtime:
        result = runtime.run("hello", caller=caller())

    assert (result.status, result.reply) == ("complete", "Never mind.")
    (told,) = payloads(result, "tool_execution")
    assert (told["tool"], told["status"], told["error.type"]) == ("odd", "failed", "DocumentTypeError")


@pytest.mark.parametrize("name", ["odd", "recall_history", "forget_preference"])
def test_two_tools_of_one_name_are_refused(memory: GovernedMemory, name: str) -> None:
    """Neither stands in for the other, nor for one that the runtime brings along."""
    tools = [tool("odd", lambda arguments, **_: "x"), tool(name, lambda arguments, **_: "x")]

    with pytest.raises(UsageError, match=f"two tools are called `{name}`"):
        AgentRuntime.open(memory, tools=tools)
