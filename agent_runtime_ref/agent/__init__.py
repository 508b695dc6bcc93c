"""The reference runtime: one governed turn, and the parts that an application may replace."""

from agent_runtime_ref.agent.layers import Item, Layer, LeftOut, Manifest
from agent_runtime_ref.agent.models import Answer, Model, OfflineModel, Request, ToolCall, ToolSpec
from agent_runtime_ref.agent.result import TurnResult
from agent_runtime_ref.agent.runtime import AgentRuntime
from agent_runtime_ref.agent.tools import Tool, ToolAnswer

__all__ = [
    "AgentRuntime",
    "Answer",
    "Item",
    "Layer",
    "LeftOut",
    "Manifest",
    "Model",
    "OfflineModel",
    "Request",
    "Tool",
    "ToolAnswer",
    "ToolCall",
    "ToolSpec",
    "TurnResult",
]
