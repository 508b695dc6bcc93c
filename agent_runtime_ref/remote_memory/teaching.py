"""A few memories to learn with: for demonstrations over a store that is removed, never for a user's own."""

from __future__ import annotations

from pathlib import Path

from agent_runtime_ref.clock import Clock, SystemClock, timestamp
from agent_runtime_ref.contracts.stored import MemoryKind, MemorySource, StoredMemory, user_scope_of
from agent_runtime_ref.remote_memory.store import RemoteMemoryStore

__all__ = ["taught", "teaching_set"]

_DAY_US = 24 * 3600 * 1_000_000
# Id, days ago, title, summary, content.
_CONVERSATIONS = (
    (
        "conversation-001",
        40,
        "persistence decision",
        "Selected SQLite WAL.",
        "Selected SQLite WAL for local persistence; a server would be too much for one machine.",
    ),
    (
        "conversation-002",
        21,
        "release day",
        "Releases go out on Tuesdays.",
        "Releases go out on Tuesdays, since nobody wants to repair one on a Friday evening.",
    ),
    (
        "conversation-003",
        1,
        "layered memory design",
        "Separated workspace, user and remote memory boundaries.",
        "Layered memory: workspace, user and remote memory have boundaries and owners of their own.",
    ),
    (
        "conversation-004",
        9,
        "查询延迟",
        "缓存之后查询快了三倍。",
        "给查询加了缓存,延迟从九十毫秒降到三十毫秒。",
    ),
    (
        "conversation-005",
        15,
        "error budget",
        "The error budget is one hour a quarter.",
        "The error budget is one hour a quarter; when it is used up, features wait.",
    ),
    (
        "conversation-006",
        3,
        "tokens in prompts",
        "Hits are cut to the budget of the prompt.",
        "Hits are cut to the budget of the prompt, the lowest rank first.",
    ),
)
_PROFILES = (
    ("profile-001", 30, "Prefers short answers."),
    ("profile-002", 2, "Prefers short answers with the reason first. Works on storage."),
)


def taught(path: Path, *, user_id: str, clock: Clock | None = None) -> RemoteMemoryStore:
    """Return a new store in a file, filled with the teaching set; for a file that goes away again."""
    clock = clock or SystemClock()
    store = RemoteMemoryStore(path, user_id=user_id, clock=clock)
    for record in teaching_set(user_id, now_us=clock.now_us()):
        store.append(
            kind=record.kind,
            content=record.content,
            summary=record.summary,
            source=record.source,
            memory_id=record.memory_id,
            stored_at=record.stored_at,
        )
    return store


def teaching_set(user_id: str, *, now_us: int) -> list[StoredMemory]:
    """Return six conversations and two profile snapshots of a user, as old as they say at `now_us`."""
    scope = user_scope_of(user_id)
    return [*_conversations(scope, now_us), *_profiles(scope, now_us)]


def _conversations(scope: str, now_us: int) -> list[StoredMemory]:
    return [
        StoredMemory(
            memory_id,
            scope,
            MemoryKind.CONVERSATION,
            content,
            summary,
            MemorySource(f"transcript-{memory_id}", "conversation_transcript", title, _ago(days, now_us)),
            timestamp(now_us),
        )
        for memory_id, days, title, summary, content in _CONVERSATIONS
    ]


def _profiles(scope: str, now_us: int) -> list[StoredMemory]:
    return [
        StoredMemory(
            memory_id,
            scope,
            MemoryKind.PROFILE,
            content,
            "profile snapshot",
            MemorySource(
                memory_id.replace("profile", "profile-snapshot"),
                "profile_snapshot",
                "profile",
                _ago(days, now_us),
            ),
            timestamp(now_us),
        )
        for memory_id, days, content in _PROFILES
    ]


def _ago(days: int, now_us: int) -> str:
    return timestamp(now_us - days * _DAY_US)
