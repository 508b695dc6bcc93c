"""Models, tools and endpoints for tests of turns."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent_runtime_ref.agent import Answer, Request, Tool, ToolSpec, TurnResult
from agent_runtime_ref.background import Turn
from tests.fault_server import Behaviour, answer
from tests.support import caller


class Scripted:
    """A model that says what a test tells it to, step by step, and keeps what it was asked."""

    name = "scripted"

    def __init__(self, *steps: Answer | BaseException | Callable[[Request], Answer]) -> None:
        self._steps = list(steps)
        self.asked: list[Request] = []
        self.shown: list[str] = []  # the context as it was at each step

    def answer(self, request: Request) -> Answer:
        """Return the next step."""
        self.asked.append(request)
        self.shown.append(request.context.rendered())
        step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
        if isinstance(step, BaseException):
            raise step
        return step if isinstance(step, Answer) else step(request)


def answered(**changes: Any) -> Turn:
    """Return a turn whose reply has left; its `mark` is nobody's unless a test says whose."""
    base: dict[str, Any] = {
        "turn_id": "turn-1",
        "caller": caller(),
        "purpose": "answer_generation",
        "message": "Where do support tickets go?",
        "reply": "To the queue.",
        "status": "complete",
        "at_us": 1_000_000,
        "decision_id": "dec-1",
        "mark": "subject:0",
    }
    return Turn(**(base | changes))


def told(result: TurnResult) -> list[str]:
    """Return the names of a turn's events, in order."""
    return [event.event_type for event in result.events]


def payloads(result: TurnResult, event_type: str) -> list[Mapping[str, Any]]:
    """Return what a turn's events of one type say."""
    return [event.payload for event in result.events if event.event_type == event_type]


def tool(name: str, function: Callable[..., Any], **properties: Any) -> Tool:
    """Return a tool with one required argument, `text`."""
    schema = {
        "type": "object",
        "properties": {"text": {"type": "string"}, **properties},
        "required": ["text"],
        "additionalProperties": False,
    }
    return Tool(ToolSpec(name, "for a test", schema), function)


def completion(message: Mapping[str, Any]) -> bytes:
    """Return the HTTP answer of an endpoint that says `message`."""
    return answer({"choices": [{"message": {"role": "assistant", **message}}]})


class Conversation:
    """The behaviour of an endpoint that answers one thing after another, and keeps what it was sent."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self.bodies: list[Any] = []

    def __call__(self, visitor: socket.socket, body: bytes) -> None:
        """Answer the next thing; the last one again and again."""
        self.bodies.append(json.loads(body))
        visitor.sendall(self._answers.pop(0) if len(self._answers) > 1 else self._answers[0])


def as_behaviour(conversation: Conversation) -> Behaviour:
    """Return a conversation as a server takes it."""
    return conversation


def words_of(lines: Sequence[str]) -> str:
    """Return the lines of a log as one text, to look for what must not be there."""
    return "\n".join(lines)
