"""The PostgreSQL store."""

from agent_runtime_ref.stores.postgres.migrate import Migrated, migrate
from agent_runtime_ref.stores.postgres.store import PostgresStore

__all__ = ["Migrated", "PostgresStore", "migrate"]
