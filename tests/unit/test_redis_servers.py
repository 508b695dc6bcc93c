"""Which servers a Redis store accepts, and with which rights: durable, whole, no replica, no cluster."""

from __future__ import annotations

import re
import socketserver
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from agent_runtime_ref.errors import (
    StoreAddressError,
    StoreCapabilityError,
    StoreDamagedError,
    StoreError,
    StoreVersionError,
)
from agent_runtime_ref.stores.redis import RedisStore
from agent_runtime_ref.stores.redis.names import STORE
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.testing import make_record
from agent_runtime_ref.testing.conformance_base import TENANT, ask, ids, put
from agent_runtime_ref.testing.conformance_forgetting import forget
from tests.opa import free_port
from tests.redis_records import put_ending
from tests.redis_server import SAVED_NOWHERE, RedisProcess, require_redis, started

HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "keep-a-session-in-redis.md"


@pytest.fixture
def store(redis_server: RedisProcess) -> Iterator[RedisStore]:
    """An empty store."""
    with closing(RedisStore(redis_server.url())) as opened:
        yield opened


def test_who_only_looks_makes_nothing(redis_server: RedisProcess) -> None:
    """Where no store is there, that is said."""
    with pytest.raises(StoreAddressError, match="no store"):
        open_store(redis_server.url(), must_exist=True)
    assert redis_server.run("DBSIZE") == 0


def test_a_store_is_made_once(redis_server: RedisProcess) -> None:
    """Who opens it again has the same key; another database of the server has another store."""
    found = []
    for database in (0, 0, 1):
        with closing(RedisStore(redis_server.url(database))) as store:
            found.append(store.store_key())
    assert found[0] == found[1] != found[2]


def test_it_is_durable_where_every_write_is_on_disk_first(redis_server: RedisProcess) -> None:
    """Neither without a file of changes, nor where that waits for a second, nor where that is not told."""

    def durable(**settings: str) -> bool:
        for name, value in settings.items():
            redis_server.run("CONFIG", "SET", name, value)
        with closing(RedisStore(redis_server.url())) as store:
            return store.durable

    try:
        assert not durable()
        assert not durable(appendonly="yes", appendfsync="everysec")
        assert durable(appendfsync="always")
        assert not durable(**{"no-appendfsync-on-rewrite": "yes"})
        assert durable(**{"no-appendfsync-on-rewrite": "no", "aof-load-truncated": "yes"})
        redis_server.run("ACL", "SETUSER", "service", "on", ">pw", "~*", "+@all", "-config")
        with closing(RedisStore(f"redis://service:pw@127.0.0.1:{redis_server.port}/0")) as store:
            assert store.durable is False
    finally:
        redis_server.run("ACL", "DELUSER", "service")
        redis_server.run("CONFIG", "SET", "appendonly", "no", "no-appendfsync-on-rewrite", "no")


def test_what_is_not_durable_says_which_setting_keeps_it_from_that(redis_server: RedisProcess) -> None:
    """Whoever is refused reads what to set."""
    with closing(RedisStore(redis_server.url())) as store:
        assert store.volatile_because is not None
        assert "`appendonly no`; set it to `yes`" in store.volatile_because


def test_a_server_that_throws_keys_away_is_refused(redis_server: RedisProcess) -> None:
    """What it evicts could be a tombstone or a line of the log."""
    redis_server.run("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(StoreCapabilityError, match=r"allkeys-lru.*noeviction"):
            open_store(redis_server.url())
    finally:
        redis_server.run("CONFIG", "SET", "maxmemory-policy", "noeviction")
    assert redis_server.run("DBSIZE") == 0


def test_a_replica_is_refused(redis_server: RedisProcess) -> None:
    """It takes no writes, and may be behind."""
    redis_server.run("REPLICAOF", "127.0.0.1", "1")
    try:
        with pytest.raises(StoreCapabilityError, match="replica"):
            open_store(redis_server.url())
    finally:
        redis_server.run("REPLICAOF", "NO", "ONE")


def test_a_server_that_becomes_a_replica_takes_no_write(
    redis_server: RedisProcess, store: RedisStore
) -> None:
    """Nothing is written, and nothing is tried again."""
    redis_server.run("REPLICAOF", "127.0.0.1", "1")
    try:
        with pytest.raises(StoreCapabilityError, match="replica"):
            put(store, make_record())
    finally:
        redis_server.run("REPLICAOF", "NO", "ONE")
    assert store.fetch(TENANT, ["mem-001"]) == []


def test_a_cluster_is_refused() -> None:
    """A script there may not change what two tenants share."""
    require_redis()
    # Its members talk to each other at a port that lies so far above; not every free one has such another.
    port = next(port for port in iter(free_port, 0) if port + 10_000 < 65_536)
    server_of_a_cluster = started(*SAVED_NOWHERE, "--cluster-enabled", "yes", port=port)
    with server_of_a_cluster as server, pytest.raises(StoreCapabilityError, match="cluster"):
        open_store(server.url())


class _Elsewhere(socketserver.StreamRequestHandler):
    """Answers to everything that another server has it."""

    def handle(self) -> None:
        while line := self.rfile.readline():
            if line.startswith(b"*"):
                for _ in range(2 * int(line[1:])):
                    self.rfile.readline()
                self.server.asked += 1  # type: ignore[attr-defined]
                self.wfile.write(b"-MOVED 1 127.0.0.1:%d\r\n" % self.server.other)  # type: ignore[attr-defined]


@contextmanager
def _answering(other: int) -> Iterator[socketserver.ThreadingTCPServer]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Elsewhere) as server:
        server.daemon_threads = True
        server.other, server.asked = other, 0  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_no_redirect_is_followed() -> None:
    """A server that names another one is refused, and the other one is not asked."""
    with _answering(1) as other, _answering(other.server_address[1]) as server:
        with pytest.raises(StoreCapabilityError, match="not followed"):
            open_store(f"redis://127.0.0.1:{server.server_address[1]}/0")
        assert server.asked > 0  # type: ignore[attr-defined]
        assert other.asked == 0  # type: ignore[attr-defined]


def test_the_rights_of_the_how_to_are_enough_and_none_is_too_many(redis_server: RedisProcess) -> None:
    """Without any one of them the store is refused when it is opened, before half a write can happen."""
    told = re.search(r"ACL SETUSER service (.*)", HOW_TO.read_text(encoding="utf-8"))
    assert told is not None
    url = f"redis://service:pw@127.0.0.1:{redis_server.port}/0"

    def opened(rights: list[str]) -> RedisStore:
        redis_server.run("ACL", "SETUSER", "service", "reset", ">pw", *rights)
        redis_server.run("SCRIPT", "FLUSH")
        return RedisStore(url)

    rights = [one for one in told[1].split() if not one.startswith(">")]
    try:
        with closing(opened(rights)) as store:
            put_ending(store, subject="user-42", key="queue")
            store.subject_key(TENANT, "user-42", True)
            store.append_lines(chain.Lines.of(TENANT, ["{}"]), read=True)
            assert ids(ask(store)) == ids(ask(store, tenant_ids=None)) == ["mem-1"]
            assert forget(store).records == 1
            assert len(list(store.log(False))) == 1
        for missing in rights:
            # Whether each write is on disk first may stay unknown: then the store is not durable.
            if missing.startswith("+") and missing != "+config|get":
                with pytest.raises(StoreError):
                    opened([one for one in rights if one != missing])
    finally:
        redis_server.run("ACL", "DELUSER", "service")


def test_a_newer_store_is_refused(redis_server: RedisProcess, store: RedisStore) -> None:
    """And left as it is."""
    redis_server.run("HSET", STORE, "format", "9")
    with pytest.raises(StoreVersionError, match="format is 9"):
        open_store(redis_server.url())


@pytest.mark.parametrize(
    "words", [("SET", STORE, "x"), ("HSET", STORE, "format", "1", "id", "a", "key", "zz")]
)
def test_what_is_no_store_is_told(redis_server: RedisProcess, words: tuple[str, ...]) -> None:
    """A value of somebody else in the place of the store is left as it is."""
    redis_server.run(*words)
    with pytest.raises(StoreDamagedError):
        open_store(redis_server.url())
    assert redis_server.run("DBSIZE") == 1
