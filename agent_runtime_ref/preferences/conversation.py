"""What an agent calls: keep what a turn brought, forget what the user wants forgotten, and a tool for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from typing import Any

from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.contracts.finding import Finding
from agent_runtime_ref.errors import PreferenceInvalidError
from agent_runtime_ref.preferences.curation import Curated
from agent_runtime_ref.preferences.forgetting import Forgotten
from agent_runtime_ref.preferences.identity import is_anonymous, local_caller
from agent_runtime_ref.preferences.offered import finding_of
from agent_runtime_ref.preferences.places import address_of
from agent_runtime_ref.preferences.store import PreferenceStore

__all__ = [
    "default_store",
    "forget_preference",
    "forget_preference_tool",
    "forget_preferences",
    "persist_new_preferences",
]

_TOOL = "forget_preference"
_DESCRIPTION = (
    "Forget one long-term preference of this user, at once, because the user asks for it. Name it by its key "
    "from the block user_long_term_preferences, or describe it in the words in which it was said. Where "
    "exactly one is meant it is removed; else nothing is, and the candidates are returned: ask the user."
)
_guard = threading.Lock()
_stores: dict[str, PreferenceStore] = {}


def default_store() -> PreferenceStore:
    """Return the store that the environment names; the same at each call, and nothing is made by it."""
    address = address_of()
    with _guard:
        if address not in _stores:
            _stores[address] = PreferenceStore(address)
        return _stores[address]


def persist_new_preferences(
    items: Iterable[object],
    *,
    caller: Caller | None = None,
    store: PreferenceStore | None = None,
    source_session: str | None = None,
) -> tuple[Curated, ...]:
    """Hand what a turn brought to the curator as one change, and return what became of each, in order.

    An item is any object or mapping with content, category and polarity; `domain` and `slug` are derived
    where they are missing, and a key that it carries is not looked at. What is no preference is told as
    `invalid` and keeps no other from being kept. `source_session` is that of the context unless it is passed.
    Nothing is kept of nobody in particular, and nothing is told then.

    Raises:
        PreferenceInvalidError: there are more than 50 preferences, which no single change takes; hand them in
            parts. Nothing was written.
        PolicyDeniedError, EngineFailureError, StoreError: nothing was written.
    """
    caller = caller or local_caller()
    if is_anonymous(caller):
        return ()
    told: list[Curated | None] = []
    findings: list[Finding] = []
    for item in items:
        try:
            findings.append(finding_of(item))
            told.append(None)
        except PreferenceInvalidError as error:
            told.append(Curated("", "invalid", problem=str(error)))
    store = store or default_store()
    kept = iter(store.write_many(findings, caller=caller, source_session=source_session) if findings else ())
    return tuple(next(kept) if one is None else one for one in told)


def forget_preferences(
    text_or_key: str | Iterable[str], *, caller: Caller | None = None, store: PreferenceStore | None = None
) -> Forgotten:
    """Remove each preference that is named by its key or described, and return what went and what is near.

    Nobody in particular has none, so nothing is removed.
    """
    caller = caller or local_caller()
    wanted = [text_or_key] if isinstance(text_or_key, str) else list(text_or_key)
    if is_anonymous(caller):
        return Forgotten((), ())
    each = [(store or default_store()).forget(one, caller=caller) for one in wanted]
    removed = tuple(dict.fromkeys(key for one in each for key in one.removed))
    near = {str(kept.key): kept for one in each for kept in one.candidates}
    return Forgotten(removed, tuple(one for key, one in near.items() if key not in removed))


def forget_preference(text_or_key: str) -> str:
    """Return, as JSON for a model, what became of the local user's wish to have a preference forgotten.

    Raises:
        PolicyDeniedError, EngineFailureError, StoreError: nothing was removed.
    """
    return json.dumps(forget_preferences(text_or_key).to_document(), ensure_ascii=False)


def forget_preference_tool() -> dict[str, Any]:
    """Return the tool as a model is told of it: name, description and the schema of its arguments."""
    return {
        "name": _TOOL,
        "description": _DESCRIPTION,
        "input_schema": {
            "type": "object",
            "properties": {
                "text_or_key": {
                    "type": "string",
                    "description": "The key, or what the preference is about.",
                    "minLength": 1,
                    "maxLength": 500,
                }
            },
            "required": ["text_or_key"],
            "additionalProperties": False,
        },
    }
