"""What a user always or never wants, in a turn: shown as far as it is relevant, enforced as a whole."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from agent_runtime_ref.agent.layers import Item
from agent_runtime_ref.agent.models.base import ToolSpec
from agent_runtime_ref.agent.tools import Tool, ToolAnswer
from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.errors import PolicyDeniedError, TextError
from agent_runtime_ref.preferences import (
    Preference,
    PreferenceStore,
    forget_preference_tool,
    forget_preferences,
    format_preferences,
    is_anonymous,
)
from agent_runtime_ref.preferences.places import VARIABLE
from agent_runtime_ref.runtime import GovernedMemory

__all__ = ["PreferenceLayer", "preferences_over"]

SHOWN_MAX = 10


def preferences_over(memory: GovernedMemory) -> PreferenceStore:
    """Return the preferences of a runtime: where the environment says, else in the runtime's own memory."""
    if os.environ.get(VARIABLE, "").strip():
        return PreferenceStore()
    return PreferenceStore(memory=memory)


class PreferenceLayer:
    """Says what a turn is held to for good, and how a model is told of it; nobody in particular has none."""

    def __init__(self, store: PreferenceStore) -> None:
        self.store = store

    def standing(self, caller: Caller) -> tuple[Preference, ...]:
        """Return every preference of the caller's subject, for code that enforces them.

        Raises:
            PolicyDeniedError: the policy does not let the caller read them; the turn does not go on without.
        """
        return () if is_anonymous(caller) else self.store.read(caller=caller)

    def items(self, message: str, caller: Caller) -> tuple[Item, ...]:
        """Return the preferences that a message is about, and hard ones, as one item; else nothing."""
        if is_anonymous(caller):
            return ()
        try:
            found = self.store.read_relevant(message, caller=caller, limit=SHOWN_MAX)
        except (PolicyDeniedError, TextError):
            return ()  # on record; what is hard is enforced all the same
        block = format_preferences(found)
        ids = tuple(one.record_id for one in found if f'"{one.key}"' in block)
        return (Item("preferences", block, block, ids),) if block else ()

    def tool(self) -> Tool:
        """Return the tool by which a model has a preference forgotten, at once."""
        told = forget_preference_tool()
        return Tool(ToolSpec(told["name"], told["description"], told["input_schema"]), self._forget)

    def _forget(self, arguments: Mapping[str, Any], *, caller: Caller, purpose: str) -> ToolAnswer:
        """Forget, whatever the turn is for: a person may always take back what was kept of him."""
        done = forget_preferences(arguments["text_or_key"], caller=caller, store=self.store)
        return ToolAnswer(json.dumps(done.to_document(), ensure_ascii=False))
