"""Conformance cases about processes: what was acknowledged outlives them, and none is in another's way.

A second process opens the store by the same `open_store` and the same folder as the first, so the class that
holds a store to this suite must be importable by its name, and its instances picklable.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import unittest
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.errors import RevisionConflictError
from agent_runtime_ref.stores.base import Change, Slot, Store, WriteBatch
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.telemetry.events import Event
from agent_runtime_ref.telemetry.lines import event_text
from agent_runtime_ref.testing.conformance_base import TENANT, StoreCases, ask, ids, put
from agent_runtime_ref.testing.conformance_forgetting import SUBJECT, fill, forget
from agent_runtime_ref.testing.conformance_reviewing import hold
from agent_runtime_ref.testing.records import NOW_US, make_record

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

PROCESSES, THREADS, EACH = 2, 4, 6
WRITES = 10_000
KILLED_AFTER = 150  # acknowledged writes, of those
WAIT_SECONDS = 120
SLOT = Slot(None, "long_term", "validated_fact", "counter")
_SPAWN = multiprocessing.get_context("spawn")  # a fork would take threads and connections along


class ProcessCases(StoreCases):
    """Durability and concurrency; a store that says it is not durable is skipped, with that reason."""

    def test_everything_is_there_when_it_is_opened_again(self) -> None:
        """Records, words, duplicate keys, tombstones, keys, queue, revisions and log outlive a close."""
        with self._durable_folder() as folder:
            before = self._seen(folder, fill_it=True)
            after = self._seen(folder, fill_it=False)

            revisions = before.pop("revision"), after.pop("revision")
            assert after == before
            assert revisions[0] <= revisions[1]

    def _seen(self, folder: Path, *, fill_it: bool) -> dict[str, Any]:
        store = self.open_store(folder)
        try:
            if fill_it:
                fill(store)
                store.commit(WriteBatch([Change(make_record("held-key", key="queue"), dedup=b"held-key")]))
                head = store.heads(TENANT, [SLOT._replace(key="queue")])[0]
                replacement = make_record("next-key", key="queue", revision=2)
                store.commit(WriteBatch([Change(replacement, head, dedup=b"next-key")], ['{"line":1}']))
                forget(store)
                hold(store)
                put(store, make_record("high", revision=9))
                store.append_lines(['{"read":1}'], read=True)
            return _state(store)
        finally:
            store.close()

    def test_two_processes_with_four_threads_each(self) -> None:
        """Nothing is lost or overwritten, and the log is one chain that holds every write once."""
        with self._shared_folder() as folder:
            workers = [_SPAWN.Process(target=_contend, args=(self, folder, n)) for n in range(PROCESSES)]
            _run(workers)
            store = self.open_store(folder)
            try:
                everything = ids(ask(store, take=1000))
                lines = [chain.body(line) for line in store.log(False)]
                total = PROCESSES * THREADS * EACH

                assert [worker.exitcode for worker in workers] == [0] * PROCESSES
                assert len([one for one in everything if one.startswith("own-")]) == total
                steps = store.fetch(TENANT, [one for one in everything if one.startswith("step-")])
                assert sorted(one.revision for one in steps) == list(range(1, total + 1))
                assert Counter(one.status for one in steps) == {"active": 1, "superseded": total - 1}
                assert set(Counter(lines).values()) == {1}
                assert len(lines) == 2 * total
                assert chain.verify(store.log(False)) is None
            finally:
                store.close()

    def test_no_acknowledged_write_is_lost_to_a_kill(self) -> None:
        """A process that is killed in the middle of 10,000 writes leaves each one that it was told of."""
        with self._durable_folder() as folder:
            acknowledged = self._killed(folder)
            store = self.open_store(folder)
            try:
                found = set(ids(ask(store, take=WRITES)))
                events = [line for line in store.log(False) if '"event_type":"memory_' in line]
                told = set(_named(events, "memory_persisted"))
                taken_back = set(_named(events, "memory_not_persisted"))

                assert len(acknowledged) >= KILLED_AFTER
                assert set(acknowledged) <= found
                assert len(found) <= len(acknowledged) + 1, "more than the one that was under way"
                assert told - taken_back == found
                assert chain.verify(store.log(False)) is None
                put(store, make_record("after"))
                assert "after" in ids(ask(store, take=WRITES + 1))
            finally:
                store.close()

    def _killed(self, folder: Path) -> list[str]:
        """Return the ids that a process acknowledged before it was killed."""
        receiving, sending = _SPAWN.Pipe(duplex=False)
        worker = _SPAWN.Process(target=_write_on, args=(self, folder, sending))
        worker.start()
        sending.close()
        acknowledged: list[str] = []
        try:
            while receiving.poll(WAIT_SECONDS):
                acknowledged.append(receiving.recv())
                if len(acknowledged) == KILLED_AFTER:
                    assert worker.pid is not None
                    os.kill(worker.pid, signal.SIGKILL)
        except EOFError:
            pass  # what it sent before the end has been read
        finally:
            worker.kill()
            worker.join(WAIT_SECONDS)
            receiving.close()
        assert worker.exitcode == -signal.SIGKILL
        return acknowledged

    def shares(self, store: Store) -> bool:
        """Whether another process that calls `open_store` with the same folder sees the same store."""
        return store.durable

    @contextmanager
    def _durable_folder(self) -> Iterator[Path]:
        with self.opened() as store:
            if not store.durable:
                raise unittest.SkipTest(f"`{store.url}` does not declare `durable`")
        with self._folder() as folder:
            yield folder

    @contextmanager
    def _shared_folder(self) -> Iterator[Path]:
        with self.opened() as store:
            if not self.shares(store):
                raise unittest.SkipTest(f"`{store.url}` is not shared between processes")
        with self._folder() as folder:
            yield folder

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        """Give a folder whose store has been made, so that no other process has to."""
        with TemporaryDirectory(prefix="store-conformance-") as folder:
            self.open_store(Path(folder)).close()
            yield Path(folder)


def _state(store: Store) -> dict[str, Any]:
    """Return what can be asked of a store that `_seen` filled."""
    everything = sorted(ids(ask(store)))
    return {
        "records": store.fetch(TENANT, everything),
        "words": [ids(ask(store, word)) for word in ("marmalade", "support", "queue", "fruit")],
        "heads": store.heads(TENANT, [SLOT._replace(key="queue"), SLOT._replace(key=None)]),
        "duplicates": store.find_duplicate(TENANT, [b"held-key", b"next-key", b"other", b"own-2"]),
        "keys": [store.subject_key(TENANT, one, False) for one in (SUBJECT, "user-7")],
        "store key": store.store_key(),
        "queued": store.queued(TENANT, "held"),
        "forgets": store.forgets(),
        "revision": store.revision(),
        "log": list(store.log(False)) + list(store.log(True)),
        "elsewhere": ids(ask(store, tenant_ids=("tenant-b",))),
    }


def _run(workers: list[Any]) -> None:
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(WAIT_SECONDS)
    for worker in workers:
        if worker.is_alive():
            worker.kill()
            worker.join()


def _contend(cases: ProcessCases, folder: Path, process: int) -> None:
    """Write records of one's own, and raise a counter that every thread of every process raises."""
    store = cases.open_store(folder)
    names = [f"{process}-{thread}" for thread in range(THREADS)]
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda name: _contend_as(store, name), names))
    finally:
        store.close()


def _contend_as(store: Store, name: str) -> None:
    for number in range(EACH):
        put(store, make_record(f"own-{name}-{number}"), lines=[f'{{"own":"{name}-{number}"}}'])
        while True:
            head = store.heads(TENANT, [SLOT])[0]
            revision = 1 if head is None else head.revision + 1
            record = make_record(f"step-{name}-{number}", key="counter", revision=revision)
            try:
                store.commit(WriteBatch([Change(record, head)], [f'{{"step":"{name}-{number}"}}']))
                break
            except RevisionConflictError:
                continue  # somebody was faster: look again


def _write_on(cases: ProcessCases, folder: Path, sending: Connection) -> None:
    """Write record after record, and tell of each one when the store has it."""
    store = cases.open_store(folder)
    example = make_record()
    for number in range(WRITES):
        record = replace(example, memory_id=f"mem-{number:05}")
        put(store, record, lines=[_line_of(record.memory_id)])
        sending.send(record.memory_id)


def _line_of(memory_id: str) -> str:
    payload = {"event_id": f"evt-{memory_id}", "tenant_id": TENANT, "record_id": memory_id}
    return event_text(Event("memory_persisted", "trace-001", NOW_US, payload))


def _named(lines: list[str], event_type: str) -> Iterator[str]:
    """Yield the record ids of events of one type."""
    import json

    for line in lines:
        event = json.loads(line)
        if event["event_type"] == event_type:
            yield event["payload"]["record_id"]
