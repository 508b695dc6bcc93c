"""How a Redis store's records end: the server removes them, with every index entry, and none comes back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from agent_runtime_ref.stores.base import Change, Head, WriteBatch
from agent_runtime_ref.stores.redis import RedisStore, names
from agent_runtime_ref.testing import NOW_US, make_record
from agent_runtime_ref.testing.conformance_base import TENANT, ask, ids, put
from agent_runtime_ref.testing.conformance_forgetting import forget
from tests.redis_records import LIVES, NAMES, SLOT, keys, put_ending
from tests.redis_server import RedisProcess


@pytest.fixture
def store(redis_server: RedisProcess) -> Iterator[RedisStore]:
    """An empty store."""
    with closing(RedisStore(redis_server.url())) as opened:
        yield opened


def test_the_server_removes_what_has_expired(redis_server: RedisProcess, store: RedisStore) -> None:
    """Record, dedup key and every index entry are gone by themselves; nobody has to sweep."""
    put(store, make_record("parent", subject="user-7"))
    before = keys(redis_server)
    put_ending(store, after_us=20_000, subject="user-42", key="queue", derived_from=("parent",))
    deadline = time.monotonic() + 10
    while redis_server.run("EXISTS", NAMES.record("mem-1")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.01)

    assert store.fetch(TENANT, ["mem-1"]) == []
    assert ids(ask(store)) == ["parent"]
    assert store.find_duplicate(TENANT, [b"mem-1"]) == {}
    assert {one for one in keys(redis_server) if redis_server.run("EXISTS", one)} == before


def test_a_life_is_counted_from_the_decision(redis_server: RedisProcess, store: RedisStore) -> None:
    """Whatever the clock of the server shows: it keeps a record, and its key, as long as was left of it."""
    put_ending(store, subject="user-42", key="queue")
    places = [
        NAMES.record("mem-1"),
        NAMES.dedup(b"mem-1"),
        *(NAMES.index(one) for one in ("a", names.of_subject("user-42"), names.of_key("user-42", "queue"))),
    ]
    left = [redis_server.run("PTTL", one) for one in places]

    assert all(0 < one <= LIVES // 1000 for one in left), left
    assert max(left) - min(left) < 1000


def test_an_index_lives_as_long_as_its_last_record(redis_server: RedisProcess, store: RedisStore) -> None:
    """One that never expires keeps the index; the ids of the others leave it when they go."""
    index = NAMES.index("a")
    put_ending(store, "long")
    put_ending(store, "short", after_us=LIVES // 10)
    assert LIVES // 2000 < redis_server.run("PTTL", index) <= LIVES // 1000
    put(store, make_record("ever"))
    assert redis_server.run("PTTL", index) == -1


def test_a_replaced_record_keeps_its_end(redis_server: RedisProcess, store: RedisStore) -> None:
    """What supersedes it does not lengthen its life; and one that has just gone does not come back."""
    put_ending(store, key="queue")
    head = store.heads(TENANT, [SLOT], NOW_US)[0]
    assert head == Head("mem-1", 2, 1, "active")
    change = Change(make_record("mem-2", key="queue", revision=2), head)
    store.commit(WriteBatch([change], now_us=NOW_US))
    assert store.fetch(TENANT, ["mem-1"])[0].status == "superseded"
    assert 0 < redis_server.run("PTTL", NAMES.record("mem-1")) <= LIVES // 1000


def test_what_goes_while_it_is_replaced_does_not_come_back(
    redis_server: RedisProcess, store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server removes a record between the look and the change: the change leaves it removed."""
    from agent_runtime_ref.stores.redis import store as module

    put_ending(store, key="queue")
    head = store.heads(TENANT, [SLOT], NOW_US)[0]
    original = module.send

    def expired(server: object, steps: object) -> object:
        redis_server.run("DEL", NAMES.record("mem-1"))
        return original(server, steps)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "send", expired)
    store.commit(WriteBatch([Change(make_record("mem-2", key="queue", revision=2), head)], now_us=NOW_US))

    assert [one.memory_id for one in store.fetch(TENANT, ["mem-1", "mem-2"])] == ["mem-2"]


def test_what_outlives_its_origin_is_forgotten_with_its_subject(
    redis_server: RedisProcess, store: RedisStore
) -> None:
    """A record of nobody, derived over two steps from one about the subject that has expired since."""
    put_ending(store, "own", subject="user-42")
    put(store, make_record("child", derived_from=("own",)))
    put(store, make_record("grandchild", subject="user-7", derived_from=("child",)))
    put(store, make_record("other", subject="user-7"))
    for memory_id in ("own", "child"):
        redis_server.run("DEL", NAMES.record(memory_id))
    counts = forget(store, "user-42")

    assert (counts.records, counts.derived) == (0, 1)
    assert ids(ask(store)) == ["other"]
