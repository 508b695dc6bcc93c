"""Time ratios that a busy machine leaves alone: contenders take turns within a round, in random order.

A round is one item put to every contender, so that what disturbs one disturbs its neighbours as well.
Absolute times are only printed; bounds are on ratios. CPU time of the thread is taken beside wall time: where
the two ratios differ much, the machine was too busy for either.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns, thread_time_ns
from typing import NamedTuple, TypeVar

ROUNDS_MIN = 30

Item = TypeVar("Item")
Nanoseconds = dict[str, list[int]]


class Took(NamedTuple):
    """Nanoseconds of one call; a contender in another process returns them, others are timed from outside."""

    wall: int
    cpu: int


@dataclass(frozen=True, slots=True)
class Ratio:
    """One contender's times over another's."""

    p50: float
    p95: float
    rounds: float  # the median of the ratios of all rounds
    cpu: float  # of the medians of CPU time

    @property
    def note(self) -> str:
        """Return what stands beside the ratio of the medians."""
        return f"p95 {self.p95:.2f}×, median of rounds {self.rounds:.2f}×, CPU time {self.cpu:.2f}×"


@dataclass(frozen=True, slots=True)
class Timings:
    """The nanoseconds of every contender, by round."""

    wall: Nanoseconds
    cpu: Nanoseconds

    def ratio(self, one: str, other: str) -> Ratio:
        """Return how many times as long `one` took as `other`."""
        these, those = self.wall[one], self.wall[other]
        return Ratio(
            p50=p50(these) / p50(those),
            p95=p95(these) / p95(those),
            rounds=median(this / that for this, that in zip(these, those, strict=True)),
            cpu=p50(self.cpu[one]) / max(1, p50(self.cpu[other])),
        )

    def surplus(self, one: str, other: str, unit: str) -> float:
        """Return the median over rounds of how many times `unit` one took longer than `other`."""
        rounds = zip(self.wall[one], self.wall[other], self.wall[unit], strict=True)
        return median((this - that) / per for this, that, per in rounds)


def empty(names: Iterable[str]) -> Timings:
    """Return timings without a round."""
    names = list(names)
    return Timings({name: [] for name in names}, {name: [] for name in names})


def interleaved(
    contenders: Mapping[str, Callable[[Item], object]],
    items: Iterable[Item],
    *,
    seed: str,
    warm_up: int = 0,
    seconds_max: float | None = None,
) -> Timings:
    """Return what every contender took for every item.

    The first `warm_up` rounds are not kept. After `seconds_max` no new round begins, once there are enough.
    """
    rng = random.Random(seed)
    order = list(contenders)
    timings = empty(order)
    gc.collect()
    begun = perf_counter_ns()
    for number, item in enumerate(items):
        late = seconds_max is not None and perf_counter_ns() - begun > seconds_max * 1e9
        if late and number >= warm_up + ROUNDS_MIN:
            break
        rng.shuffle(order)
        for name in order:
            took = _timed(contenders[name], item)
            if number >= warm_up:
                timings.wall[name].append(took.wall)
                timings.cpu[name].append(took.cpu)
    return timings


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the smallest value that at least `percent` of a hundred values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def p50(values: Sequence[float]) -> float:
    """Return the median, the lower of two."""
    return percentile(values, 50)


def p95(values: Sequence[float]) -> float:
    """Return the 95th percentile."""
    return percentile(values, 95)


def _timed(work: Callable[[Item], object], item: Item) -> Took:
    cpu = thread_time_ns()
    wall = perf_counter_ns()
    found = work(item)
    took = Took(perf_counter_ns() - wall, thread_time_ns() - cpu)
    return found if isinstance(found, Took) else took
