"""A developer's own mistakes: refused at the door where they can be, and else told with their place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import AgentRuntime, GovernedMemory
from agent_runtime_ref.agent import Answer, Tool, ToolAnswer, ToolCall, ToolSpec
from agent_runtime_ref.cli.log_output import Output, traceback_of
from agent_runtime_ref.contracts.finding import Amount, Finding
from agent_runtime_ref.errors import DocumentTypeError, DocumentValueError
from agent_runtime_ref.session_state import Enforcer, SessionState, in_turn
from agent_runtime_ref.telemetry import diagnostics
from tests.support import caller
from tests.turns import Scripted, tool

OBJECT = {"type": "object"}


class Nameless:
    """Answers, and says not who it is."""

    def answer(self, request: Any) -> Answer:
        """Answer."""
        return Answer("yes")


class Mute:
    """Has a name, and an answer that cannot be called."""

    name = "mute"
    answer = "yes"


class Numbered(Nameless):
    """Has a name that is no text."""

    name = 7


@pytest.mark.parametrize("model", [lambda request: Answer("x"), Nameless(), Mute(), Numbered(), Scripted])
def test_what_is_no_model_is_refused_when_the_runtime_is_opened(memory: GovernedMemory, model: Any) -> None:
    """It would fail in the first turn, behind the model's back."""
    with pytest.raises(DocumentTypeError, match=r"^model"):
        AgentRuntime.open(memory, model=model)


@pytest.mark.parametrize("tools", [[lambda arguments: "x"], "abc", 7, [ToolSpec("a", "b", OBJECT)]])
def test_what_is_no_list_of_tools_is_refused(memory: GovernedMemory, tools: Any) -> None:
    """A bare function says neither what it is called nor what it takes."""
    with pytest.raises(DocumentTypeError, match=r"^tools: must be a list of Tool$"):
        AgentRuntime.open(memory, tools=tools)


@pytest.mark.parametrize(
    ("name", "schema", "said"),
    [
        ("a b", OBJECT, "name: must be 1 to 64 letters"),
        ("", OBJECT, "name: must be 1 to 64 letters"),
        ("a\n", OBJECT, "name: must be 1 to 64 letters"),
        ("x" * 65, OBJECT, "name: must be 1 to 64 letters"),
        ("a", {"type": "objekt"}, "schema: of the tool `a`"),
        ("a", {"type": "string"}, "schema: of the tool `a`"),
        ("a", {"type": "object", "properties": []}, "schema: of the tool `a`"),
        ("a", {"type": "object", "properties": {"b": {"type": 7}}}, "schema: of the tool `a`"),
        ("a", {"type": "object", "default": object()}, "schema: of the tool `a`"),
    ],
)
def test_a_tool_that_no_endpoint_would_take_is_refused(name: str, schema: Any, said: str) -> None:
    """The sentence names the tool and what is wrong."""
    with pytest.raises(DocumentValueError, match=said):
        ToolSpec(name, "for a test", schema)


@pytest.mark.parametrize(
    "made",
    [
        lambda: ToolSpec(None, "x", OBJECT),  # type: ignore[arg-type]
        lambda: ToolSpec("a", None, OBJECT),  # type: ignore[arg-type]
        lambda: ToolSpec("a", "x", None),  # type: ignore[arg-type]
        lambda: Tool("a", lambda *_, **__: "x"),  # type: ignore[arg-type]
        lambda: Tool(ToolSpec("a", "x", OBJECT), "x"),  # type: ignore[arg-type]
    ],
)
def test_parts_of_a_tool_of_another_type_are_refused(made: Callable[[], object]) -> None:
    """At once, not when a model calls it."""
    with pytest.raises(DocumentTypeError):
        made()


def test_a_schema_may_name_its_dialect() -> None:
    """It is not fetched for that."""
    schema = {"$schema": "http://127.0.0.1:9/none", "type": "object"}

    assert ToolSpec("a", "x", schema).schema == schema


@pytest.mark.parametrize("given", [Answer(), Answer(" \n")])
def test_neither_a_reply_nor_a_tool_call_is_no_answer(memory: GovernedMemory, given: Answer) -> None:
    """A turn without a reply is not complete."""
    with AgentRuntime.open(memory, model=Scripted(given)) as runtime:
        result = runtime.run("hello", caller=caller())

    assert (result.status, "neither a reply nor a tool call" in str(result.error)) == ("failed", True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rates": lambda source, target: 1.1}, "rates: must be a function that returns a `Decimal` or None"),
        ({"view": lambda item: None}, "view: must be a function that returns an `ItemView`"),
        ({"score": lambda item: "best"}, "score: must be a function that returns a number"),
    ],
)
def test_functions_of_an_enforcer_are_held_to_what_they_promise(options: Any, said: str) -> None:
    """What came back is named by the option, and not by what it lacks."""
    budget = Finding(
        "session",
        "like",
        "hard",
        "budget",
        "general",
        "max",
        "$9",
        anchor="budget",
        amount=Amount("9", "USD"),
    )
    with in_turn(SessionState((budget,))), pytest.raises(DocumentTypeError, match=said):
        Enforcer(**options).apply([{"name": "box", "price": "€5"}])


@pytest.mark.parametrize("option", ["rates", "view", "score"])
def test_an_enforcer_refuses_what_cannot_be_called(option: str) -> None:
    """A table of rates is no function."""
    with pytest.raises(DocumentTypeError, match=f"{option}: must be callable"):
        Enforcer(**{option: {"EUR": Decimal("1.1")}})  # type: ignore[arg-type]


# --- what can only fail while it runs -----------------------------------------------------------------------


def broken(arguments: Any, **_: Any) -> str:
    """Fail with what a user said in the message."""
    raise KeyError("hunter2")


def place_of_line(text: str) -> str:
    """Return this file with the number of the line that reads `text`."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return f"{__file__}:{[line.strip() for line in lines].index(text) + 1}"


def told(capsys: pytest.CaptureFixture[str]) -> tuple[str, list[dict[str, Any]]]:
    """Return what stands on standard error, and the diagnostics in it."""
    err = capsys.readouterr().err
    return err, [json.loads(line) for line in err.splitlines() if line.startswith("{")]


def test_a_tool_that_raises_is_told_with_its_place(
    memory: GovernedMemory, capsys: pytest.CaptureFixture[str]
) -> None:
    """Class, file and line of the innermost frame; what the error says may be content, and stays away."""
    model = Scripted(Answer(calls=(ToolCall("broken", {"text": "x"}),)), Answer("Never mind."))
    with diagnostics.told_by(Output("json")):
        with AgentRuntime.open(memory, model=model, tools=[tool("broken", broken)]) as runtime:
            runtime.run("hello", caller=caller())
        err, (line,) = told(capsys)

    assert (line["event"], line["tool"], line["reason"]) == ("tool_failed", "broken", "KeyError")
    assert line["place"] == place_of_line('raise KeyError("hunter2")')
    assert "hunter2" not in err


def test_a_tool_that_answers_something_else_is_told_as_what_it_is(
    memory: GovernedMemory, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model and the developer learn what a tool returns."""
    call = Answer(calls=(ToolCall("odd", {"text": "x"}),))
    model = Scripted(call, Answer("Never mind."))
    odd = tool("odd", lambda arguments, **_: {"text": "x"})
    with diagnostics.told_by(Output("json")):
        with AgentRuntime.open(memory, model=model, tools=[odd]) as runtime:
            runtime.run("hello", caller=caller())
        _, (line,) = told(capsys)

    assert (line["tool"], line["reason"], line["code"]) == (
        "odd",
        "DocumentTypeError",
        DocumentTypeError.code,
    )
    assert "must return a string or a `ToolAnswer`, not dict" in model.shown[1]


def dividing(_: Any) -> Answer:
    """Fail as a model."""
    return Answer(str(1 // len("")))


def test_a_model_that_raises_is_told_with_its_place(
    memory: GovernedMemory, capsys: pytest.CaptureFixture[str]
) -> None:
    """The result names the class alone; the developer finds the line."""
    with diagnostics.told_by(Output("json")):
        with AgentRuntime.open(memory, model=Scripted(dividing)) as runtime:
            result = runtime.run("hello", caller=caller())
        err, (line,) = told(capsys)

    assert result.error == "internal error: ZeroDivisionError"
    assert (line["event"], line["reason"]) == ("turn_failed", "ZeroDivisionError")
    assert line["place"] == place_of_line('return Answer(str(1 // len("")))')
    assert "Traceback" not in err


def test_debug_shows_the_traceback(memory: GovernedMemory, capsys: pytest.CaptureFixture[str]) -> None:
    """Where it was asked for, as `--debug` of the command does, the error is shown whole."""
    with diagnostics.told_by(Output("json"), trace=traceback_of):
        with AgentRuntime.open(memory, model=Scripted(dividing)) as runtime:
            runtime.run("hello", caller=caller())
        err, _ = told(capsys)

    assert re.search(r"Traceback .*, in dividing\n.*ZeroDivisionError", err, re.DOTALL)


def test_a_name_that_changes_is_read_once(memory: GovernedMemory) -> None:
    """A turn never raises because a model no longer knows its name."""
    model = Scripted(Answer("yes"))
    with AgentRuntime.open(memory, model=model) as runtime:
        model.name = None  # type: ignore[assignment]
        result = runtime.run("hello", caller=caller())

    assert (result.status, result.model) == ("complete", "scripted")


def test_a_tool_may_answer_with_text_or_with_records(memory: GovernedMemory) -> None:
    """Both forms are one; the ids are told as part of the context."""
    calls = (ToolCall("plain", {"text": "x"}), ToolCall("listed", {"text": "x"}))
    tools = [
        tool("plain", lambda arguments, **_: "one"),
        tool("listed", lambda arguments, **_: ToolAnswer("two", ("mem-1",))),
    ]
    with AgentRuntime.open(
        memory, model=Scripted(Answer(calls=calls), Answer("yes")), tools=tools
    ) as runtime:
        result = runtime.run("hello", caller=caller())

    assert [item.text for item in result.layers[3].items] == ["one", "two"]
    assert result.layers[3].record_ids == ("mem-1",)
