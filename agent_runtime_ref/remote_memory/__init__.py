"""A user's remote memory: records that are kept, and views of them that a query recalls.

`RemoteMemoryStore` and `RecallEngine` lie below the gates: they ask no policy.
"""

from __future__ import annotations

from agent_runtime_ref.contracts.stored import MemoryKind, MemorySource, StoredMemory
from agent_runtime_ref.errors import (
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

__all__ = [
    "MemoryKind",
    "MemorySource",
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
    "normalize_recall_query",
    "render_recall_context",
    "render_remote_profile",
    "score_recall_candidate",
    "stable_rank_recall_candidates",
]
