"""How many recorded decisions a core replays in a second, from a sealed log file.

The lines are real ones, of governed reads: some callers ask the same questions again and again, as agents do,
each time at another instant. What a log costs in which nobody asks anything twice is told beside it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import Any

from agent_runtime_ref import Caller, GovernedMemory, MemoryCandidate, RetrievalQuery
from agent_runtime_ref.clock import SystemClock, timestamp
from agent_runtime_ref.policy import load_bundle
from agent_runtime_ref.replay.log import Span
from agent_runtime_ref.replay.session import replay_of_file
from agent_runtime_ref.telemetry.chain import GENESIS, seal_all
from agent_runtime_ref.testing import FrozenClock
from bench.report import Line, Measured

DECISIONS_PER_SECOND = 3_000
VERDICTS_PER_SECOND = 40_000
CALLERS = 50
RECORDS = 120
_SECOND_NS = 1_000_000_000


def measure(scratch: Path, *, decisions: int = 15_000) -> Measured:
    """Return the rates for lines of five records, for lines of sixty, and where every question is new."""
    small, large = read_lines(limit=5), read_lines(limit=60)
    told = ("decisions", "record verdicts")
    return Measured(
        [
            _line("five records a line", scratch, repeated(small, decisions), DECISIONS_PER_SECOND, told[0]),
            _line("sixty a line", scratch, repeated(large, decisions // 5), VERDICTS_PER_SECOND, told[1]),
            _line(
                "five a line, no question twice",
                scratch,
                repeated(small, 1_500, distinct=True),
                None,
                told[0],
            ),
        ]
    )


def write_log(path: Path, bodies: Iterable[str]) -> None:
    """Write `bodies` as a sealed log."""
    with path.open("w", encoding="utf-8") as file:
        for _, line in seal_all(bodies, seq=0, prev_hash=GENESIS):
            file.write(f"{line}\n")


def read_lines(*, limit: int) -> list[dict[str, Any]]:
    """Return the decision lines of reads by several callers with several questions."""
    with GovernedMemory.open("memory:", clock=FrozenClock()) as memory:
        writer = Caller(tenant_id="tenant-bench", principal_id="loader")
        memory.write_many((_fact(number) for number in range(RECORDS)), caller=writer)
        for number in range(CALLERS):
            who = Caller(tenant_id="tenant-bench", principal_id=f"user-{number}")
            for filters in ({}, {"trust_min": "medium"}, {"max_age_days": 90}):
                memory.read(_query(who, limit, filters), caller=who)
        lines = [json.loads(line) for line in memory.log_lines(read=True)]
    return [line for line in lines if line["type"] == "decision"]


def repeated(lines: Sequence[dict[str, Any]], count: int, *, distinct: bool = False) -> Iterator[str]:
    """Yield `count` bodies of lines: those in `lines` again and again, a second later each time."""
    for number, line in enumerate(itertools.islice(itertools.cycle(lines), count)):
        asked = {**line["input"], "now_ns": line["input"]["now_ns"] + number * _SECOND_NS}
        if distinct:
            names = {"principal_id": f"user-{number}"}
            asked["caller"], asked["query"] = {**asked["caller"], **names}, {**asked["query"], **names}
        body = {name: value for name, value in line.items() if name not in ("seq", "prev_hash", "hash")}
        body |= {"decision_id": f"dec-{number:024x}", "timestamp": timestamp(asked["now_ns"] // 1_000)}
        yield json.dumps({**body, "input": asked}, separators=(",", ":"))


def _line(what: str, scratch: Path, bodies: Iterable[str], rate: int | None, told: str) -> Line:
    """Return the seconds of processor time for as many as a second is to be enough for."""
    path = scratch / "replay.jsonl"
    write_log(path, bodies)
    bundle = load_bundle()
    begun = process_time()
    with replay_of_file(bundle, path, span=Span(), clock=SystemClock(), progress=lambda _: None) as report:
        seconds, tally = process_time() - begun, report.tally
        assert tally.unchanged == tally.decisions, "the same policies change nothing"
    path.unlink()
    count = tally.decisions if told == "decisions" else tally.coverage.considered_logged
    asked, bound = (DECISIONS_PER_SECOND, None) if rate is None else (rate, 1.0)
    note = f"{count / seconds:,.0f} a second"
    return Line(f"replay, {what}: {asked:,} {told}", asked * seconds / count, bound, "s", note)


def _fact(number: int) -> MemoryCandidate:
    return MemoryCandidate(
        "tenant-bench",
        "long_term",
        "validated_fact",
        f"Fact {number} about the support queue",
        "trusted_service",
        0.9,
        "validated_service_rule",
    )


def _query(who: Caller, limit: int, filters: dict[str, Any]) -> RetrievalQuery:
    return RetrievalQuery.from_document(
        {
            "kind": "retrieval_query",
            "trace_id": "trace-bench",
            "session_id": "session-bench",
            "tenant_id": who.tenant_id,
            "principal_id": who.principal_id,
            "purpose": "answer_generation",
            "allowed_classes": ["long_term", "profile", "short_term"],
            "filters": filters,
            "limit": limit,
        }
    )
