"""Where the state of a thread lies: one folder per user and thread, under names that nobody else's can be.

A thread's id comes from outside, a user's too. Washed names would meet (`a/b` and `a_b`, `A` and `a` on a
file system without case, two Unicode forms of one letter), so a folder is called by a digest of the very
bytes of the id, and an id is never part of a path.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.contracts.caller import require_text
from agent_runtime_ref.errors import DocumentTypeError, DocumentValueError
from agent_runtime_ref.resources import data_home

__all__ = ["VARIABLE", "Place", "sessions_folder", "user_folder"]

VARIABLE = "AGENT_RUNTIME_SESSIONS"
_DIGEST_CHARACTERS = 32


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of one thread of one user; it is named, not made."""

    root: Path
    owner: str  # digest of tenant and user
    thread: str  # digest of the thread's id

    @classmethod
    def of(cls, thread_id: str, caller: Caller, root: Path) -> Place:
        """Return where a thread of the caller's subject lies.

        Raises:
            DocumentTypeError, DocumentValueError: the id is no text, or blank.
        """
        if not isinstance(thread_id, str):
            raise DocumentTypeError("thread: must be a string")
        require_text("thread", thread_id)
        if not thread_id.strip():
            raise DocumentValueError("thread: must not be empty")
        return cls(root, _owner(caller), _digest("thread", thread_id))

    @property
    def folder(self) -> Path:
        """The folder itself."""
        return self.root / self.owner / self.thread

    @property
    def mark(self) -> str:
        """What its files say of whose they are, so that a copied one is known."""
        return f"{self.owner}/{self.thread}"


def sessions_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of all sessions: AGENT_RUNTIME_SESSIONS, else below what belongs to the user."""
    named = (os.environ if environ is None else environ).get(VARIABLE, "")
    return Path(named) if named.strip() else data_home(environ) / "sessions"


def user_folder(caller: Caller, root: Path) -> Path:
    """Return the folder of all threads of the caller's subject."""
    return root / _owner(caller)


def _owner(caller: Caller) -> str:
    return _digest("user", caller.tenant_id, caller.own_subject)


def _digest(*parts: str) -> str:
    """Return a name for `parts`; each is preceded by its length, so no two lists have one text."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:_DIGEST_CHARACTERS]
