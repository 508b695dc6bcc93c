"""Writes: a governed one against the bare transaction of the same rows, one at a time and in bulk."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from agent_runtime_ref import GovernedMemory, MemoryCandidate, MemoryRecord
from bench.build import copied, tidy, told
from bench.data import NOW_US, SEED, SLICE_MAX, Corpus, Slice, candidate, candidates
from bench.governed import Clock, admitted, opened, writer_of
from bench.mirror import Bare, Source, Written
from bench.ratios import Timings, interleaved
from bench.report import Line, Measured, Times

WRITE_BOUND = 2.0
BULK_BOUND = 5.0
_WARM_UP = 20
_FIRST_NEW_SLICE = 1_000_000  # behind all slices of the corpus, so that every record is new
_NAMES = tuple(field.name for field in fields(MemoryCandidate))


@dataclass(slots=True)
class _Round:
    """What one round writes: new records through the gate, and, bare, the rows of the round before."""

    plain: list[dict[str, Any]]
    before: Written | None
    kept: Sequence[MemoryRecord] = ()


def measure_single(path: Path, corpus: Corpus, *, rounds: int, bare: Path, alone: Path) -> Measured:
    """Write one record at a time into the store at `path`, and the same rows into two copies of it."""
    copied(path, bare)
    copied(path, alone)
    inserting, leaving_out = Bare(bare), Bare(alone)
    with opened(path) as memory:
        contenders: dict[str, Callable[[_Round], object]] = {
            "governed": partial(_write, memory),
            "bare": lambda one: inserting.insert(one.before),
            "record and lines": lambda one: leaving_out.insert_record_and_lines(one.before),
        }
        parts = new_records(corpus, rounds + _WARM_UP)
        plain = ([_plain(candidate(part, 0))] for part in parts)
        timings = interleaved(contenders, _rounds(path, plain, inserting), seed="write", warm_up=_WARM_UP)
    inserting.close()
    leaving_out.close()
    return Measured(
        _single_lines(timings), [Times(f"write: {name}", found) for name, found in timings.wall.items()]
    )


def measure_bulk(path: Path, more: Corpus, *, bare: Path) -> Measured:
    """Load the slices of `more` into the store at `path`, and the same rows into its copy at `bare`."""
    clock, inserting = Clock(), Bare(bare)
    with opened(path, clock) as memory:
        contenders: dict[str, Callable[[_Round], object]] = {
            "governed": partial(_write_many, memory),
            "bare": lambda one: inserting.insert(one.before),
        }
        plain = _slices(more, clock)
        timings = interleaved(contenders, _rounds(path, plain, inserting), seed="bulk", warm_up=1)
    inserting.close()
    tidy(path)
    times = [Times(f"bulk, batch of 1,000: {name}", found) for name, found in timings.wall.items()]
    return Measured(_bulk_lines(timings), times)


def new_records(corpus: Corpus, count: int) -> list[Slice]:
    """Return slices of one new record each, of tenants drawn by their size."""
    sizes = corpus.tenant_sizes()
    drawn = random.Random(f"{SEED} writers").choices(
        list(sizes), cum_weights=list(accumulate(sizes.values())), k=count
    )
    return [Slice(tenant, _FIRST_NEW_SLICE + number, 1, NOW_US) for number, tenant in enumerate(drawn)]


def _slices(more: Corpus, clock: Clock) -> Iterator[list[dict[str, Any]]]:
    for part in told(more.slices(), "loading in bulk"):
        clock.set_us = part.at_us
        yield [_plain(one) for one in candidates(part)]


def _rounds(path: Path, records: Iterator[list[dict[str, Any]]], bare: Bare) -> Iterator[_Round]:
    """Yield rounds; between two of them, outside all timing, look up the rows that the last one made."""
    source = Source(path)
    before: Written | None = None
    for plain in records:
        one = _Round(plain, before)
        yield one
        before = source.written(one.kept)
    source.close()
    bare.insert(before)


def _write(memory: GovernedMemory, one: _Round) -> None:
    plain = one.plain[0]
    receipt = memory.write(MemoryCandidate(**plain), caller=writer_of(plain["tenant_id"]))
    one.kept = (receipt.record,)


def _write_many(memory: GovernedMemory, one: _Round) -> None:
    one.kept = admitted(memory, (MemoryCandidate(**plain) for plain in one.plain), one.plain[0]["tenant_id"])


def _plain(record: MemoryCandidate) -> dict[str, Any]:
    return {name: getattr(record, name) for name in _NAMES}


def _single_lines(timings: Timings) -> list[Line]:
    against = timings.ratio("governed", "bare")
    less = timings.ratio("governed", "record and lines")
    name = "durable write: p50, governed / bare transaction of the same rows"
    return [
        Line(name, against.p50, WRITE_BOUND, note=against.note),
        Line("durable write: p50, governed / record and log lines alone", less.p50),
    ]


def _bulk_lines(timings: Timings) -> list[Line]:
    total = sum(timings.wall["governed"]) / sum(timings.wall["bare"])
    rate = SLICE_MAX * len(timings.wall["governed"]) / sum(timings.wall["governed"]) * 1e9
    note = f"median of batches {timings.ratio('governed', 'bare').rounds:.2f}×; {rate:,.0f} records/s"
    name = "bulk load, batches of 1,000: governed / executemany of the same rows"
    return [Line(name, total, BULK_BOUND, note=note)]
