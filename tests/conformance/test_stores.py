"""Both stores of this package pass the suite that every store must pass."""

from __future__ import annotations

from pathlib import Path

from agent_runtime_ref.stores.base import Store
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.testing import StoreConformance


class TestInMemoryStore(StoreConformance):
    """The store of one process."""

    def open_store(self, folder: Path) -> Store:
        """An empty store."""
        return open_store("memory:")


class TestInMemoryStoreWithLogFile(StoreConformance):
    """The store of one process, its log in a file."""

    def open_store(self, folder: Path) -> Store:
        """An empty store with an empty log."""
        return open_store("memory:", log=folder / "decisions.jsonl")


class TestSqliteStore(StoreConformance):
    """The durable embedded store."""

    def open_store(self, folder: Path) -> Store:
        """A store in a new file."""
        return open_store(f"sqlite:{folder / 'memory.db'}")
