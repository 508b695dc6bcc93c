"""Reads and writes with telemetry on and off, at 200 operations a second, and an outage of the collector.

On: an SDK sends the spans of the gates to a real collector, and an exporter in a process of its own delivers
the events there while they come. Off: no SDK, no exporter. Each has a copy of the store and a process of its
own, and they work in turns: a second of one, a second of the other, in random order.
"""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.build import copied
from bench.cache import CHECKOUT
from bench.data import SEED, Corpus
from bench.ratios import Timings, empty
from bench.report import Line, Measured, Times
from tests.collector import NoCollectorError, Otelcol, otelcol_binary

P50_BOUND = 1.3
P95_BOUND = 1.5
EVENTS = 10_000
OUTAGE_SECONDS = 60.0
BLOCKS = 20
_KINDS = ("read", "write")
_EVENTS_OF_A_PAIR = 4  # of a write its decision and its record, of a read its decision and its context
_WAIT_SECONDS = 300.0


def measure(path: Path, corpus: Corpus, folder: Path) -> Measured:
    """Return all numbers; where there is no collector, say so."""
    try:
        otelcol_binary()
    except NoCollectorError as error:
        return Measured(skipped=[f"telemetry: {error}"])
    with TemporaryDirectory(prefix="telemetry-", dir=folder) as own:
        return _both(path, corpus, Path(own))


def _both(path: Path, corpus: Corpus, folder: Path) -> Measured:
    lit, dark = copied(path, folder / "on.db"), copied(path, folder / "off.db")
    with ExitStack() as stack:
        collector = Otelcol(folder)
        stack.enter_context(collector)
        exporter = stack.enter_context(_exporter(lit, collector.url))
        _until(lambda: _delivered(lit))
        workers = {
            "on": stack.enter_context(_worker(lit, corpus, collector.url)),
            "off": stack.enter_context(_worker(dark, corpus, None)),
        }
        timings, rate = _in_turns(workers, exporter, lit)
        outage = _outage(collector, workers["on"], exporter, lit)
    lines = [line for kind in _KINDS for line in _lines(kind, timings[kind], rate)]
    times = [
        Times(f"{kind} at 200 operations a second, telemetry {name}", found)
        for kind in _KINDS
        for name, found in timings[kind].wall.items()
    ]
    return Measured([*lines, *outage], times)


def _lines(kind: str, timings: Timings, rate: float) -> list[Line]:
    against = timings.ratio("on", "off")
    name = f"{kind} at 200 operations a second, telemetry on / off"
    return [
        Line(
            f"{name}: p50", against.p50, P50_BOUND, note=f"{against.note}; {rate:.0f} a second were reached"
        ),
        Line(f"{name}: p95", against.p95, P95_BOUND),
    ]


def _in_turns(
    workers: dict[str, subprocess.Popen[str]], exporter: subprocess.Popen[str], store: Path
) -> tuple[dict[str, Timings], float]:
    """Return the times of each kind, and how many operations a second there were with telemetry on."""
    timings = {kind: empty(workers) for kind in _KINDS}
    seconds = 0.0
    rng = random.Random(f"{SEED} telemetry")
    for name in workers:
        _block(workers[name])  # not kept
    for _ in range(BLOCKS):
        for name in rng.sample(list(workers), 2):
            # What is left of the other's turn must not be paid for in this one.
            _until(lambda: _delivered(store))
            exporter.send_signal(signal.SIGCONT if name == "on" else signal.SIGSTOP)
            found = _block(workers[name])
            exporter.send_signal(signal.SIGCONT)
            seconds += found["took"][0] / 1e9 if name == "on" else 0.0
            for kind in _KINDS:
                timings[kind].wall[name].extend(found[kind])
                timings[kind].cpu[name].extend(found[f"{kind} cpu"])
    return timings, sum(len(one.wall["on"]) for one in timings.values()) / seconds


def _outage(
    collector: Otelcol, worker: subprocess.Popen[str], exporter: subprocess.Popen[str], store: Path
) -> list[Line]:
    """Let events come for a minute without a collector, start it again, and count what is missing then."""
    collector.stop()
    begun = time.monotonic()
    for _ in range(EVENTS // _EVENTS_OF_A_PAIR // 100):
        _block(worker)
    time.sleep(max(0.0, begun + OUTAGE_SECONDS - time.monotonic()))
    seconds = time.monotonic() - begun
    collector.start()
    again = time.monotonic()
    _until(lambda: _delivered(store))
    took = time.monotonic() - again
    exporter.send_signal(signal.SIGTERM)
    exporter.wait(timeout=60)
    collector.stop()
    told = _reconciled(store, collector.output)
    note = (
        f"{told['expected']:,} events in all, {len(told['altered'])} altered, {len(told['duplicated'])} twice"
    )
    name = f"an outage of {seconds:.0f} s with {EVENTS:,} events"
    return [
        Line(f"{name}: missing in the end", len(told["missing"]), 0, "events", note),
        Line(f"{name}: until all are delivered", took, None, "s"),
    ]


def _reconciled(store: Path, collected: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "agent_runtime_ref", "trace", "reconcile", "--store", f"sqlite:{store}"]
    done = subprocess.run(
        [*command, "--collector", collected], capture_output=True, text=True, cwd=CHECKOUT, check=False
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _delivered(store: Path) -> bool:
    """Tell whether the cursor has come to the end of both logs."""
    cursor = store.with_name(f"{store.name}.export")
    text = cursor.read_text() if cursor.exists() else ""
    chains = json.loads(text)["chains"] if text else {}  # an exporter holds it before it has moved
    return all(
        chains.get(name, {"seq": 0})["seq"] == _last(file)
        for name, file in (("writes", store), ("reads", store.with_name(f"{store.name}.reads")))
    )


def _last(file: Path) -> int:
    if not file.exists():
        return 0
    connection = sqlite3.connect(file)
    try:
        return int(connection.execute("SELECT ifnull(max(seq), 0) FROM log").fetchone()[0])
    finally:
        connection.close()


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + _WAIT_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise SystemExit("the exporter has not delivered what there is")
        time.sleep(0.05)


@contextmanager
def _exporter(store: Path, url: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "agent_runtime_ref", "trace", "export", "--store", f"sqlite:{store}"]
    with _process([*command, "--endpoint", url, "--follow"]) as process:
        yield process


@contextmanager
def _worker(store: Path, corpus: Corpus, url: str | None) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "bench.telemetry_worker", str(store), str(corpus.records), url or ""]
    with _process(command) as process:
        yield process


@contextmanager
def _process(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, cwd=CHECKOUT
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _block(worker: subprocess.Popen[str]) -> dict[str, list[int]]:
    """Let a worker work for a second, and return how many nanoseconds each operation took."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write("go\n")
    worker.stdin.flush()
    found: dict[str, list[int]] = json.loads(worker.stdout.readline())
    return found
