"""The model step behind a protocol: the offline model that comes along, or an OpenAI-compatible endpoint."""

from agent_runtime_ref.agent.models.base import Answer, Model, Request, ToolCall, ToolSpec
from agent_runtime_ref.agent.models.offline import OfflineModel

__all__ = ["Answer", "Model", "OfflineModel", "Request", "ToolCall", "ToolSpec"]
