"""The account of a run: Markdown tables, each bound with what was measured and whether it was met."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.ratios import p50, p95

_MARK = "<!-- bench: {} -->"


@dataclass(frozen=True, slots=True)
class Line:
    """One number; `bound` is the most it may be, None where it is only told."""

    name: str
    value: float
    bound: float | None = None
    unit: str = "x"
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether the bound holds; a number without one is never missed."""
        return self.bound is None or self.value <= self.bound

    def cells(self) -> tuple[str, ...]:
        """Return the line as the cells of its table."""
        bound = "" if self.bound is None else f"≤ {_number(self.bound, self.unit)}"
        met = "" if self.bound is None else ("yes" if self.met else "**no**")
        return self.name, _number(self.value, self.unit), bound, met, self.note


@dataclass(frozen=True, slots=True)
class Times:
    """How long something took, for the reader; no bound is on it."""

    name: str
    nanoseconds: Sequence[float]

    def cells(self) -> tuple[str, ...]:
        """Return the times as the cells of their table."""
        count = len(self.nanoseconds)
        return self.name, _duration(p50(self.nanoseconds)), _duration(p95(self.nanoseconds)), str(count)


@dataclass(frozen=True, slots=True)
class Measured:
    """What one part of a run found."""

    lines: Sequence[Line] = ()
    times: Sequence[Times] = ()
    skipped: Sequence[str] = ()  # what could not be measured here, each with its reason


def bounds_table(lines: Iterable[Line]) -> str:
    """Return the table of numbers and bounds."""
    return _table(("number", "measured", "bound", "met", "note"), [line.cells() for line in lines])


def times_table(times: Iterable[Times]) -> str:
    """Return the table of absolute times."""
    return _table(("what", "p50", "p95", "n"), [one.cells() for one in times])


def machine() -> str:
    """Return what the run stands on, without naming the machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {cores} cores {platform.machine()}, {platform.system()}, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    )


def keep(path: Path, section: str, text: str) -> None:
    """Replace one section of a page, between its marks; what is written by hand around it stays."""
    start, end = _MARK.format(section), _MARK.format(f"end of {section}")
    page = path.read_text(encoding="utf-8") if path.exists() else "# Performance\n"
    head, found, rest = page.partition(start)
    tail = rest.partition(end)[2] if found else "\n"
    if not found:
        head = head.rstrip("\n") + "\n\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{head}{start}\n\n{text.strip()}\n\n{end}{tail}", encoding="utf-8")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def _number(value: float, unit: str) -> str:
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 3
    text = f"{value:.{digits}f}"
    return f"{text} {unit}" if unit != "x" else f"{text}×"


def _duration(nanoseconds: float) -> str:
    if nanoseconds >= 1e9:
        return f"{nanoseconds / 1e9:.2f} s"
    return f"{nanoseconds / 1e6:.2f} ms" if nanoseconds >= 1e6 else f"{nanoseconds / 1e3:.1f} µs"
