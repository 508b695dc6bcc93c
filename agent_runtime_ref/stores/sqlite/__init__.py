"""The SQLite store."""

from agent_runtime_ref.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
