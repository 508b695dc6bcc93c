"""All stores of this package pass the suite that every store must pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_runtime_ref.stores.base import Store
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.testing import StoreConformance
from tests.postgres import OPERATOR, PostgresProcess


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


class TestPostgresStore(StoreConformance):
    """The store of many machines, on a real server."""

    @pytest.fixture(autouse=True)
    def _server(self, postgres: PostgresProcess, database: str) -> None:
        self._postgres, self._database = postgres, database

    def open_store(self, folder: Path) -> Store:
        """An emptied store, for a login that may look across tenants."""
        self._postgres.empty(self._database)
        return open_store(self._postgres.url(OPERATOR, self._database))
