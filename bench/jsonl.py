"""Files of JSON lines: appends against a bare one that is on disk, and recall against SQLite's.

A bare append is one line of the same length in one write and one `fsync`. A governed one waits for the disk
twice, for its log lines and then for its record, beside the decision itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from agent_runtime_ref import Caller, GovernedMemory, MemoryCandidate
from agent_runtime_ref.clock import RandomIds, instant
from agent_runtime_ref.contracts import Origin
from agent_runtime_ref.recall import RecallResult
from agent_runtime_ref.remote_memory import MemoryKind, MemorySource, RemoteMemoryStore
from agent_runtime_ref.remote_memory.lines import line_of
from agent_runtime_ref.stores.base import Change, WriteBatch
from agent_runtime_ref.stores.registry import open_store
from bench.build import told
from bench.data import Corpus, Question, candidate, candidates, questions
from bench.direct import models
from bench.governed import Clock, writer_of
from bench.ratios import interleaved
from bench.report import Line, Measured, Times
from bench.write import new_records

REMOTE_BOUND = 1.3
GOVERNED_BOUND = 2.5
RECALL_BOUND = 1.5
_WARM_UP = 20
_USER = "user-bench"
_SOURCE = MemorySource("src-1", "conversation", "A conversation", "2026-04-07T12:00:00Z")


class _Bare:
    """Appends lines to a file and waits for the disk."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def append(self, line: bytes) -> None:
        """Add one line."""
        os.write(self._descriptor, line)
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def measure(folder: Path, corpus: Corpus, *, rounds: int) -> Measured:
    """Return all numbers, of stores that are made below `folder` and removed."""
    with TemporaryDirectory(prefix="jsonl-", dir=folder) as own:
        place = Path(own)
        paths = {"jsonl": place / "memory.jsonl", "sqlite": place / "memory.db"}
        _filled(paths, corpus)
        parts = (
            _remote(place / "remote.jsonl", corpus, rounds),
            _recall(paths, corpus, rounds),
            _governed(paths["jsonl"], place, corpus, rounds),
        )
    lines = [line for part in parts for line in part.lines]
    return Measured(lines, [times for part in parts for times in part.times])


def _remote(path: Path, corpus: Corpus, rounds: int) -> Measured:
    """Append to a user's file that holds as many records as the corpus has."""
    store = RemoteMemoryStore(path)
    words = [candidate(part, 0).content for part in new_records(corpus, 200)]
    first = store.append(kind=MemoryKind.CONVERSATION, content=words[0], summary="it", source=_SOURCE)
    line = line_of(first)
    with path.open("ab") as file:
        for number in range(corpus.records - 1):
            file.write(line.replace(first.memory_id.encode(), b"memory-%024d" % number))
    store.read_all()
    bare = _Bare(path.with_name("bare.jsonl"))
    contenders: dict[str, Callable[[int], object]] = {
        "store": lambda number: store.append(
            kind=MemoryKind.CONVERSATION, content=words[number % 200], summary="it", source=_SOURCE
        ),
        "bare": lambda number: bare.append(line),
    }
    timings = interleaved(contenders, range(rounds + _WARM_UP), seed="remote append", warm_up=_WARM_UP)
    bare.close()
    against = timings.ratio("store", "bare")
    name = f"RemoteMemoryStore.append at {corpus.records:,} records: p50, store / bare append with fsync"
    return Measured(
        [Line(name, against.p50, REMOTE_BOUND, note=against.note)],
        [Times(f"remote append: {who}", found) for who, found in timings.wall.items()],
    )


def _governed(path: Path, folder: Path, corpus: Corpus, rounds: int) -> Measured:
    """Write through the gate into a store that holds the corpus."""
    items = [candidate(part, 0) for part in new_records(corpus, rounds + _WARM_UP)]
    bare = _Bare(folder / "bare-governed.jsonl")
    with GovernedMemory.open(f"jsonl:{path}", clock=Clock()) as memory:
        contenders: dict[str, Callable[[MemoryCandidate], object]] = {
            "governed": lambda one: memory.write(one, caller=writer_of(one.tenant_id)),
            "bare": lambda one: bare.append(b"x" * 600 + b"\n"),
        }
        timings = interleaved(contenders, items, seed="governed append", warm_up=_WARM_UP)
    bare.close()
    against = timings.ratio("governed", "bare")
    name = f"governed append on jsonl at {corpus.records:,} records: p50, governed / bare append with fsync"
    return Measured(
        [Line(name, against.p50, GOVERNED_BOUND, note=against.note)],
        [Times(f"jsonl append: {who}", found) for who, found in timings.wall.items()],
    )


def _recall(paths: Mapping[str, Path], corpus: Corpus, rounds: int) -> Measured:
    """Recall by three rare terms, and by two with a common word, from both stores of the same records."""
    lines, times = [], []
    with ExitStack() as stack:
        memories = {
            who: stack.enter_context(GovernedMemory.open(f"{who}:{path}", clock=Clock()))
            for who, path in paths.items()
        }
        contenders: dict[str, Callable[[Question], object]] = {
            who: partial(_recalled, memory) for who, memory in memories.items()
        }
        for row, name in (("rare", "three rare terms"), ("common", "a common word among them")):
            asked = questions(corpus, rounds + _WARM_UP, salt="jsonl", row=row)
            _compare(memories, asked[:_WARM_UP])
            timings = interleaved(contenders, asked, seed=f"jsonl {row}", warm_up=_WARM_UP)
            against = timings.ratio("jsonl", "sqlite")
            title = f"recall over {corpus.records:,} records, {name}: p50, jsonl / sqlite"
            lines.append(Line(title, against.p50, RECALL_BOUND, note=against.note))
            times += [Times(f"recall, {name}: {who}", found) for who, found in timings.wall.items()]
    return Measured(lines, times)


def _recalled(memory: GovernedMemory, question: Question) -> RecallResult:
    caller = Caller(question.tenant_id, _USER, session_id="session-bench", trace_id="trace-bench")
    return memory.recall(question.text or "", caller=caller, purpose="answer_generation", limit=5)


def _compare(memories: Mapping[str, GovernedMemory], asked: Sequence[Question]) -> None:
    """Compare what both answer.

    Raises:
        SystemExit: they do not answer the same, or nothing; their times say nothing about each other.
    """
    hits = 0
    for question in asked:
        results = [_recalled(memory, question) for memory in memories.values()]
        found = [[(hit.memory_id, hit.score) for hit in result.hits] for result in results]
        counts = [(result.searched_records, result.candidate_records) for result in results]
        if found[0] != found[1] or counts[0] != counts[1]:
            raise SystemExit(f"the stores do not recall the same for {question}")
        hits += len(found[0])
    if hits < len(asked):
        raise SystemExit("hardly anything was recalled")


def _filled(paths: Mapping[str, Path], corpus: Corpus) -> None:
    """Put the texts of the corpus into both stores, as conversations of one user in each tenant."""
    stores = [open_store(f"{who}:{path}") for who, path in paths.items()]
    model = next(record for record, _ in models().values() if record.memory_class == "long_term")
    ids = RandomIds()
    for part in told(corpus.slices(), "keeping conversations"):
        created = instant(part.at_us)
        origin = Origin("transcript-1", "conversation", "A conversation", created)
        records = [
            replace(
                model,
                memory_id=ids.new("mem"),
                tenant_id=one.tenant_id,
                kind="conversation",
                content=one.content,
                summary="What was said",
                subject=_USER,
                origin=origin,
                created_at=created,
                expires_at=None,
            )
            for one in candidates(part)
        ]
        for store in stores:
            store.commit(WriteBatch([Change(record, exclusive=False) for record in records]))
    for store in stores:
        store.close()
