"""What a model is asked and what it may answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent_runtime_ref.agent.layers import Context

__all__ = ["Answer", "Exchange", "Model", "Request", "ToolCall", "ToolSpec"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model is told of it."""

    name: str
    description: str
    schema: Mapping[str, Any]  # JSON Schema of its arguments, an object


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that a model wants called; nothing in it is trusted."""

    name: str
    arguments: Mapping[str, Any]
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call of a tool and what the model is told of it."""

    call: ToolCall
    status: str  # ok, refused or failed
    result: str  # escaped: the element in the tool layer


@dataclass(frozen=True, slots=True)
class Request:
    """One step: the context with all its layers, the user's message, and what tools answered so far."""

    message: str
    context: Context
    tools: Sequence[ToolSpec] = ()
    exchanges: Sequence[Exchange] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class Answer:
    """Either a reply or tools to be called; where there are calls, the text is not a reply yet."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()


class Model(Protocol):
    """Answers one step of a turn."""

    @property
    def name(self) -> str:
        """How the model is called where a person reads it."""

    def answer(self, request: Request) -> Answer:
        """Return the reply or the tools that are wanted first.

        Raises:
            ModelError: there is none, and why.
        """
