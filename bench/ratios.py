"""Time ratios that a busy machine leaves alone: contenders take turns within a round, in random order.

A round is one item put to every contender, so that what disturbs one disturbs its neighbours as well.
Absolute times are only printed; bounds are on ratios.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns
from typing import TypeVar

ROUNDS_MIN = 30

Item = TypeVar("Item")
Timings = dict[str, list[int]]


@dataclass(frozen=True, slots=True)
class Ratio:
    """One contender's times over another's: of medians, of 95th percentiles, and the median of all rounds."""

    p50: float
    p95: float
    rounds: float

    @property
    def note(self) -> str:
        """Return what stands beside the ratio of the medians."""
        return f"p95 {self.p95:.2f}×, median of rounds {self.rounds:.2f}×"


def interleaved(
    contenders: Mapping[str, Callable[[Item], object]],
    items: Iterable[Item],
    *,
    seed: str,
    warm_up: int = 0,
    seconds_max: float | None = None,
) -> Timings:
    """Return the nanoseconds of every contender, by round.

    The first `warm_up` rounds are not kept. After `seconds_max` no new round begins, once there are enough.
    """
    rng = random.Random(seed)
    order = list(contenders)
    timings: Timings = {name: [] for name in order}
    gc.collect()
    begun = perf_counter_ns()
    for number, item in enumerate(items):
        late = seconds_max is not None and perf_counter_ns() - begun > seconds_max * 1e9
        if late and number >= warm_up + ROUNDS_MIN:
            break
        rng.shuffle(order)
        for name in order:
            started = perf_counter_ns()
            contenders[name](item)
            elapsed = perf_counter_ns() - started
            if number >= warm_up:
                timings[name].append(elapsed)
    return timings


def timed(work: Callable[[], object]) -> int:
    """Return the nanoseconds that one call takes."""
    started = perf_counter_ns()
    work()
    return perf_counter_ns() - started


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


def ratio(these: Sequence[float], those: Sequence[float]) -> Ratio:
    """Return how many times as long `these` took as `those`, which are of the same rounds."""
    return Ratio(
        p50=p50(these) / p50(those),
        p95=p95(these) / p95(those),
        rounds=median(one / other for one, other in zip(these, those, strict=True)),
    )


def surplus(these: Sequence[float], those: Sequence[float], units: Sequence[float]) -> float:
    """Return the median over rounds of how many `units` longer `these` took than `those`."""
    return median((one - other) / unit for one, other, unit in zip(these, those, units, strict=True))
