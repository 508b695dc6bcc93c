"""`python -m bench.recall`: how well and how quickly each ranker recalls, on a labelled set.

The set was written for this comparison, by hand: 50 conversations, and for each of them queries in its own
words, in a few of them, in other words, misspelt, and in the other language. It is small and it is ours, so
it tells rankers apart and tells nothing of anybody's own conversations.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter_ns
from typing import NamedTuple

from agent_runtime_ref import Caller, GovernedMemory
from agent_runtime_ref.clock import microseconds
from agent_runtime_ref.contracts.stored import MemoryKind, MemorySource, StoredMemory, user_scope_of
from agent_runtime_ref.errors import UsageError
from agent_runtime_ref.recall import HybridRanker, Ranker, RecallEngine, packaged_embedder
from agent_runtime_ref.testing import FrozenClock
from bench.cache import CHECKOUT
from bench.ratios import p50, p95
from bench.report import keep, machine

SET = CHECKOUT / "tests" / "corpora" / "recall" / "labelled.tsv"
PAGE = Path("docs/reference/recall.md")
AT = 5
USER = "user-42"
NOW = datetime(2026, 8, 2, 12, tzinfo=UTC)
KINDS = ("exact", "partial", "paraphrase", "typo", "cross", "several")
LANGUAGES = ("en", "zh")


class Query(NamedTuple):
    """A text, and the records that answer it."""

    kind: str
    language: str
    relevant: frozenset[str]
    text: str


@dataclass(frozen=True, slots=True)
class Judged:
    """One query as one ranker answered it."""

    query: Query
    ndcg: float
    recall: float


class Held:
    """The records of the set."""

    def __init__(self, records: Sequence[StoredMemory]) -> None:
        self.user_scope = user_scope_of(USER)
        self._records = tuple(records)

    def read_all(self) -> Sequence[StoredMemory]:
        """Return all of them."""
        return self._records


def labelled(path: Path = SET) -> tuple[list[StoredMemory], list[Query]]:
    """Return records and queries of a labelled set; every query names records that there are."""
    records: list[StoredMemory] = []
    queries: list[Query] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        what, *cells = line.split("\t")
        if what == "R":
            records.append(_record(*cells))
        else:
            kind, language, relevant, text = cells
            queries.append(Query(kind, language, frozenset(relevant.split(",")), text))
    known = {record.memory_id for record in records}
    for query in queries:
        assert query.relevant <= known, query
        assert (query.kind in KINDS, query.language in LANGUAGES) == (True, True), query
    return records, queries


def _record(memory_id: str, language: str, days: str, summary: str, content: str) -> StoredMemory:
    happened = (NOW - timedelta(days=int(days))).isoformat()
    source = MemorySource(f"transcript-{memory_id}", "conversation_transcript", language, happened)
    return StoredMemory(
        memory_id, user_scope_of(USER), MemoryKind.CONVERSATION, content, summary, source, happened
    )


def rankers() -> tuple[dict[str, Ranker | None], str | None]:
    """Return the rankers by name, and what cannot be measured here and why."""
    found: dict[str, Ranker | None] = {"lexical": None, "BM25": HybridRanker()}
    try:
        found["BM25 + embeddings"] = HybridRanker(packaged_embedder())
    except UsageError as error:
        return found, f"BM25 + embeddings: not measured, {error}"
    return found, None


def judged(ranker: Ranker | None, records: Sequence[StoredMemory], queries: Sequence[Query]) -> list[Judged]:
    """Return how well a ranker answers each query."""
    held = Held(records)
    engine = RecallEngine(held) if ranker is None else RecallEngine(held, find=ranker.find, rank=ranker.rank)
    answers = []
    for query in queries:
        ids = [hit.memory_id for hit in engine.recall(query.text, AT, as_of=NOW).hits]
        found = [memory_id in query.relevant for memory_id in ids]
        answers.append(
            Judged(query, ndcg(found, len(query.relevant)), sum(found) / min(len(query.relevant), AT))
        )
    return answers


def ndcg(found: Sequence[bool], relevant: int) -> float:
    """Return the discounted gain of an answer, in parts of the best that there could be."""
    gain = sum(1 / math.log2(place + 2) for place, hit in enumerate(found) if hit)
    best = sum(1 / math.log2(place + 2) for place in range(min(relevant, AT)))
    return gain / best


def timed(ranker: Ranker | None, records: Sequence[StoredMemory], queries: Sequence[Query]) -> list[int]:
    """Return the nanoseconds of each query through the gates; records have been seen once by then."""
    caller = Caller("bench", USER)
    with GovernedMemory.open("memory:", clock=FrozenClock(microseconds(NOW))) as memory:
        memory.load_stored(records, caller=caller)
        memory.recall(queries[0].text, caller=caller, ranker=ranker)
        order = list(queries)
        random.Random(0).shuffle(order)
        took = []
        for query in order:
            begun = perf_counter_ns()
            memory.recall(query.text, caller=caller, ranker=ranker)
            took.append(perf_counter_ns() - begun)
    return took


def account(records: Sequence[StoredMemory], queries: Sequence[Query]) -> str:
    """Return the comparison as Markdown."""
    found, missing = rankers()
    answers = {name: judged(ranker, records, queries) for name, ranker in found.items()}
    rows = [_row(f"all {len(queries)}", answers, lambda query: True)]
    for language, title in (("en", "English"), ("zh", "Chinese")):
        rows.append(_row(title, answers, lambda query, language=language: query.language == language))
    for kind in KINDS:
        rows.append(_row(kind, answers, lambda query, kind=kind: query.kind == kind))
    head = ["queries", "count", *(f"{name}: nDCG@{AT}, recall@{AT}" for name in found)]
    # Made anew, so that no vector of a query is held from the first part.
    times = {name: timed(ranker, records, queries) for name, ranker in rankers()[0].items()}
    speed = [[name, f"{p50(took) / 1e6:.2f} ms", f"{p95(took) / 1e6:.2f} ms"] for name, took in times.items()]
    parts = [
        f"{machine()}; {len(records)} records.",
        _table(head, rows),
        "Through the gates, store in memory, vectors of the records made before:",
        _table(["ranker", "p50", "p95"], speed),
    ]
    if missing is not None:
        parts.append(f"{missing}; neither English nor Chinese.")
    return "\n\n".join(parts)


def _row(name: str, answers: dict[str, list[Judged]], wanted: object) -> list[str]:
    cells = [name, ""]
    for judged_by_one in answers.values():
        chosen = [one for one in judged_by_one if wanted(one.query)]  # type: ignore[operator]
        cells[1] = str(len(chosen))
        ndcg_mean = math.fsum(one.ndcg for one in chosen) / len(chosen)
        recall_mean = math.fsum(one.recall for one in chosen) / len(chosen)
        cells.append(f"{ndcg_mean:.3f}, {recall_mean:.3f}")
    return cells


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> int:
    """Print the comparison, and keep it where that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.recall", description=__doc__)
    parser.add_argument("--keep", action="store_true", help=f"write the account into {PAGE}")
    arguments = parser.parse_args()
    text = account(*labelled())
    print(text)
    if arguments.keep:
        keep(CHECKOUT / PAGE, "bench-recall", text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
