"""What an agent of one user needs: its memory at first use, a tool to recall, and a profile to begin with.

Importing this makes nothing. The store is named by the first call that needs it, a model by the first
question to it.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.errors import ModelNotConfiguredError, RemoteMemoryValidationError
from agent_runtime_ref.recall.query import LIMIT_MAX
from agent_runtime_ref.recall.render import render_remote_profile
from agent_runtime_ref.remote_memory.governed import LOCAL_TENANT, GovernedFile
from agent_runtime_ref.remote_memory.store import RemoteMemoryStore, user_scope_of
from agent_runtime_ref.resources import data_home, user_of

__all__ = [
    "ModelClient",
    "default_runtime",
    "recall_history",
    "recall_history_tool",
    "runtime_client",
    "user_file",
]

_TOOL = "recall_history"
_MODEL_VARIABLE = "MODEL_ID"
_DESCRIPTION = (
    "Search what this user and the assistant talked about in earlier conversations. The search does not see "
    "the current conversation, so the query must be self-contained: name the topic, the people and the "
    "things that are meant, in words that stood in the earlier conversation. Not `continue what we did last "
    "time`, but `persistence decision SQLite WAL`. Returns JSON: hits with provenance and a score, or no "
    "hits and the reason. A hit is what somebody said, not a fact."
)
_guard = threading.Lock()
_runtimes: dict[tuple[Path, str], GovernedFile] = {}


def user_file(user_id: str) -> Path:
    """Return where a user's remote memory lies; it is named, not made.

    Raises:
        RemoteMemoryValidationError: the id is blank.
    """
    return data_home() / "remote-memory" / f"{user_scope_of(user_id)}.jsonl"


def default_runtime() -> GovernedFile:
    """Return this user's own memory behind the gates, as the environment names it; the same at each call.

    Its `store` takes records, its `recall` and `latest_profile` show them. No file is made before the first
    record, and none is seeded.

    Raises:
        RemoteMemoryValidationError: the environment names a user with a blank id.
    """
    user_id = user_of()
    place = (user_file(user_id), user_id)
    with _guard:
        if place not in _runtimes:
            caller = Caller(LOCAL_TENANT, user_id, subject=user_id)
            _runtimes[place] = GovernedFile(RemoteMemoryStore(place[0], user_id=user_id), caller=caller)
        return _runtimes[place]


def recall_history(query: str, limit: int = 5) -> str:
    """Return what a self-contained query recalls of this user's history, as JSON for a model.

    Raises:
        RemoteMemoryValidationError: the query has nothing to search by, or `limit` is not from 1 to 10.
        RemoteMemoryError: the user's file cannot be read, or is not this user's.
        PolicyDeniedError: the policy refused, or no engine answered.
    """
    return json.dumps(default_runtime().recall(query, limit=limit).to_dict(), ensure_ascii=False)


def recall_history_tool() -> dict[str, Any]:
    """Return the tool as a model is told of it: name, description and the schema of its arguments."""
    return {
        "name": _TOOL,
        "description": _DESCRIPTION,
        "input_schema": {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": "Self-contained: what the history is about, never a reference to it.",
                    "minLength": 1,
                },
                "limit": {
                    "type": "integer",
                    "description": "How many hits at most.",
                    "minimum": 1,
                    "maximum": LIMIT_MAX,
                    "default": 5,
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    }


@dataclass(frozen=True, slots=True)
class ModelClient:
    """What is sent to a model, and what its tool calls get; the sending is the application's own."""

    model_id: str
    runtime: GovernedFile

    def request(self, message: str) -> dict[str, Any]:
        """Return the first request of a conversation: the latest profile with its source, and the tool."""
        request: dict[str, Any] = {
            "model": self.model_id,
            "messages": [{"role": "user", "content": message}],
            "tools": [recall_history_tool()],
        }
        profile = self.runtime.latest_profile()
        if profile is not None:
            request["system"] = render_remote_profile(profile)
        return request

    def tool_result(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return the answer to a call of the tool.

        Raises:
            RemoteMemoryValidationError: there is no such tool, or its arguments are not those of the schema.
        """
        if name != _TOOL or "query" not in arguments or not {"query", "limit"}.issuperset(arguments):
            raise RemoteMemoryValidationError(f"the only tool is {_TOOL}, with query and limit")
        result = self.runtime.recall(arguments["query"], limit=arguments.get("limit", 5))
        return json.dumps(result.to_dict(), ensure_ascii=False)


def runtime_client() -> ModelClient:
    """Return what asks the model that MODEL_ID names, over this user's own memory.

    Raises:
        ModelNotConfiguredError: MODEL_ID is not set.
    """
    model_id = os.environ.get(_MODEL_VARIABLE, "").strip()
    if not model_id:
        raise ModelNotConfiguredError(f"{_MODEL_VARIABLE} is not set")
    return ModelClient(model_id, default_runtime())
