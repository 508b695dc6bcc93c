"""`python -m bench.peers`: governed memory, N and each peer on the same records, in turns."""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from bench.build import Bench, build
from bench.cache import CHECKOUT
from bench.data import Corpus, Question, candidate, questions
from bench.governed import Reader, opened, writer_of
from bench.naive import Naive
from bench.peers.environments import PEERS, PeerProcess
from bench.ratios import Timings, Took, interleaved
from bench.report import Line, Times, bounds_table, keep, machine, times_table
from bench.rows import Row, class_limits
from bench.write import new_records

RECORDS = 10_000
READS = 150
WRITES = 200
LIMIT = 5
_BATCH = 1_000
_WARM_UP = 10

_NOTE = """\
Not like for like: N and governed memory return what holds a term of the query, the peers rank all eligible
records by a deterministic embedding of words and pairs of ideographs, so they return more. They decide
nothing, check no schema and keep no log of decisions.
"""

Contender = Callable[[Any], object]


def main() -> int:
    """Compare, and print the account."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="write the account into the reference page")
    arguments = parser.parse_args()
    begun = monotonic()
    with TemporaryDirectory(prefix="bench-peers-") as folder:
        bench = Bench(Path(folder), Corpus(RECORDS))
        build(bench)
        lines, times = _compare(bench)
    text = "\n".join(
        (
            "## `make bench-peers`",
            "",
            f"{machine()}; {RECORDS:,} records; {monotonic() - begun:.0f} s.",
            *(f"{peer.name}: {', '.join(peer.packages)}." for peer in PEERS),
            "",
            _NOTE,
            bounds_table(lines),
            times_table(times),
        )
    )
    print(text)
    if arguments.keep:
        keep(CHECKOUT / "docs" / "reference" / "performance.md", "bench-peers", text)
    return 0


def _compare(bench: Bench) -> tuple[list[Line], list[Times]]:
    naive = bench.naive()
    peers = {peer.name: PeerProcess(peer, bench.path(peer.script)) for peer in PEERS}
    try:
        lines, times = _loaded(naive, peers)
        with opened(bench.governed) as memory:
            reader = Reader(memory)
            asked = questions(bench.corpus, READS + _WARM_UP, salt="peers")
            contenders: dict[str, Contender] = {
                "governed": lambda one: reader.read(one),
                "N": lambda one: naive.read(one),
                **{name: _reading(peer, bench) for name, peer in peers.items()},
            }
            read = interleaved(contenders, asked, seed="peers", warm_up=_WARM_UP)
            parts = new_records(bench.corpus, WRITES + _WARM_UP)
            records = [candidate(part, 0) for part in parts]
            contenders = {
                "governed": lambda one: memory.write(one, caller=writer_of(one.tenant_id)),
                "N": lambda one: naive.add([_row(one)]),
                **{name: _writing(peer) for name, peer in peers.items()},
            }
            written = interleaved(contenders, records, seed="peers", warm_up=_WARM_UP)
    finally:
        for peer in peers.values():
            peer.close()
        naive.close()
    for what, timings in (("read", read), ("durable write", written)):
        lines += _lines(what, timings)
        times += [Times(f"{what}: {name}", found) for name, found in timings.wall.items()]
    return lines, times


def _loaded(naive: Naive, peers: Mapping[str, PeerProcess]) -> tuple[list[Line], list[Times]]:
    """Give every peer the records that N holds, in batches."""
    rows = [Row(*row[1:])._asdict() for row in naive.every()]
    times = []
    for name, peer in peers.items():
        print(f"loading {len(rows):,} records into {name}", file=sys.stderr, flush=True)
        took = [
            peer.took({"do": "load", "with": rows[start : start + _BATCH]}).wall
            for start in range(0, len(rows), _BATCH)
        ]
        times.append(Times(f"load of {_BATCH:,}: {name}", took))
    return [], times


def _reading(peer: PeerProcess, bench: Bench) -> Contender:
    def read(question: Question) -> Took:
        limits = [limit._asdict() for limit in class_limits(question, bench.settings)]
        asked = {"tenant_id": question.tenant_id, "text": question.text, "limits": limits, "limit": LIMIT}
        return peer.took({"do": "read", "with": asked})

    return read


def _writing(peer: PeerProcess) -> Contender:
    return lambda one: peer.took({"do": "write", "with": _row(one)._asdict()})


def _row(one: Any) -> Row:
    fields = (one.tenant_id, one.memory_class, one.kind, one.key, one.content, one.source)
    return Row(
        f"mem-{zlib.crc32(one.content.encode()):024x}", *fields, one.confidence, one.provenance, 2, 0, None
    )


def _lines(what: str, timings: Timings) -> list[Line]:
    lines = []
    for name in timings.wall:
        if name in ("governed", "N"):
            continue
        for other in ("governed", "N"):
            against = timings.ratio(name, other)
            lines.append(Line(f"{what}: p50, {name} / {other}", against.p50, note=against.note))
    return lines


if __name__ == "__main__":
    sys.exit(main())
