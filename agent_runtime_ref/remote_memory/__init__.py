"""A user's remote memory: records that are kept, and views of them that a query recalls.

`RemoteMemoryStore` and `RecallEngine` lie below the gates: they ask no policy. `default_runtime` and what
is built on it go through them; these names are imported at first use, since they bring the gates along.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from agent_runtime_ref.contracts.stored import MemoryKind, MemorySource, StoredMemory
from agent_runtime_ref.errors import (
    ModelNotConfiguredError,
    RemoteMemoryCorruptionError,
    RemoteMemoryDuplicateError,
    RemoteMemoryError,
    RemoteMemoryScopeError,
    RemoteMemoryValidationError,
)
from agent_runtime_ref.recall import (
    RecallCandidate,
    RecallEngine,
    RecallHit,
    RecallQuery,
    RecallResult,
    RecallScope,
    RecallScoreBreakdown,
    build_recall_candidates,
    normalize_recall_query,
    render_recall_context,
    render_remote_profile,
    score_recall_candidate,
    stable_rank_recall_candidates,
)
from agent_runtime_ref.remote_memory.store import RemoteMemoryStore

if TYPE_CHECKING:
    from agent_runtime_ref.remote_memory.governed import GovernedFile
    from agent_runtime_ref.remote_memory.runtime import (
        ModelClient,
        default_runtime,
        recall_history,
        recall_history_tool,
        runtime_client,
    )

__all__ = [
    "GovernedFile",
    "MemoryKind",
    "MemorySource",
    "ModelClient",
    "ModelNotConfiguredError",
    "RecallCandidate",
    "RecallEngine",
    "RecallHit",
    "RecallQuery",
    "RecallResult",
    "RecallScope",
    "RecallScoreBreakdown",
    "RemoteMemoryCorruptionError",
    "RemoteMemoryDuplicateError",
    "RemoteMemoryError",
    "RemoteMemoryScopeError",
    "RemoteMemoryStore",
    "RemoteMemoryValidationError",
    "StoredMemory",
    "build_recall_candidates",
    "default_runtime",
    "normalize_recall_query",
    "recall_history",
    "recall_history_tool",
    "render_recall_context",
    "render_remote_profile",
    "runtime_client",
    "score_recall_candidate",
    "stable_rank_recall_candidates",
]

_HOMES = {
    "GovernedFile": "governed",
    "ModelClient": "runtime",
    "default_runtime": "runtime",
    "recall_history": "runtime",
    "recall_history_tool": "runtime",
    "runtime_client": "runtime",
}


def __getattr__(name: str) -> object:
    """Return a name that goes through the gates, importing its module now."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
