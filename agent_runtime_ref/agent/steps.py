"""The model step of a turn: asked, its tools called, asked again, until it replies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from agent_runtime_ref.agent.layers import Context, tool_item
from agent_runtime_ref.agent.models.base import Answer, Exchange, Model, Request, ToolCall
from agent_runtime_ref.agent.tools import ToolAnswer, Tools
from agent_runtime_ref.config import AgentSettings
from agent_runtime_ref.enforcement.runs import Run
from agent_runtime_ref.errors import GovernanceError, ModelError, ToolError
from agent_runtime_ref.telemetry import diagnostics
from agent_runtime_ref.telemetry.agent_spans import model_span, tool_span

__all__ = ["Steps"]


class Steps:
    """Leads a model through a turn. Thread-safe."""

    def __init__(self, model: Model, tools: Tools, settings: AgentSettings) -> None:
        self._model, self._name = model, model.name
        self._tools = tools
        self._settings = settings

    def reply(self, message: str, context: Context, run: Run, *, purpose: str) -> str:
        """Return the reply; what tools answer on the way is added to `context` and told.

        Raises:
            ModelError: there is no reply, or only ever another tool call.
            Exception: whatever the model raises.
            DecisionLogError: a call could not be written down.
        """
        exchanges: list[Exchange] = []
        for _ in range(self._settings.tool_steps_max + 1):
            with model_span(self._name):
                answer = self._model.answer(Request(message, context, self._tools.specs, tuple(exchanges)))
                if not _is_answer(answer):
                    raise ModelError("malformed", "the model returned something else than an answer")
            if not answer.calls:
                if not answer.text.strip():
                    raise ModelError("malformed", "neither a reply nor a tool call")
                return answer.text
            exchanges += [self._called(call, context, run, purpose) for call in answer.calls]
        raise ModelError("too_many_steps", f"more than {self._settings.tool_steps_max} of them tool calls")

    def _called(self, call: ToolCall, context: Context, run: Run, purpose: str) -> Exchange:
        """Carry out one call; whatever goes wrong in it is told to the model and to the log, not raised."""
        failure: Exception | None = None
        try:
            with tool_span(self._tools.known(call.name)):
                answer, status = self._tools.call(call, caller=run.caller, purpose=purpose), "ok"
        except ToolError as error:
            answer, status, failure = ToolAnswer(str(error)), "refused", error
        except Exception as error:
            # The sentence of an error of ours names no content; that of another may, and stays here.
            said = str(error) if isinstance(error, GovernanceError) else type(error).__name__
            diagnostics.failed("tool_failed", error, tool=call.name)
            answer, status, failure = ToolAnswer(f"the tool failed: {said}"), "failed", error
        budget = self._settings.tool_bytes_max
        item = tool_item(call.name, answer.text, status=status, budget=budget, record_ids=answer.record_ids)
        context.tools.append(item)
        run.tool(call.name, status, failure)
        return Exchange(call, status, item.block)


def _is_answer(given: object) -> TypeGuard[Answer]:
    """Say whether a model's answer is of the types that it promises, all of it text that can be written down.

    A reply is printed, kept and judged after it has left; what cannot be would fail there, again and again.
    """
    if not isinstance(given, Answer):
        return False
    calls: object = given.calls
    return isinstance(calls, tuple | list) and _is_text(given.text) and all(map(_is_call, calls))


def _is_call(given: object) -> bool:
    if not isinstance(given, ToolCall):
        return False
    arguments: object = given.arguments
    return _is_text(given.name) and _is_text(given.call_id) and isinstance(arguments, Mapping)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not any("\ud800" <= one <= "\udfff" for one in value)
