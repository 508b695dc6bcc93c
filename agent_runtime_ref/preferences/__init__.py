"""Long-term preferences: derived keys, governed records, the relevant few for a prompt, and forgetting."""

from agent_runtime_ref.preferences.conversation import (
    default_store,
    forget_preference,
    forget_preference_tool,
    forget_preferences,
    persist_new_preferences,
)
from agent_runtime_ref.preferences.curation import Curated, Curation
from agent_runtime_ref.preferences.encoder import lexical_encoder
from agent_runtime_ref.preferences.forgetting import Forgotten
from agent_runtime_ref.preferences.identity import in_session, is_anonymous
from agent_runtime_ref.preferences.keys import Key
from agent_runtime_ref.preferences.preference import Preference
from agent_runtime_ref.preferences.render import format_preferences
from agent_runtime_ref.preferences.store import PreferenceStore

__all__ = [
    "Curated",
    "Curation",
    "Forgotten",
    "Key",
    "Preference",
    "PreferenceStore",
    "default_store",
    "forget_preference",
    "forget_preference_tool",
    "forget_preferences",
    "format_preferences",
    "in_session",
    "is_anonymous",
    "lexical_encoder",
    "persist_new_preferences",
]
