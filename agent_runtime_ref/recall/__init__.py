"""From a text to ranked matches: pure steps that know nothing of stores or policies.

normalize -> candidate -> score -> stable rank -> render. Names are imported when they are asked for:
the gates need the analyser alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_runtime_ref.contracts import ScoreBreakdown as RecallScoreBreakdown
    from agent_runtime_ref.contracts.stored import MemoryKind, MemorySource, StoredMemory
    from agent_runtime_ref.recall.candidates import RecallCandidate, build_recall_candidates
    from agent_runtime_ref.recall.embedding import Embedder, packaged_embedder
    from agent_runtime_ref.recall.engine import Ranker, RecallEngine
    from agent_runtime_ref.recall.hits import (
        RecallHit,
        RecallResult,
        RecallScope,
        score_recall_candidate,
        stable_rank_recall_candidates,
    )
    from agent_runtime_ref.recall.hybrid import HybridRanker
    from agent_runtime_ref.recall.query import RecallQuery, normalize_recall_query
    from agent_runtime_ref.recall.render import render_recall_context, render_remote_profile

__all__ = [
    "Embedder",
    "HybridRanker",
    "MemoryKind",
    "MemorySource",
    "Ranker",
    "RecallCandidate",
    "RecallEngine",
    "RecallHit",
    "RecallQuery",
    "RecallResult",
    "RecallScope",
    "RecallScoreBreakdown",
    "StoredMemory",
    "build_recall_candidates",
    "normalize_recall_query",
    "packaged_embedder",
    "render_recall_context",
    "render_remote_profile",
    "score_recall_candidate",
    "stable_rank_recall_candidates",
]

_PACKAGE = "agent_runtime_ref.recall"
_HOMES = {
    f"{_PACKAGE}.candidates": ("RecallCandidate", "build_recall_candidates"),
    f"{_PACKAGE}.embedding": ("Embedder", "packaged_embedder"),
    f"{_PACKAGE}.engine": ("Ranker", "RecallEngine"),
    f"{_PACKAGE}.hits": (
        "RecallHit",
        "RecallResult",
        "RecallScope",
        "score_recall_candidate",
        "stable_rank_recall_candidates",
    ),
    f"{_PACKAGE}.hybrid": ("HybridRanker",),
    f"{_PACKAGE}.query": ("RecallQuery", "normalize_recall_query"),
    f"{_PACKAGE}.render": ("render_recall_context", "render_remote_profile"),
    # What a pipeline is made of is had with it.
    "agent_runtime_ref.contracts.stored": ("MemoryKind", "MemorySource", "StoredMemory"),
}


def __getattr__(name: str) -> object:
    """Return a public name, importing its module now."""
    if name == "RecallScoreBreakdown":
        value: object = import_module("agent_runtime_ref.contracts").ScoreBreakdown
    else:
        home = next((module for module, names in _HOMES.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(home), name)
    globals()[name] = value
    return value
