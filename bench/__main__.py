"""`python -m bench`: build the stores, measure, and print the account.

A hundred thousand records by default, a million with --large; the latter are kept in the user's cache and
used again as long as schema, policies and records stay what they are.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from bench import (
    checks,
    grow,
    interfere,
    jsonl,
    memory,
    opa,
    postgres,
    read,
    replay,
    startup,
    telemetry,
    turn,
    write,
)
from bench.build import Bench, Scale, build, copied, grown
from bench.cache import CHECKOUT, kept_folder
from bench.data import Corpus
from bench.report import Line, Measured, Times, bounds_table, keep, machine, times_table

PAGE = Path("docs/reference/performance.md")


SCALES = {
    "bench": Scale(records=100_000, added=100_000, naive_bound=0.6, rounds=600, seconds_max=15),
    "bench-large": Scale(records=1_000_000, added=1_000_000, naive_bound=0.06, rounds=600, seconds_max=120),
}
BULK_RECORDS = 100_000
TEMPORARY_RECORDS_MAX = 100_000  # more are built once and kept
HELD_RECORDS_MAX = 100_000  # in a store that holds all of them in memory


_METHOD = """\
Contenders take turns within a round, in random order; every round puts the same item to each of them.
Governed: `GovernedMemory` over SQLite as shipped, value objects included, log on, no OpenTelemetry SDK.
N: a table with an index on (tenant, class, trust, created_at) and FTS5, filters joined in SQL, WAL, FULL.
L: a postings table per tenant, ranked by matching terms, and nothing else.
All three hold the same records, and must find the same ones in a sample of queries.
100 tenants of Zipf sizes, ages over two years, a quarter of the texts Chinese; limit 5.
"""


@dataclass
class Account:
    """What was measured so far."""

    lines: list[Line] = field(default_factory=list)
    times: list[Times] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def take(self, what: str, part: Callable[[], Measured]) -> None:
        """Measure one part and say on standard error how long it took."""
        begun = monotonic()
        measured = part()
        self.lines += measured.lines
        self.times += measured.times
        self.skipped += measured.skipped
        print(f"{what}: {monotonic() - begun:.0f} s", file=sys.stderr, flush=True)


def main() -> int:
    """Run what the arguments say; 1 if a bound was missed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--large", action="store_true", help="a million records")
    parser.add_argument("--keep", action="store_true", help=f"write the account into {PAGE}")
    parser.add_argument("--records", type=int, help="a trial with another number; bounds then mean little")
    arguments = parser.parse_args()
    name = "bench-large" if arguments.large else "bench"
    scale = SCALES[name]
    if arguments.records:
        scale = replace(scale, records=arguments.records, added=min(scale.added, arguments.records))
    begun = monotonic()
    account = Account()
    with _folders(name, scale) as (bench, scratch):
        _measure(account, bench, scratch, scale)
    text = _text(name, account, monotonic() - begun)
    print(text)
    if arguments.keep:
        keep(CHECKOUT / PAGE, name, text)
    return 0 if all(line.met for line in account.lines) else 1


@contextmanager
def _folders(name: str, scale: Scale) -> Iterator[tuple[Bench, Path]]:
    """Give a bench and a folder for what is thrown away."""
    # Large copies would not fit where temporary folders lie in memory.
    parent = None if scale.records <= TEMPORARY_RECORDS_MAX else kept_folder(scale.records)
    with TemporaryDirectory(prefix=f"{name}-", dir=parent) as scratch:
        yield Bench(parent or Path(scratch), Corpus(scale.records)), Path(scratch)


def _measure(account: Account, bench: Bench, scratch: Path, scale: Scale) -> None:
    corpus = bench.corpus
    account.take("schema checks", lambda: checks.measure_schema(rounds=60))
    account.take("batched decisions", lambda: checks.measure_batch(rounds=10))
    account.take("engines", lambda: opa.measure(rounds=300, thread_rounds=15))
    account.take("replay", lambda: replay.measure(scratch))
    account.take("PostgreSQL", lambda: postgres.measure(scratch, rounds=300))
    account.take("turns", lambda: turn.measure(scratch, rounds=200))
    account.take("starts", lambda: startup.measure(rounds=15))
    if not bench.ready:
        account.take("building", lambda: build(bench))
    account.take("reads", lambda: read.measure(bench, scale))
    held = Corpus(min(scale.records, HELD_RECORDS_MAX))
    account.take("files of JSON lines", lambda: jsonl.measure(scratch, held, rounds=200))
    # What follows writes, and a kept build stays as it is.
    work, bare, alone = (scratch / name for name in ("work.db", "bare.db", "alone.db"))
    copied(bench.governed, work)
    account.take("memory", lambda: memory.measure(work, corpus))
    account.take("writes", lambda: write.measure_single(work, corpus, rounds=400, bare=bare, alone=alone))
    alone.unlink()
    loaded = min(BULK_RECORDS, scale.added)
    account.take("bulk load", lambda: write.measure_bulk(work, _others(loaded), bare=bare))
    after = work if scale.added == loaded else grown(bench, _others(scale.added))
    account.take("other tenants", lambda: grow.measure(bench, after, scale))
    account.take("beside a writer", lambda: interfere.measure(work, corpus, reads=600))
    account.take("telemetry", lambda: telemetry.measure(work, corpus, scratch))


def _others(records: int) -> Corpus:
    """Return records of tenants that nobody asks about, in full batches."""
    return Corpus(records, tenants=records // 2_000, prefix="other", zipf=False)


def _text(name: str, account: Account, seconds: float) -> str:
    missed = [line for line in account.lines if not line.met]
    bounded = [line for line in account.lines if line.bound is not None]
    return "\n".join(
        (
            f"## `make {name}`",
            "",
            f"{machine()}; {seconds:.0f} s.",
            f"{len(bounded) - len(missed)} of {len(bounded)} bounds are met.",
            *(f"Not measured here: {what}." for what in account.skipped),
            "",
            _METHOD,
            bounds_table(account.lines),
            times_table(account.times),
        )
    )


if __name__ == "__main__":
    sys.exit(main())
