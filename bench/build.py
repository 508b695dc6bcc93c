"""The three stores of a run, filled alike; `DirectWriter` says how the governed one is."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import Any

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.resources import policies_path
from bench.data import Corpus, Slice
from bench.direct import DirectWriter
from bench.limit import Limit
from bench.naive import Naive
from bench.report import Measured
from bench.rows import row_of

_TELL_SECONDS = 20
_COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is measured, and how long at most."""

    records: int
    added: int  # of other tenants, afterwards
    naive_bound: float
    rounds: int
    seconds_max: float  # of one row of reads


@dataclass(frozen=True)
class Bench:
    """A folder with the stores of a corpus."""

    folder: Path
    corpus: Corpus

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The settings of the bundled policy."""
        return dict(load_bundle(policies_path()).settings)

    @property
    def governed(self) -> Path:
        """The governed store."""
        return self.folder / "memory.db"

    @property
    def ready(self) -> bool:
        """Whether all stores are complete."""
        return self.path(_COMPLETE).exists()

    def naive(self) -> Naive:
        """Return N, opened."""
        return Naive(self.folder / "naive.db", self.settings)

    def limit(self) -> Limit:
        """Return L, opened."""
        return Limit(self.folder / "limit.db", self.settings)

    def path(self, name: str) -> Path:
        """Return where another file of the run is."""
        return self.folder / name


def build(bench: Bench) -> Measured:
    """Fill all three stores alike."""
    ranks = bench.settings["trust_ranks"]
    for left in bench.folder.glob("*.db*"):  # of a run that was interrupted
        left.unlink()
    naive, limit = bench.naive(), bench.limit()
    naive.hurry()
    limit.hurry()
    with _writer(bench.governed) as put:
        for part in told(bench.corpus.slices(), "building"):
            rows = [row_of(record, ranks) for record in put(part)]
            naive.add(rows)
            limit.add(rows)
    for store in (naive, limit):
        store.tidy()
        store.close()
    tidy(bench.governed)
    bench.path(_COMPLETE).touch()
    return Measured()


def grown(bench: Bench, more: Corpus) -> Path:
    """Return a copy of the governed store to which the records of `more` were added, made once."""
    path, complete = bench.path("grown.db"), bench.path(f"grown-{more.records}")
    if complete.exists():
        return path
    copied(bench.governed, path)
    with _writer(path) as put:
        for part in told(more.slices(), "adding records"):
            put(part)
    tidy(path)
    complete.touch()
    return path


@contextmanager
def _writer(path: Path) -> Iterator[Callable[[Slice], list[MemoryRecord]]]:
    """Give what keeps a slice in the store at `path`."""
    writer = DirectWriter(f"sqlite:{path}")
    yield writer.put
    writer.close()


def copied(source: Path, target: Path) -> Path:
    """Copy a store that nobody has open, without the log of its reads, and return the copy."""
    tidy(source)
    shutil.copyfile(source, target)
    return target


def tidy(path: Path) -> None:
    """Bring the write-ahead log into the file, so that every measurement begins with an empty one."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.close()


def told(parts: Iterable[Slice], what: str) -> Iterator[Slice]:
    """Pass slices on, and say on standard error how far it has come where that takes long."""
    begun = last = monotonic()
    done = 0
    for part in parts:
        yield part
        done += part.size
        if monotonic() - last > _TELL_SECONDS:
            last = monotonic()
            print(f"{what}: {done:,} records in {last - begun:.0f} s", file=sys.stderr, flush=True)
