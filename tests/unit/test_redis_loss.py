"""Lost connections, full memory and killed servers: nothing acknowledged is lost, nothing done twice."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import redis.exceptions

from agent_runtime_ref.errors import DecisionLogError, DuplicateRecordError, RevisionConflictError, StoreError
from agent_runtime_ref.stores.base import Change, WriteBatch
from agent_runtime_ref.stores.redis import RedisStore, connection
from agent_runtime_ref.stores.redis.connection import Server
from agent_runtime_ref.stores.redis.scripts import CHANGE, Script
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.testing import NOW_US, make_record
from agent_runtime_ref.testing.conformance_base import TENANT, ask, ids, put
from tests.forking import status_of_child
from tests.redis_server import ALWAYS, SAVED_NOWHERE, RedisProcess, require_redis, started

SPAWN = multiprocessing.get_context("spawn")
EACH = 10


@pytest.fixture
def store(redis_server: RedisProcess) -> Iterator[RedisStore]:
    """An empty store."""
    with closing(RedisStore(redis_server.url())) as opened:
        yield opened


class Killer:
    """Ends the connections of a store before or after one of its scripts, for some times."""

    def __init__(self, server: RedisProcess, monkeypatch: pytest.MonkeyPatch) -> None:
        self._server, self._patch = server, monkeypatch
        self.fired = 0

    def at(self, script: Script, *, after: bool = False, times: int = 1) -> None:
        """Kill at the next call of a script, and at those that follow."""
        original = Server.send

        def dying(server: Server, asked: Script, arguments: Sequence[str | bytes]) -> Any:
            due = asked is script and self.fired < times
            if due and not after:
                self._kill()
                raise redis.exceptions.ConnectionError("the script did not arrive")
            result = original(server, asked, arguments)
            if due and after:
                self._kill()
                raise redis.exceptions.ConnectionError("the answer did not arrive")
            return result

        self._patch.setattr(Server, "send", dying)

    def _kill(self) -> None:
        self.fired += 1
        self._server.run("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


@pytest.fixture
def killer(redis_server: RedisProcess, monkeypatch: pytest.MonkeyPatch) -> Killer:
    """What ends connections in the middle of a write."""
    return Killer(redis_server, monkeypatch)


def assert_kept_once(store: RedisStore) -> None:
    """One record, one line, one chain."""
    lines = list(store.log(False))
    assert ids(ask(store)) == ["mem-1"]
    assert [chain.body(line) for line in lines] == ['{"kept":1}']
    assert chain.verify(lines) is None
    assert store.revision() == 1


@pytest.mark.parametrize("after", [False, True])
def test_a_connection_lost_in_the_middle_of_a_write(store: RedisStore, killer: Killer, after: bool) -> None:
    """Whether the script had run or not, it has run once, and the writer is told so."""
    killer.at(CHANGE, after=after)
    batch = WriteBatch([Change(make_record("mem-1"), dedup=b"d")], ['{"kept":1}'])
    outcome = store.commit(batch)

    assert killer.fired == 1
    assert [one.memory_id for one in outcome] == ["mem-1"]
    assert_kept_once(store)


def test_a_write_that_took_effect_is_known_behind_others(
    store: RedisStore, redis_server: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where others wrote before it was sent again, it is still known, and not done twice."""
    original, lost = Server.send, [1]
    with closing(RedisStore(redis_server.url())) as other:

        def losing(server: Server, asked: Script, arguments: Sequence[str | bytes]) -> Any:
            result = original(server, asked, arguments)
            if asked is CHANGE and lost and server is store._server:
                lost.clear()
                put(other, make_record("mem-2"), lines=['{"other":1}'])
                raise redis.exceptions.TimeoutError("no answer in time")
            return result

        monkeypatch.setattr(Server, "send", losing)
        put(store, make_record("mem-1"), lines=['{"kept":1}'])

    assert ids(ask(store)) == ["mem-1", "mem-2"]
    assert [chain.body(one) for one in store.log(False)] == ['{"kept":1}', '{"other":1}']


def test_forgetting_survives_a_lost_answer(store: RedisStore, killer: Killer) -> None:
    """The counts are those of the attempt that took effect."""
    put(store, make_record("mem-1", subject="user-42"))
    killer.at(CHANGE, after=True)
    counts = store.forget(TENANT, "user-42", now_us=NOW_US, dry_run=False, lines_for=lambda _: ["{}"])

    assert (counts.records, store.forgets(), len(list(store.log(False)))) == (1, 1, 1)


@pytest.mark.parametrize("after", [False, True])
def test_a_read_line_is_logged_once(store: RedisStore, killer: Killer, after: bool) -> None:
    """A line of a read whose connection is lost is in the log once, before the answer leaves."""
    store.append_lines(chain.Lines.of(TENANT, ['{"read":1}']), read=True)
    killer.at(CHANGE, after=after)
    store.append_lines(chain.Lines.of(TENANT, ['{"read":2}']), read=True)

    assert killer.fired == 1
    assert [chain.body(line) for line in store.log(True)] == ['{"read":1}', '{"read":2}']


def test_attempts_are_bounded(store: RedisStore, killer: Killer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever loses every connection is told; nothing was written."""
    monkeypatch.setattr(connection, "PAUSES_SECONDS", (0.0, 0.0, 0.0))
    killer.at(CHANGE, times=100)
    with pytest.raises(StoreError, match="no connection"):
        put(store, make_record("mem-1"))
    fired, killer.fired = killer.fired, 100

    assert fired == 4
    assert store.fetch(TENANT, ["mem-1"]) == []


def test_a_line_that_cannot_be_written_is_a_log_that_cannot(
    store: RedisStore, killer: Killer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read whose line is not in the log must not be answered."""
    monkeypatch.setattr(connection, "PAUSES_SECONDS", ())
    killer.at(CHANGE)
    with pytest.raises(DecisionLogError):
        store.append_lines(chain.Lines.of(TENANT, ["{}"]), read=True)


def test_full_memory_refuses_a_write_whole(store: RedisStore, redis_server: RedisProcess) -> None:
    """The reason is told, nothing was written, and reads go on."""
    put(store, make_record("mem-1"), lines=['{"kept":1}'])
    redis_server.run("CONFIG", "SET", "maxmemory", "1")
    try:
        with pytest.raises(StoreError, match="out of memory"):
            put(store, make_record("mem-2"), lines=['{"kept":2}'])
        assert_kept_once(store)
    finally:
        redis_server.run("CONFIG", "SET", "maxmemory", "0")


def test_racing_writers_of_one_memory_leave_one(store: RedisStore, redis_server: RedisProcess) -> None:
    """Of many writers of one dedup key and slot, through two stores, one succeeds; the script decides."""
    barrier = threading.Barrier(4)

    def write(number: int) -> bool:
        own = store if number % 2 else other
        barrier.wait()
        try:
            own.commit(WriteBatch([Change(make_record(f"mem-{number}", key="queue"), dedup=b"same")]))
        except (DuplicateRecordError, RevisionConflictError):
            return False
        return True

    with closing(RedisStore(redis_server.url())) as other, ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(write, range(4))) == 1


def test_readers_of_two_stores_make_one_chain(store: RedisStore, redis_server: RedisProcess) -> None:
    """Lines of reads from several threads and stores stand behind each other, each once."""
    with closing(RedisStore(redis_server.url())) as other, ThreadPoolExecutor(4) as threads:

        def read(number: int) -> None:
            lines = chain.Lines.of(TENANT, [f'{{"n":{number}}}'])
            (store if number % 2 else other).append_lines(lines, read=True)

        list(threads.map(read, range(4 * EACH)))
    lines = list(store.log(True))

    assert chain.verify(lines) is None
    assert sorted(json.loads(chain.body(one))["n"] for one in lines) == list(range(4 * EACH))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python warns of forking beside threads
def test_a_store_is_reopened_after_a_fork(store: RedisStore) -> None:
    """A child of fork writes through connections of its own; the parent's stay whole."""
    put(store, make_record("parent-1"))
    assert status_of_child(lambda: put(store, make_record("child-1"))) == 0
    put(store, make_record("parent-2"))

    assert ask(store).considered == 3


def test_a_server_that_comes_back_empty_is_noticed() -> None:
    """Killed without a file of its changes it has lost everything, and no call goes on in an empty store."""
    require_redis()
    with started(*SAVED_NOWHERE) as server:
        with closing(RedisStore(server.url())) as store:
            assert store.durable is False
            put(store, make_record("mem-1"), lines=['{"kept":1}'])
            key = store.store_key()
            server.stop()
            server.start()
            for action in (
                lambda: ask(store),
                lambda: put(store, make_record("mem-2")),
                lambda: store.subject_key(TENANT, "user-42", True),
                store.revision,
            ):
                with pytest.raises(StoreError, match="open the store again"):
                    action()
            with pytest.raises(DecisionLogError, match="open the store again"):
                store.append_lines(["{}"], read=True)
            assert server.run("DBSIZE") == 0
        with closing(RedisStore(server.url())) as again:
            assert again.store_key() != key
            assert ask(again).considered == 0


def write_until_told(url: str, acknowledged: Connection, stop: str) -> None:
    """Say which record is committed, over and over, whatever the server does meanwhile."""
    number = 0
    with closing(RedisStore(url)) as store:
        while not os.path.exists(stop):
            try:
                record = make_record(f"mem-{number}")
                batch = WriteBatch([Change(record, dedup=str(number).encode())], [f'{{"number":{number}}}'])
                store.commit(batch)
            except StoreError:
                pass  # not acknowledged: it may or may not be there
            else:
                acknowledged.send(number)
            number += 1


def test_a_killed_server_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    """With each write on disk first, every acknowledged record is there once after a kill, with its line."""
    require_redis()
    stop = tmp_path / "stop"
    with started(*ALWAYS) as server:
        receiver, sender = SPAWN.Pipe(duplex=False)
        worker = SPAWN.Process(target=write_until_told, args=(server.url(), sender, str(stop)))
        worker.start()
        acknowledged = [receiver.recv() for _ in range(20)]
        server.stop(how=signal.SIGKILL)
        server.start()
        acknowledged += [receiver.recv() for _ in range(20)]
        stop.touch()
        worker.join()
        while receiver.poll():
            acknowledged.append(receiver.recv())
        receiver.close()
        sender.close()

        with closing(RedisStore(server.url())) as store:
            assert store.durable is True
            lines = list(store.log(False))
            wanted = [f"mem-{number}" for number in acknowledged]
            assert len(store.fetch(TENANT, wanted)) == len(wanted)
            assert chain.verify(lines) is None
            bodies = [chain.body(line) for line in lines]
            assert len(bodies) == len(set(bodies)) == ask(store, take=0).considered
            assert {f'{{"number":{number}}}' for number in acknowledged} <= set(bodies)
