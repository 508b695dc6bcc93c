"""Records of a Redis store whose life ends, and the names of the keys that hold them."""

from __future__ import annotations

from agent_runtime_ref.clock import instant
from agent_runtime_ref.stores.base import Change, Slot, WriteBatch
from agent_runtime_ref.stores.redis import RedisStore
from agent_runtime_ref.stores.redis.names import Names
from agent_runtime_ref.testing import NOW_US, make_record
from agent_runtime_ref.testing.conformance_base import TENANT
from tests.redis_server import RedisProcess

NAMES = Names.of(TENANT)
SLOT = Slot(None, "long_term", "validated_fact", "queue")
LIVES = 10_000_000  # microseconds that are left of a record's life when it is put


def put_ending(
    store: RedisStore, memory_id: str = "mem-1", *, after_us: int = LIVES, **changes: object
) -> None:
    """Put a record whose life ends so long after the decision."""
    record = make_record(memory_id, expires_at=instant(NOW_US + after_us), **changes)
    store.commit(WriteBatch([Change(record, dedup=memory_id.encode(), exclusive=False)], now_us=NOW_US))


def keys(server: RedisProcess) -> set[str]:
    """The names of all keys of the tenant that hold records or indexes of them."""
    found = {one.decode() for one in server.run("KEYS", f"{NAMES.base}*")}
    return {one for one in found if one.removeprefix(NAMES.base)[0] in "radskfc"}
