"""Threads, processes, forks and kills: no acknowledged write is lost, and the chain holds."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref.errors import DuplicateRecordError, RevisionConflictError
from agent_runtime_ref.stores.base import Change, SearchRequest, Slot, WriteBatch
from agent_runtime_ref.stores.sqlite import SqliteStore, schema
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.testing import NOW_US, make_record, open_plan
from agent_runtime_ref.testing.conformance_base import TENANT, ask, put

EACH = 15
SPAWN = multiprocessing.get_context("spawn")


def write_in_threads(path: Path, name: str) -> None:
    """Four threads write, and log reads, through one store."""
    with closing(SqliteStore(path)) as store, ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: write_some(store, f"{name}-{number}"), range(4)))


def write_some(store: SqliteStore, name: str) -> None:
    """Write records one by one, and a line of a read after each."""
    for number in range(EACH):
        put(store, make_record(f"{name}-{number}"), lines=["{}"])
        ask(store, "support")
        store.append_lines(["{}"], read=True)


def write_until_killed(path: Path, acknowledged: Connection) -> None:
    """Say which record is committed, over and over."""
    store = SqliteStore(path)
    number = 0
    while True:
        put(store, make_record(f"mem-{number}"), lines=[f'{{"number":{number}}}'])
        acknowledged.send(number)
        number += 1


def test_two_processes_with_four_threads_each(tmp_path: Path) -> None:
    """Everything is kept and both chains are whole."""
    path = tmp_path / "memory.db"
    workers = [SPAWN.Process(target=write_in_threads, args=(path, name)) for name in "ab"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert [worker.exitcode for worker in workers] == [0, 0]
    with closing(SqliteStore(path)) as store:
        assert ask(store, "support").considered == 8 * EACH
        for read in (False, True):
            lines = list(store.log(read))
            assert len(lines) == 8 * EACH
            assert chain.verify(lines) is None


def test_a_killed_writer_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    """After kill -9, every acknowledged record is there, with its line and its terms."""
    path = tmp_path / "memory.db"
    receiver, sender = SPAWN.Pipe(duplex=False)
    worker = SPAWN.Process(target=write_until_killed, args=(path, sender))
    worker.start()
    acknowledged = [receiver.recv() for _ in range(30)]
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    while receiver.poll():
        acknowledged.append(receiver.recv())
    receiver.close()
    sender.close()

    with closing(SqliteStore(path)) as store:
        wanted = [f"mem-{number}" for number in acknowledged]
        lines = list(store.log(False))
        assert len(store.fetch(TENANT, wanted)) == len(wanted)
        assert chain.verify(lines) is None
        page = store.search(SearchRequest((TENANT,), open_plan(), ("support",), NOW_US, 0))
        assert len(lines) == page.considered >= len(wanted)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python warns of forking beside threads
def test_a_store_is_reopened_after_a_fork(tmp_path: Path) -> None:
    """A child of fork writes through connections of its own; the parent's stay whole."""
    path = tmp_path / "memory.db"
    with closing(SqliteStore(path)) as store:
        put(store, make_record("parent-1"), lines=["{}"])
        with store._pool.writer:  # held at the moment of the fork
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    put(store, make_record("child-1"), lines=["{}"])
                    store.append_lines(["{}"], read=True)
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
        put(store, make_record("parent-2"), lines=["{}"])

        assert ask(store, "support").considered == 3
        assert chain.verify(store.log(False)) is None


def test_racing_writers_of_one_memory_leave_one(tmp_path: Path) -> None:
    """The store decides uniqueness: of many writers of one dedup key, or of one slot, one succeeds."""
    with closing(SqliteStore(tmp_path / "memory.db")) as store:
        barrier = threading.Barrier(4)

        def write(number: int) -> bool:
            barrier.wait()
            record = make_record(f"mem-{number}", key="queue")
            try:
                store.commit(WriteBatch([Change(record, dedup=b"same")]))
            except (DuplicateRecordError, RevisionConflictError):
                return False
            return True

        with ThreadPoolExecutor(4) as threads:
            won = list(threads.map(write, range(4)))

        assert won.count(True) == 1
        slot = Slot(None, "long_term", "validated_fact", "queue")
        head = store.heads(TENANT, [slot])[0]
        assert head is not None
        assert head.memory_id == f"mem-{won.index(True)}"


def test_connections_of_finished_threads_are_closed(tmp_path: Path) -> None:
    """A thread that ends does not keep its connection for ever."""
    with closing(SqliteStore(tmp_path / "memory.db")) as store:
        for _ in range(10):
            thread = threading.Thread(target=store.revision)
            thread.start()
            thread.join()
        store.revision()

        assert len(store._pool._open) <= 3


class _Interrupted(sqlite3.Connection):
    """Lets another opener make the whole file before its statement number `at`."""

    at = 0
    other: str = ""

    def execute(self, *args: Any) -> sqlite3.Cursor:
        self.at -= 1
        if self.at == -1:
            with closing(sqlite3.connect(self.other, isolation_level=None)) as other:
                schema.prepare(other, path=self.other, reads=True)
        return super().execute(*args)


@pytest.mark.parametrize("at", range(4))
def test_a_file_made_by_another_between_two_looks_is_still_ours(tmp_path: Path, at: int) -> None:
    """Before whatever statement of the opening another opener commits, the file is taken for ours."""
    path = str(tmp_path / "m.db.reads")
    with closing(sqlite3.connect(path, factory=_Interrupted, isolation_level=None)) as connection:
        connection.at, connection.other = at, path
        schema.prepare(connection, path=path, reads=True)
        assert connection.at < 0, "the other opener never came"
        assert connection.execute("SELECT count(*) FROM log").fetchone() == (0,)
