"""Resident memory of a process that opened a large store, read and wrote."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from agent_runtime_ref import MemoryCandidate
from bench.cache import CHECKOUT
from bench.data import Corpus, Question, candidate, questions
from bench.governed import Reader, opened, writer_of
from bench.report import Line, Measured
from bench.write import new_records

BOUND_MB = 120.0
READS = 1_000
WRITES = 100
_FIRST_NEW_SLICE = 3_000_000


def measure(path: Path, corpus: Corpus) -> Measured:
    """Return the peak of a fresh process; what it reads and writes is made here, so as not to be counted."""
    work = {
        "reads": [asdict(one) for one in questions(corpus, READS, salt="memory")],
        "writes": [_plain(candidate(part, 1)) for part in new_records(corpus, WRITES)],
    }
    command = [sys.executable, "-m", "bench.memory", str(path)]
    done = subprocess.run(
        command, input=json.dumps(work), stdout=subprocess.PIPE, text=True, check=True, cwd=CHECKOUT
    )
    peak = float(done.stdout)
    name = f"peak resident memory: {READS:,} reads and {WRITES} writes over {corpus.records:,} records"
    return Measured([Line(name, peak, BOUND_MB, unit="MB")])


def peak_mb() -> float:
    """Return the most resident memory this process has had, in millions of bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # Unlike ru_maxrss, this does not count what the parent had when it started this process.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # bytes on macOS


def read_and_write(path: Path) -> None:
    """Do the work that comes on standard input, and print the peak."""
    work = json.load(sys.stdin)
    with opened(path) as memory:
        reader = Reader(memory)
        for one in work["reads"]:
            reader.read(Question(**{**one, "classes": tuple(one["classes"])}))
        for plain in work["writes"]:
            memory.write(MemoryCandidate(**plain), caller=writer_of(plain["tenant_id"]))
    print(peak_mb())


def _plain(record: MemoryCandidate) -> dict[str, object]:
    return record.to_document()


if __name__ == "__main__":
    read_and_write(Path(sys.argv[1]))
