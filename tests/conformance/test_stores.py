"""All stores of this package pass the suite that every store must pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_runtime_ref.stores.base import Store
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.testing import StoreConformance
from tests.postgres import OPERATOR, PostgresProcess
from tests.redis_server import RedisProcess


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


class TestJsonlStore(StoreConformance):
    """The durable store in files of JSON lines."""

    def open_store(self, folder: Path) -> Store:
        """A store in a new file."""
        return open_store(f"jsonl:{folder / 'memory.jsonl'}")


class TestDocumentStore(StoreConformance):
    """The durable store in one JSON file."""

    def open_store(self, folder: Path) -> Store:
        """A store in a new file."""
        return open_store(f"file:{folder / 'memory.json'}")


class TestPostgresStore(StoreConformance):
    """The store of many machines, on a real server."""

    @pytest.fixture(autouse=True)
    def _server(self, postgres: PostgresProcess, database: str) -> None:
        self._postgres, self._database = postgres, database
        self._url = postgres.url(OPERATOR, database)

    def __getstate__(self) -> dict[str, str]:
        """What goes into another process: where the store is; the server stays with this one."""
        return {"_url": self._url}

    def open_store(self, folder: Path) -> Store:
        """A store for a login that may look across tenants, emptied where the folder is new."""
        known = folder / "known"
        if not known.exists():
            self._postgres.empty(self._database)
            known.touch()
        return open_store(self._url)


class TestRedisStore(StoreConformance):
    """The store of sessions, on a real server that forces each write to its disk."""

    @pytest.fixture(autouse=True)
    def _server(self, durable_redis: RedisProcess) -> None:
        self._redis = durable_redis
        self._url = durable_redis.url()

    def __getstate__(self) -> dict[str, str]:
        """What goes into another process: where the store is; the server stays with this one."""
        return {"_url": self._url}

    def open_store(self, folder: Path) -> Store:
        """The store of the server, emptied where the folder is new."""
        known = folder / "known"
        if not known.exists():
            self._redis.empty()
            known.touch()
        return open_store(self._url)
