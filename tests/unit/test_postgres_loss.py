"""Lost connections, killed backends and stopped servers: nothing acknowledged is lost, nothing done twice."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from multiprocessing.connection import Connection

import psycopg
import pytest

from agent_runtime_ref.errors import DecisionLogError, DuplicateRecordError, RevisionConflictError, StoreError
from agent_runtime_ref.stores.base import Change, WriteBatch
from agent_runtime_ref.stores.postgres import PostgresStore, connection
from agent_runtime_ref.stores.postgres.session import Session
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.testing import NOW_US, make_record
from agent_runtime_ref.testing.conformance_base import TENANT, ask, put
from tests.forking import status_of_child
from tests.postgres import OPERATOR, SERVICE, PostgresProcess, require_postgres, started

EACH = 10
SPAWN = multiprocessing.get_context("spawn")
LINES = chain.Lines.of(TENANT, ['{"read":1}'])


@pytest.fixture
def store(postgres: PostgresProcess, database: str) -> Iterator[PostgresStore]:
    """An empty store of an operator."""
    with closing(PostgresStore(postgres.url(OPERATOR, database))) as opened:
        yield opened


def kill_backends(postgres: PostgresProcess, database: str) -> None:
    """End every connection to a database but the one that does it."""
    postgres.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        f" WHERE datname='{database}' AND pid<>pg_backend_pid()",
    )


class Killer:
    """Ends the backend of a session before or after one of its statements, once."""

    def __init__(self, postgres: PostgresProcess, monkeypatch: pytest.MonkeyPatch) -> None:
        self._postgres, self._patch = postgres, monkeypatch
        self.fired = 0

    def at(self, name: str, number: int, *, after: bool = False, times: int = 1) -> None:
        """Kill at the call of that number of the session's method `name`, and at those that follow."""
        original: Callable[..., object] = getattr(Session, name)
        calls = 0

        def dying(session: Session, *arguments: object, **options: object) -> object:
            nonlocal calls
            calls += 1
            due = number <= calls and self.fired < times
            if due and not after:
                self._kill(session)
            result = original(session, *arguments, **options)
            if due and after:
                self._kill(session)
                raise psycopg.OperationalError("the answer to the statement did not arrive")
            return result

        self._patch.setattr(Session, name, dying)

    def _kill(self, session: Session) -> None:
        self.fired += 1
        pid = session.connection.info.backend_pid
        self._postgres.run(f"SELECT pg_terminate_backend({pid}, 5000)")


@pytest.fixture
def killer(postgres: PostgresProcess, monkeypatch: pytest.MonkeyPatch) -> Killer:
    """What ends backends in the middle of a write."""
    return Killer(postgres, monkeypatch)


def assert_kept_once(store: PostgresStore) -> None:
    """One record, one line, one chain, and the words find the record once."""
    lines = [line for line in store.log(False) if "kept" in line]
    assert [one.memory_id for one in store.fetch(TENANT, ["mem-1"])] == ["mem-1"]
    assert ask(store, "support").considered == 1
    assert len(lines) == 1
    assert chain.verify(store.log(False)) is None


@pytest.mark.parametrize(
    ("name", "number"),
    [("rows", 1), ("rows", 2), ("rows", 4), ("run", 1), ("send", 1), ("send", 3), ("number", 1)],
)
def test_a_backend_killed_between_statements(
    store: PostgresStore, killer: Killer, name: str, number: int
) -> None:
    """The write is begun anew on another connection, and is there once."""
    killer.at(name, number)
    put(store, make_record("mem-1"), lines=['{"kept":1}'])

    assert killer.fired == 1
    assert_kept_once(store)


def test_a_connection_lost_before_its_commit_arrives(store: PostgresStore, killer: Killer) -> None:
    """What was not committed is written again."""
    killer.at("commit", 1)
    put(store, make_record("mem-1"), lines=['{"kept":1}'])

    assert killer.fired == 1
    assert_kept_once(store)


def test_a_connection_lost_after_its_commit_took_effect(
    store: PostgresStore, killer: Killer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is asked what became of the transaction, and nothing is written twice."""
    killer.at("commit", 1, after=True)
    outcome = store.commit(WriteBatch([Change(make_record("mem-1"), dedup=b"d")], ['{"kept":1}']))

    assert killer.fired == 1
    assert [one.memory_id for one in outcome] == ["mem-1"]
    assert_kept_once(store)


def test_forgetting_survives_a_lost_commit(store: PostgresStore, killer: Killer) -> None:
    """The counts are those of the attempt that took effect."""
    put(store, make_record("mem-1", subject="user-42"))
    killer.at("commit", 1, after=True)
    counts = store.forget(TENANT, "user-42", now_us=NOW_US, dry_run=False, lines_for=lambda _: ["{}"])

    assert counts.records == 1
    assert store.forgets() == 1
    assert len(list(store.log(False))) == 1


@pytest.mark.parametrize("after", [False, True])
def test_a_read_line_is_logged_once(store: PostgresStore, killer: Killer, after: bool) -> None:
    """A line of a read whose connection is lost is in the log once, before the answer leaves."""
    store.append_lines(LINES, read=True)
    killer.at("alone", 1, after=after)
    store.append_lines(chain.Lines.of(TENANT, ['{"read":2}']), read=True)
    lines = list(store.log(True))

    assert killer.fired == 1
    assert [chain.body(line) for line in lines] == ['{"read":1}', '{"read":2}']
    assert chain.verify(lines) is None


def test_attempts_are_bounded(store: PostgresStore, killer: Killer) -> None:
    """Whoever loses every connection is told, and nothing was written."""
    killer.at("rows", 1, times=100)
    with pytest.raises(StoreError):
        put(store, make_record("mem-1"))
    fired = killer.fired
    killer.fired = 100

    assert fired == len(connection.PAUSES_SECONDS) + 1
    assert store.fetch(TENANT, ["mem-1"]) == []


def test_idle_connections_that_were_lost_are_replaced(
    store: PostgresStore, postgres: PostgresProcess, database: str
) -> None:
    """After every backend was ended, reads and writes go on."""
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda n: put(store, make_record(f"mem-{n}")), range(6)))
        kill_backends(postgres, database)
        found = list(threads.map(lambda _: ask(store, "support").considered, range(6)))
        kill_backends(postgres, database)
        list(threads.map(lambda n: put(store, make_record(f"mem-{n}")), range(6, 12)))

    assert found == [6] * 6
    assert ask(store, "support").considered == 12


def test_a_lost_race_is_run_again(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A serialization failure is no error of the caller's until it has happened too often."""
    original, failures = Session.number, [2]

    def failing(session: Session) -> str | None:
        if failures[0]:
            failures[0] -= 1
            raise psycopg.errors.SerializationFailure("could not serialize access")
        return original(session)

    monkeypatch.setattr(Session, "number", failing)
    put(store, make_record("mem-1"), lines=['{"kept":1}'])
    assert_kept_once(store)
    failures[0] = 100
    with pytest.raises(StoreError, match="could not serialize"):
        put(store, make_record("mem-2"))

    assert failures[0] == 100 - len(connection.PAUSES_SECONDS) - 1


def write_in_threads(url: str, name: str) -> None:
    """Four threads write, and log reads, through one store."""

    def write_some(thread: int) -> None:
        for number in range(EACH):
            put(store, make_record(f"{name}-{thread}-{number}"), lines=["{}"])
            store.append_lines(chain.Lines.of(TENANT, ["{}"]), read=True)

    with closing(PostgresStore(url)) as store, ThreadPoolExecutor(4) as threads:
        list(threads.map(write_some, range(4)))


def test_two_processes_with_four_threads_each(
    store: PostgresStore, postgres: PostgresProcess, database: str
) -> None:
    """Everything is kept and both chains are whole."""
    url = postgres.url(SERVICE, database)
    workers = [SPAWN.Process(target=write_in_threads, args=(url, name)) for name in "ab"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert [worker.exitcode for worker in workers] == [0, 0]
    assert ask(store, "support").considered == 8 * EACH
    for read in (False, True):
        lines = list(store.log(read))
        assert len(lines) == 8 * EACH
        assert chain.verify(lines) is None


def test_racing_writers_of_one_memory_leave_one(store: PostgresStore) -> None:
    """The database decides uniqueness: of many writers of one dedup key and slot, one succeeds."""
    barrier = threading.Barrier(4)

    def write(number: int) -> bool:
        barrier.wait()
        try:
            store.commit(WriteBatch([Change(make_record(f"mem-{number}", key="queue"), dedup=b"same")]))
        except (DuplicateRecordError, RevisionConflictError):
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(write, range(4))) == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python warns of forking beside threads
def test_a_store_is_reopened_after_a_fork(store: PostgresStore) -> None:
    """A child of fork writes through connections of its own; the parent's stay whole."""
    put(store, make_record("parent-1"))
    assert status_of_child(lambda: put(store, make_record("child-1"))) == 0
    put(store, make_record("parent-2"))

    assert ask(store, "support").considered == 3


def write_until_told(url: str, acknowledged: Connection, stop: str) -> None:
    """Say which record is committed, over and over, whatever the server does meanwhile."""
    number = 0
    with closing(PostgresStore(url)) as store:
        while not os.path.exists(stop):
            try:
                record = make_record(f"mem-{number}")
                store.commit(
                    WriteBatch([Change(record, dedup=str(number).encode())], [f'{{"number":{number}}}'])
                )
            except (StoreError, DecisionLogError):
                pass  # not acknowledged: it may or may not be there
            else:
                acknowledged.send(number)
            number += 1


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_a_server_that_stops_loses_nothing_that_it_acknowledged(how: int, tmp_path: object) -> None:
    """After a shutdown, or a crash with recovery, every acknowledged record is there once, with its line."""
    require_postgres()
    stop = f"{tmp_path}/stop"
    with started() as server:
        database = server.migrated_database()
        receiver, sender = SPAWN.Pipe(duplex=False)
        worker = SPAWN.Process(target=write_until_told, args=(server.url(SERVICE, database), sender, stop))
        worker.start()
        acknowledged = [receiver.recv() for _ in range(20)]
        server.stop(how=how)
        server.start()
        acknowledged += [receiver.recv() for _ in range(20)]
        with open(stop, "w"):
            worker.join()
        while receiver.poll():
            acknowledged.append(receiver.recv())
        receiver.close()
        sender.close()

        with closing(PostgresStore(server.url(OPERATOR, database))) as store:
            lines = list(store.log(False))
            wanted = [f"mem-{number}" for number in acknowledged]
            assert len(store.fetch(TENANT, wanted)) == len(wanted)
            assert chain.verify(lines) is None
            bodies = [chain.body(line) for line in lines]
            assert len(bodies) == len(set(bodies)) == ask(store, "support").considered
            assert {f'{{"number":{number}}}' for number in acknowledged} <= set(bodies)
