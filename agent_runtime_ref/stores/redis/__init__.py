"""The Redis store."""

from agent_runtime_ref.stores.redis.store import RedisStore

__all__ = ["RedisStore"]
