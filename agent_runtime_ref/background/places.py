"""Where turns wait: beside a store that is a file, else in this user's own folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

from agent_runtime_ref.background.pending import Pending, PendingFile, Unkept
from agent_runtime_ref.resources import data_home
from agent_runtime_ref.runtime import GovernedMemory

__all__ = ["pending_folder", "pending_of"]

_FILES = frozenset({"sqlite", "jsonl"})


def pending_folder(memory: GovernedMemory) -> Path | None:
    """Return the folder of turns that wait; None where nothing outlives the process."""
    if not memory.durable:
        return None
    scheme, _, path = memory.store_url.partition(":")
    if scheme in _FILES:
        return Path(path + ".pending")
    # The address may hold a password, and is no name of a folder.
    name = hashlib.sha256(memory.store_url.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return data_home() / "pending" / name


def pending_of(memory: GovernedMemory) -> Pending:
    """Return where this process writes down which turns wait; nothing is made before one does."""
    folder = pending_folder(memory)
    return Unkept() if folder is None else PendingFile.in_folder(folder, memory.ids)
