"""Reads: the governed one against N and L, in units of a bare decision where that is the bound."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.policy.embedded import EmbeddedEngine
from agent_runtime_ref.resources import policies_path
from bench.build import Bench, Scale
from bench.data import Question, questions
from bench.governed import READ, Reader, listening, opened
from bench.ratios import Timings, interleaved
from bench.report import Line, Measured, Times

DECISIONS_MAX = 5.0
_WARM_UP = 20
_CHECKED = 60
_CHECK_LIMIT = 100  # the most that a query may ask for

ROWS = {
    "rare": "three rare terms",
    "common": "two rare terms and one of the five commonest words",
    "none": "no text",
}


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question, and the document that the engine is asked about it."""

    question: Question
    document: str


def measure(bench: Bench, scale: Scale) -> Measured:
    """Return the lines and times of all three rows."""
    check_counts(bench)
    lines: list[Line] = []
    times: list[Times] = []
    for row, name in ROWS.items():
        count = scale.rounds if row == "rare" else scale.rounds // 3
        timings = _row(bench, row, count, scale.seconds_max)
        lines += _lines(row, name, timings, scale.naive_bound)
        times += [Times(f"read, {name}: {who}", found) for who, found in sorted(timings.wall.items())]
    return Measured(lines, times)


def check_counts(bench: Bench) -> None:
    """Compare what all three answer on a sample.

    Raises:
        SystemExit: they do not answer the same; their times say nothing about each other.
    """
    naive, limit = bench.naive(), bench.limit()
    with opened(bench.governed) as memory:
        reader = Reader(memory)
        for row in ROWS:
            for question in questions(bench.corpus, _CHECKED, salt="check", row=row):
                result = reader.read(question, _CHECK_LIMIT)
                found = {"governed": {hit.record.memory_id for hit in result.hits}}
                found["N"] = {row[1] for row in naive.read(question, _CHECK_LIMIT)}
                if question.text is not None:
                    found["L"] = {row[1] for row in limit.read(question, _CHECK_LIMIT)}
                _compare(question, found)
    naive.close()
    limit.close()


def _compare(question: Question, found: dict[str, set[Any]]) -> None:
    counts = {who: len(ids) for who, ids in found.items()}
    # Beyond the limit each takes the best by an order of its own.
    cut = max(counts.values()) >= _CHECK_LIMIT
    if len(set(counts.values())) > 1 or (not cut and len(set(map(frozenset, found.values()))) > 1):
        raise SystemExit(f"the contenders do not find the same records: {counts} for {question}")


def documents(bench: Bench, asked: Sequence[Question]) -> list[str]:
    """Return the JSON text that the read gate puts to the engine for each question."""
    memory, engine = listening(f"sqlite:{bench.governed}")
    found = []
    with memory:
        reader = Reader(memory)
        for question in asked:
            engine.heard.clear()
            reader.read(question)
            found.append(engine.heard[0][1])
            assert json.loads(found[-1])["candidates"] == []
    return found


def bare_decision() -> Callable[[str], object]:
    """Return the engine by itself: a document as JSON text in, the read decision out."""
    return partial(EmbeddedEngine(load_bundle(policies_path())).evaluate, READ)


def _row(bench: Bench, row: str, rounds: int, seconds_max: float) -> Timings:
    asked = questions(bench.corpus, rounds + _WARM_UP, salt="read", row=row)
    items = [_Asked(*pair) for pair in zip(asked, documents(bench, asked), strict=True)]
    naive, limit, decide = bench.naive(), bench.limit(), bare_decision()
    with opened(bench.governed) as memory:
        reader = Reader(memory)
        contenders: dict[str, Callable[[_Asked], object]] = {
            "governed": lambda one: reader.read(one.question),
            "N": lambda one: naive.read(one.question),
            "decision": lambda one: decide(one.document),
        }
        if row != "none":
            contenders["L"] = lambda one: limit.read(one.question)
        timings = interleaved(contenders, items, seed=row, warm_up=_WARM_UP, seconds_max=seconds_max)
    naive.close()
    limit.close()
    return timings


def _lines(row: str, name: str, timings: Timings, naive_bound: float) -> list[Line]:
    bounded = row == "rare"
    against = timings.ratio("governed", "N")
    lines = [
        Line(
            f"read, {name}: p50, governed / N",
            against.p50,
            naive_bound if bounded else None,
            note=against.note,
        )
    ]
    if "L" in timings.wall:
        units = timings.surplus("governed", "L", "decision")
        lines.append(
            Line(
                f"read, {name}: (governed - L) / bare decision",
                units,
                DECISIONS_MAX if bounded else None,
                unit="decisions",
            )
        )
    return lines
