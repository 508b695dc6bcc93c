"""What a model is asked and what it may answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent_runtime_ref.agent.layers import Context
from agent_runtime_ref.contracts.arguments import require, require_callable, require_parts, require_string
from agent_runtime_ref.errors import DocumentTypeError, DocumentValueError

__all__ = ["Answer", "Exchange", "Model", "Request", "ToolCall", "ToolSpec", "require_model"]

# What every endpoint takes as the name of a function.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model is told of it.

    Raises:
        DocumentTypeError: a part is of another type.
        DocumentValueError: the name has other characters than letters, digits, `_` and `-`, or more than 64;
            or the schema is no JSON Schema of an object.
    """

    name: str
    description: str
    schema: Mapping[str, Any]  # JSON Schema of its arguments, an object

    def __post_init__(self) -> None:
        require_string("name", self.name)
        require_string("description", self.description)
        require("schema", self.schema, Mapping, wanted="a mapping, the JSON Schema of the arguments")
        if not _NAME.match(self.name):
            said = "must be 1 to 64 letters, digits, `_` or `-`, as endpoints want the name of a tool"
            raise DocumentValueError(f"name: {said}", path="name")
        if not _is_schema(self.schema):
            said = f"of the tool `{self.name}` must be a JSON Schema of `type: object`"
            raise DocumentValueError(f"schema: {said}", path="schema")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that a model wants called; nothing in it is trusted.

    `arguments` are looked at against the tool's schema before it is called; `call_id` is what an endpoint
    calls the call, and blank where a model has no use for it.
    """

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
    """One step: the context with all its layers, the user's message, and what tools answered so far.

    `context.rendered()` is the text of all layers, `context.layers` has them one by one. In the first step
    `exchanges` is empty; then it holds each call of this turn with its result, oldest first.
    """

    message: str  # as the user wrote it, at most 65,536 characters
    context: Context
    tools: Sequence[ToolSpec] = ()
    exchanges: Sequence[Exchange] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class Answer:
    """Either a reply or tools to be called; where there are calls, the text is not a reply yet.

    With neither the turn fails, as it does where a part is of another type: an answer is looked at when it
    comes back, since it may be made of anything.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()


class Model(Protocol):
    """Answers one step of a turn. It is asked from every thread that runs a turn."""

    @property
    def name(self) -> str:
        """How the model is called where a person reads it; read once, when the runtime is opened."""

    def answer(self, request: Request) -> Answer:
        """Return the reply or the tools that are wanted first; asked again when these have answered.

        Raises:
            ModelError: there is none, and why. Whatever else is raised ends the turn as failed too.
        """


def require_model(model: Any) -> Model:
    """Return a model; what is none is refused before anything is asked of it.

    Raises:
        DocumentTypeError: it has no `name` that is text, or no `answer` that can be called.
    """
    require_parts("model", model, "name", "answer")
    if isinstance(model, type):
        raise DocumentTypeError("model: must be an object, not its class", path="model")
    require_string("model.name", model.name)
    require_callable("model.answer", model.answer)
    checked: Model = model
    return checked


def _is_schema(schema: Mapping[str, Any]) -> bool:
    import jsonschema_rs

    # Without the name of its dialect, which would be fetched.
    own = {name: value for name, value in schema.items() if name != "$schema"}
    try:
        json.dumps(own)  # as it is sent
        return own.get("type", "object") == "object" and jsonschema_rs.meta.is_valid(own)
    except (ValueError, TypeError, RecursionError):  # it is no JSON at all
        return False
