"""`load` and `save` for whoever has one thread in hand and no `Sessions`: the same gates, named by the call.

Without a caller it is the local user that the environment names, without a memory one in this process under
the policies in force, whose log ends with it.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from agent_runtime_ref.clock import Clock
from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.resources import user_of
from agent_runtime_ref.session_state.sessions import MergeReceipt, Sessions
from agent_runtime_ref.session_state.state import SessionState

if TYPE_CHECKING:
    from agent_runtime_ref.runtime import GovernedMemory

__all__ = ["LOCAL_TENANT", "load", "local_caller", "save"]

LOCAL_TENANT = "local"
_guard = threading.Lock()
_memories: list[GovernedMemory] = []


def load(
    thread_id: str,
    *,
    caller: Caller | None = None,
    memory: GovernedMemory | None = None,
    folder: str | Path | None = None,
    clock: Clock | None = None,
) -> SessionState:
    """Return the constraints in force in a thread; see `Sessions.load` for what it raises."""
    sessions = Sessions(memory or _own_memory(), folder=folder, clock=clock)
    return sessions.load(thread_id, caller=caller or local_caller(thread_id))


def save(
    state: SessionState,
    thread_id: str,
    *,
    caller: Caller | None = None,
    memory: GovernedMemory | None = None,
    folder: str | Path | None = None,
    clock: Clock | None = None,
) -> MergeReceipt:
    """Have a thread hold the constraints of `state`; see `Sessions.merge` for what it raises."""
    sessions = Sessions(memory or _own_memory(), folder=folder, clock=clock)
    return sessions.save(state, thread_id, caller=caller or local_caller(thread_id))


def local_caller(thread_id: str) -> Caller:
    """Return the user of this machine, in the conversation `thread_id`."""
    user_id = user_of()
    return Caller(LOCAL_TENANT, user_id, session_id=thread_id, subject=user_id)


def _own_memory() -> GovernedMemory:
    from agent_runtime_ref.runtime import GovernedMemory

    with _guard:
        if not _memories:
            _memories.append(GovernedMemory.open("memory:"))
        return _memories[0]
