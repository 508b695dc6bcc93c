"""A model behind an OpenAI-compatible endpoint: what it is sent, and how its answer is taken."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent_runtime_ref.agent.models.base import Answer, Exchange, Request, ToolCall, ToolSpec
from agent_runtime_ref.chat_endpoint import ChatEndpoint
from agent_runtime_ref.errors import ModelError

__all__ = ["EndpointModel"]

CALLS_MAX = 8  # in one step


class EndpointModel:
    """Asks an endpoint for each step of a turn."""

    def __init__(self, endpoint: ChatEndpoint) -> None:
        """Ask `endpoint`; nothing is sent before the first step."""
        self._endpoint = endpoint
        self.name = endpoint.model

    def answer(self, request: Request) -> Answer:
        """Return what the endpoint answers to one step.

        Raises:
            ModelError: it did not answer, or not with a reply or tool calls.
        """
        options = {"tools": [_tool(spec) for spec in request.tools]} if request.tools else {}
        message = self._endpoint.message(_messages(request), **options)
        calls = _calls(message.get("tool_calls"))
        text = message.get("content")
        if text is not None and not isinstance(text, str):
            raise ModelError("malformed", "the content is no text")
        if not calls and not (text or "").strip():
            raise ModelError("malformed", "neither a reply nor a tool call")
        return Answer(text or "", calls)


def _messages(request: Request) -> list[dict[str, Any]]:
    """Return the conversation of a turn: the layers as the system's words, then who said what."""
    layers = [layer.rendered() for layer in request.context.layers if layer.name != "tool"]
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "\n".join(filter(None, layers))},
        {"role": "user", "content": request.message},
    ]
    for exchange in request.exchanges:
        messages += _exchanged(exchange)
    return messages


def _exchanged(exchange: Exchange) -> Sequence[dict[str, Any]]:
    call = exchange.call
    function = {"name": call.name, "arguments": json.dumps(dict(call.arguments), ensure_ascii=False)}
    asked = {"id": call.call_id, "type": "function", "function": function}
    return (
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": call.call_id, "content": exchange.result},
    )


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": dict(spec.schema)}
    return {"type": "function", "function": function}


def _calls(given: object) -> tuple[ToolCall, ...]:
    """Return the tool calls of an answer; one that is none is no answer at all."""
    if given is None:
        return ()
    if not isinstance(given, list) or len(given) > CALLS_MAX:
        raise ModelError("malformed", f"tool calls are no list of at most {CALLS_MAX}")
    return tuple(_call(index, one) for index, one in enumerate(given, start=1))


def _call(index: int, given: object) -> ToolCall:
    malformed = ModelError("malformed", "a tool call is none")
    if not isinstance(given, Mapping):
        raise malformed
    try:
        function = given["function"]
        name, arguments = function["name"], json.loads(function["arguments"] or "{}")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise malformed from error
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise malformed
    call_id = given.get("id")
    return ToolCall(
        name[:128], arguments, call_id if isinstance(call_id, str) and call_id else f"call-{index}"
    )
