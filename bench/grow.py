"""Other tenants' records: a tenant's reads may not notice them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.build import Bench, Scale
from bench.data import Question, questions
from bench.governed import Reader, opened
from bench.ratios import interleaved
from bench.report import Line, Measured, Times

BOUND = 1.3
_WARM_UP = 20


def measure(bench: Bench, after: Path, scale: Scale) -> Measured:
    """Read the same from the store and from one to which other tenants' records were added."""
    asked = questions(bench.corpus, scale.rounds + _WARM_UP, salt="grow")
    with opened(bench.governed) as small, opened(after) as large:
        readers = {"before": Reader(small), "after": Reader(large)}
        contenders: dict[str, Callable[[Question], object]] = {
            name: reader.read for name, reader in readers.items()
        }
        timings = interleaved(contenders, asked, seed="grow", warm_up=_WARM_UP, seconds_max=scale.seconds_max)
    against = timings.ratio("after", "before")
    name = f"read, {scale.added:,} records of other tenants added: p50, after / before"
    times = [Times(f"read, other tenants' records: {name}", found) for name, found in timings.wall.items()]
    return Measured([Line(name, against.p50, BOUND, note=against.note)], times)
