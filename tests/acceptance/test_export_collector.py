"""Events reach a real collector: after an outage, and whatever ends the exporter in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.resources import configs_path
from agent_runtime_ref.telemetry.reader import read_entries
from tests.acceptance.command import Command
from tests.collector import Collector, NoCollectorError, Rotel, a_collector, otelcol_binary, rotel_binary
from tests.otlp_receiver import attribute, event_id
from tests.support import caller, candidate, query

pytestmark = pytest.mark.timeout(1000)  # a collector may have to be built first

PROMISED = {"memory_write_decision", "memory_persisted", "retrieval", "context_layers_built"}


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    """A collector that is not started yet, and ended behind the test."""
    made = a_collector(tmp_path)
    yield made
    made.kill()


@pytest.fixture
def store(tmp_path: Path) -> str:
    """The address of an empty store."""
    return f"sqlite:{tmp_path / 'memory.db'}"


def use(store: str, times: int) -> list[dict[str, Any]]:
    """Write and read so often, and return all events that the log has, those of writes first."""
    with GovernedMemory.open(store) as memory:
        for number in range(times):
            memory.write(candidate(f"Fact number {number} of {time.time_ns()}"), caller=caller())
            memory.read(query(), caller=caller(), text="fact")
        lines = [*memory.log_lines(), *memory.log_lines(read=True)]
    return [line for _, line in read_entries(lines, source="log") if line["type"] == "event"]


def ids_of(events: list[dict[str, Any]]) -> list[str]:
    """The ids of events, in their order."""
    return [event["event_id"] for event in events]


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Return when a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to it in time"
        time.sleep(0.02)


@contextmanager
def exporter(store: str, url: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """An exporter that follows the log, as a process of its own; killed at the end, if it has not ended."""
    command = [sys.executable, "-m", "agent_runtime_ref", "trace", "export", "--store", store]
    settings = {"OTEL_BLRP_SCHEDULE_DELAY": "50", "OTEL_EXPORTER_OTLP_TIMEOUT": "2", **environment}
    with subprocess.Popen(
        [*command, "--endpoint", url, "--follow"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **settings},
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def ended(running: subprocess.Popen[str]) -> tuple[int, Any, str]:
    """End an exporter as a supervisor does: its exit code, its report and what it said beside that."""
    running.send_signal(signal.SIGTERM)
    said, complaints = running.communicate(timeout=30)
    return running.returncode, json.loads(said), complaints


def test_what_was_written_during_an_outage_arrives_once_the_collector_is_back(
    collector: Collector, store: str, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a collector it is told what is pending; with one, every event arrives once and as it was."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.3")
    events = use(store, 5)
    called = ("trace", "export", "--store", store, "--endpoint", collector.url)

    down = command(*called)
    with collector:
        up = command(*called)
        again = command(*called)
        until(lambda: len(collector.records()) >= len(events))
        records = collector.records()

    assert (down.code, down.document) == (1, {"sent": 0, "pending": 20, "failed": 0, "cut": 0})
    assert f"20 events were not delivered to {collector.url}: no answer" in down.err
    assert (up.code, up.document) == (0, {"sent": 20, "pending": 0, "failed": 0, "cut": 0})
    assert again.document == {"sent": 0, "pending": 0, "failed": 0, "cut": 0}
    assert [event_id(record) for record in records] == ids_of(events)
    assert {event["event_type"] for event in events} == PROMISED
    for record, event in zip(records, events, strict=True):
        assert record["eventName"] == f"agent_memory.{event['event_type']}"
        assert attribute(record, "agent_memory.event_type") == event["event_type"]
        assert attribute(record, "agent_memory.decision_id") == event["payload"]["decision_id"]
        assert attribute(record, "agent_memory.log_hash") == event["hash"]
        assert int(record["timeUnixNano"]) > 1_700_000_000_000_000_000


def test_an_exporter_that_is_killed_in_the_middle_loses_nothing(
    collector: Collector, store: str, command: Command
) -> None:
    """kill -9 of exporter and collector: all events are there in the end, duplicates under the same id."""
    expected = ids_of(use(store, 25))
    with collector:
        for _ in range(2):
            before = len(collector.records())
            # One event at a time, so that there is a middle to be killed in.
            with exporter(store, collector.url, OTEL_BLRP_MAX_EXPORT_BATCH_SIZE="1"):
                until(lambda count=before: len(collector.records()) > count + 3)  # type: ignore[misc]
        collector.stop()
        collector.start()
        with exporter(store, collector.url) as running:
            until(lambda: len({event_id(record) for record in collector.records()}) == len(expected))
            code, report, _ = ended(running)
        arrived = Counter(event_id(record) for record in collector.records())
    told = command("trace", "reconcile", "--store", store, "--collector", collector.output)

    assert told.code == 0
    assert {name: told.document[name] for name in ("missing", "altered", "unexpected", "completeness")} == {
        "missing": [], "altered": [], "unexpected": [], "completeness": 1.0,
    }  # fmt: skip
    assert sorted(told.document["duplicated"]) == sorted(one for one, times in arrived.items() if times > 1)
    assert (code, report["pending"], report["failed"]) == (0, 0, 0)
    assert set(arrived) == set(expected)


def test_what_is_written_while_the_exporter_follows_arrives_without_a_further_call(
    collector: Collector, store: str
) -> None:
    """The exporter begins before the collector is there, outlives its restart, and ends on SIGTERM."""
    first = use(store, 2)
    with exporter(store, collector.url) as running, collector:
        until(lambda: len(collector.records()) == len(first))
        collector.stop()
        everything = use(store, 3)
        collector.start()
        until(lambda: len({event_id(record) for record in collector.records()}) == len(everything))
        code, report, complaints = ended(running)
        arrived = {event_id(record) for record in collector.records()}

    assert arrived == set(ids_of(everything))
    assert (code, report["pending"], report["failed"]) == (0, 0, 0)
    assert "Traceback" not in complaints


def test_rotel_takes_the_same_events(tmp_path: Path, store: str, command: Command) -> None:
    """A collector of other makers hands on names, attributes and times as they were."""
    try:
        rotel_binary()
    except NoCollectorError as error:
        pytest.skip(str(error))
    events = use(store, 2)
    with Rotel(tmp_path) as collector:
        told = command("trace", "export", "--store", store, "--endpoint", collector.url)
        until(lambda: len(collector.records()) == len(events))
        records = collector.records()

    assert told.document["sent"] == len(events)
    assert sorted(map(event_id, records)) == sorted(ids_of(events))
    assert {record["eventName"] for record in records} == {f"agent_memory.{name}" for name in PROMISED}


def test_the_configuration_for_users_is_one(tmp_path: Path) -> None:
    """The collector itself says so, of the file as it is shipped."""
    try:
        collector = otelcol_binary()
    except NoCollectorError as error:
        pytest.skip(str(error))
    config = configs_path() / "otel-collector.yaml"
    told = subprocess.run(
        [collector, "validate", "--config", config], capture_output=True, text=True, check=False
    )

    assert (told.returncode, told.stderr) == (0, "")
