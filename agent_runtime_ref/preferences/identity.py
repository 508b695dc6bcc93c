"""Whose preferences they are: a caller's own subject, the local user where nobody says, and never nobody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.enforcement.attributes import ANONYMOUS
from agent_runtime_ref.resources import user_of

__all__ = ["LOCAL_TENANT", "current_session", "in_session", "is_anonymous", "local_caller"]

LOCAL_TENANT = "local"
_session: ContextVar[str | None] = ContextVar("agent_runtime_ref_preference_session", default=None)


def local_caller() -> Caller:
    """Return the user whom the environment names, acting for himself."""
    user_id = user_of()
    return Caller(LOCAL_TENANT, user_id, session_id=current_session(), subject=user_id)


def is_anonymous(caller: Caller) -> bool:
    """Tell whether the caller is, or acts for, nobody in particular."""
    names = (caller.principal_id, caller.own_subject)
    return any(name.strip().casefold() in ANONYMOUS for name in names)


def current_session() -> str | None:
    """Return the session of this context; None outside of one."""
    return _session.get()


@contextmanager
def in_session(session_id: str) -> Iterator[None]:
    """Let what is kept in this block say that it comes from `session_id`; tasks begun in it too."""
    token = _session.set(session_id)
    try:
        yield
    finally:
        _session.reset(token)
