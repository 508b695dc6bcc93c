"""Tools that a model may call in a turn, and how a call is carried out.

A model gets no tool that writes memory. Whatever it names and passes is somebody's words: an unknown tool and
arguments that do not follow the tool's schema are refused, and who asks comes from the turn alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from agent_runtime_ref.agent.models.base import ToolCall, ToolSpec
from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.contracts.arguments import each_of, require, require_callable
from agent_runtime_ref.errors import DocumentTypeError, RemoteMemoryValidationError, ToolError, UsageError
from agent_runtime_ref.remote_memory import recall_history_tool
from agent_runtime_ref.runtime import GovernedMemory

__all__ = ["Tool", "ToolAnswer", "Tools", "recall_tool"]


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool answered, and the records that are in it: they are told as part of the context.

    A text beyond `agent.tool_bytes_max` bytes is cut, and marked as such.
    """

    text: str
    record_ids: tuple[str, ...] = ()  # memory ids


class ToolFunction(Protocol):
    """Carries out a call in the name of `caller`, who comes from the turn and never from the model.

    It runs on the thread of the turn and within `session_state.in_turn`, so an `Enforcer` in it works.
    """

    def __call__(self, arguments: Mapping[str, Any], *, caller: Caller, purpose: str) -> ToolAnswer | str:
        """Return the answer; `arguments` follow the schema. What is raised ends the call, not the turn.

        Raises:
            ToolError: the call cannot be made so; the model is told why. Of another error of this package it
                is told the sentence, of any other the class alone.
        """


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: how a model is told of it, and what it does.

    Raises:
        DocumentTypeError: `spec` is no `ToolSpec`, or `function` cannot be called.
    """

    spec: ToolSpec
    function: ToolFunction

    def __post_init__(self) -> None:
        require("spec", self.spec, ToolSpec)
        require_callable("function", self.function)


class Tools:
    """The tools of one runtime, by name."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        """Take tools with distinct names.

        Raises:
            DocumentTypeError: one is no `Tool`.
            UsageError: two have one name; one of them would stand in for the other unseen.
        """
        tools = tuple(each_of("tools", tools, Tool))
        self._tools = {tool.spec.name: tool for tool in tools}
        for name in self._tools:
            if sum(tool.spec.name == name for tool in tools) > 1:
                raise UsageError(f"two tools are called `{name}`; give one of them another name")
        self.specs = tuple(tool.spec for tool in tools)

    def known(self, name: str) -> str:
        """Return a name that a model gave, where it is that of a tool; else an empty text."""
        return name if name in self._tools else ""

    def call(self, call: ToolCall, *, caller: Caller, purpose: str) -> ToolAnswer:
        """Return what a tool answers.

        Raises:
            ToolError: there is no such tool, or its arguments are not those of its schema.
            Exception: whatever the tool raises.
        """
        tool = self._tools.get(call.name)
        if tool is None:
            raise ToolError(f"there is no tool of that name; there are {', '.join(self._tools) or 'none'}")
        _check(tool.spec, call.arguments)
        return _answered(tool.spec.name, tool.function(call.arguments, caller=caller, purpose=purpose))


def _answered(name: str, given: object) -> ToolAnswer:
    """Return what a tool answered, in its one form.

    Raises:
        DocumentTypeError: it is neither text nor a `ToolAnswer` of text and ids; the call has failed, the
            turn goes on.
    """
    answer = ToolAnswer(given) if isinstance(given, str) else given
    if not isinstance(answer, ToolAnswer) or not _is_whole(answer):
        kind = type(given).__name__
        raise DocumentTypeError(f"the tool `{name}` must return a string or a `ToolAnswer`, not {kind}")
    return answer


def _is_whole(answer: ToolAnswer) -> bool:
    ids: object = answer.record_ids
    return isinstance(ids, tuple | list) and all(isinstance(one, str) for one in (answer.text, *ids))


def recall_tool(memory: GovernedMemory) -> Tool:
    """Return the tool that recalls the caller's earlier conversations, through the read gate."""
    told = recall_history_tool()
    spec = ToolSpec(told["name"], told["description"], told["input_schema"])
    return Tool(spec, partial(_recalled, memory))


def _recalled(
    memory: GovernedMemory, arguments: Mapping[str, Any], *, caller: Caller, purpose: str
) -> ToolAnswer:
    limit = arguments.get("limit", 5)
    try:
        result = memory.recall(arguments["query"], caller=caller, purpose=purpose, limit=limit)
    except RemoteMemoryValidationError as error:
        raise ToolError(str(error)) from error
    document = result.to_dict()
    # The tool's own JSON names what was found; a model has nothing else to read it from.
    for told, hit in zip(document["hits"], result.hits, strict=True):
        told["snippet"] = hit.snippet
    return ToolAnswer(json.dumps(document, ensure_ascii=False), tuple(hit.memory_id for hit in result.hits))


def _check(spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that do not follow the schema; the sentence names places and never values.

    Raises:
        ToolError: they do not.
    """
    import jsonschema_rs

    if not jsonschema_rs.is_valid(dict(spec.schema), dict(arguments)):
        wanted = ", ".join(spec.schema.get("properties", {}))
        raise ToolError(f"the arguments of `{spec.name}` are not those of its schema: {wanted}")
