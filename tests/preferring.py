"""Findings and preference stores that many tests share."""

from __future__ import annotations

from typing import Any

from agent_runtime_ref import Caller, GovernedMemory
from agent_runtime_ref.contracts.finding import Finding
from agent_runtime_ref.preferences import PreferenceStore
from agent_runtime_ref.testing import CountedIds, FrozenClock

USER = Caller("tenant-acme", "user-42", session_id="session-001", trace_id="trace-001")


def finding(content: str = "I always hate plastic", slug: str = "plastic", **changes: Any) -> Finding:
    """Return a standing, hard dislike of a material, said by the user himself."""
    base: dict[str, Any] = {
        "scope": "standing",
        "polarity": "dislike",
        "strength": "hard",
        "category": "material",
        "domain": "general",
        "slug": slug,
        "content": content,
    }
    return Finding(**(base | changes))


def inferred(content: str = "Seems to avoid plastic", slug: str = "plastic", **changes: Any) -> Finding:
    """Return the same as a model concluded it."""
    return finding(content, slug, **({"stated": False, "strength": "soft"} | changes))


def opened(clock: FrozenClock | None = None, **options: Any) -> tuple[PreferenceStore, GovernedMemory]:
    """Return preferences over a memory of this process, and that memory."""
    memory = GovernedMemory.open("memory:", clock=clock or FrozenClock(), ids=CountedIds(), **options)
    return PreferenceStore(memory=memory, ids=CountedIds()), memory
