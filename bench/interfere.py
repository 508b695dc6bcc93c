"""Reads beside a second process that writes at full speed into the same store."""

from __future__ import annotations

import random
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter_ns, thread_time_ns

from bench.cache import CHECKOUT
from bench.data import SEED, Corpus, Slice, candidate, questions
from bench.governed import Reader, opened, writer_of
from bench.ratios import empty
from bench.report import Line, Measured, Times

P50_BOUND = 1.5
P95_BOUND = 2.0
_BLOCKS = 20
_FIRST_NEW_SLICE = 2_000_000
_SETTLE_SECONDS = 0.05
_WARM_UP = 50


def measure(path: Path, corpus: Corpus, *, reads: int) -> Measured:
    """Read in blocks, each once quiet and once beside the writer, in random order."""
    asked = questions(corpus, reads + _WARM_UP, salt="interfere")
    timings = empty(("quiet", "beside a writer"))
    rng = random.Random(f"{SEED} interfere")
    size = -(-reads // _BLOCKS)
    with opened(path) as memory, _writer(path) as writer:
        reader = Reader(memory)
        for question in asked[:_WARM_UP]:
            reader.read(question)
        for start in range(_WARM_UP, len(asked), size):
            for name in rng.sample(list(timings.wall), 2):
                _tell(writer, "go" if name != "quiet" else "stop")
                for question in asked[start : start + size]:
                    begun, cpu = perf_counter_ns(), thread_time_ns()
                    reader.read(question)
                    timings.wall[name].append(perf_counter_ns() - begun)
                    timings.cpu[name].append(thread_time_ns() - cpu)
        written = _written(writer)
    against = timings.ratio("beside a writer", "quiet")
    note = f"{against.note}; the writer kept {written:,} records"
    lines = [
        Line("read beside a writing process: p50, beside / quiet", against.p50, P50_BOUND, note=note),
        Line("read beside a writing process: p95, beside / quiet", against.p95, P95_BOUND),
    ]
    return Measured(lines, [Times(f"read, {name}", found) for name, found in timings.wall.items()])


@contextmanager
def _writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "bench.interfere", str(path)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _tell(process: subprocess.Popen[str], command: str) -> None:
    assert process.stdin is not None
    process.stdin.write(command + "\n")
    process.stdin.flush()
    time.sleep(_SETTLE_SECONDS)


def _written(process: subprocess.Popen[str]) -> int:
    _tell(process, "end")
    assert process.stdout is not None
    return int(process.stdout.readline())


def write_at_full_speed(path: Path) -> None:
    """Write until told to stop: `go`, `stop` and `end` come on standard input, a line each."""
    written, command = 0, "stop"
    with opened(path) as memory:
        while command != "end":
            if command == "stop" or select.select([sys.stdin], [], [], 0)[0]:
                command = sys.stdin.readline().strip() or "end"
                continue
            part = Slice(f"tenant-{written % 100:03}", _FIRST_NEW_SLICE + written, 1, 0)
            memory.write(candidate(part, 0), caller=writer_of(part.tenant_id))
            written += 1
    print(written, flush=True)


if __name__ == "__main__":
    write_at_full_speed(Path(sys.argv[1]))
