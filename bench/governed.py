"""The governed memory as a user opens it, with a clock that the measurement sets."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from agent_runtime_ref import (
    Caller,
    GovernedMemory,
    MemoryCandidate,
    MemoryRecord,
    RetrievalQuery,
    RetrievalResult,
)
from agent_runtime_ref.clock import RandomIds
from agent_runtime_ref.enforcement.ruling import READ, WRITE
from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.policy.embedded import EmbeddedEngine
from agent_runtime_ref.resources import policies_path
from agent_runtime_ref.stores.registry import open_store
from bench.data import NOW_US, Question

__all__ = [
    "READ",
    "WRITE",
    "Clock",
    "Listening",
    "Reader",
    "admitted",
    "listening",
    "opened",
    "writer_of",
]


class Clock:
    """An instant that is set, and a counter that runs."""

    def __init__(self, now_us: int = NOW_US) -> None:
        self.set_us = now_us

    def now_us(self) -> int:
        """Microseconds since 1970."""
        return self.set_us

    def monotonic_ns(self) -> int:
        """Nanoseconds of the performance counter."""
        return time.perf_counter_ns()


class Listening:
    """An engine that keeps what it was asked, for measurements of the engine alone."""

    def __init__(self, engine: EmbeddedEngine) -> None:
        self.name = engine.name
        self.identity = engine.identity
        self.heard: list[tuple[str, str]] = []
        self._engine = engine

    def evaluate(self, entrypoint: str, document: str) -> dict[str, object]:
        """Keep the question and pass it on."""
        self.heard.append((entrypoint, document))
        return self._engine.evaluate(entrypoint, document)

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()


class Reader:
    """Reads as an application does: a query value and a caller for each call, and a trace id of its own."""

    def __init__(self, memory: GovernedMemory) -> None:
        self._memory = memory
        self._numbers = count(1)

    def read(self, question: Question, limit: int = 5) -> RetrievalResult:
        """Ask the read gate."""
        trace_id = f"trace-{next(self._numbers):08}"
        query = RetrievalQuery(
            trace_id,
            "session-bench",
            question.tenant_id,
            "reader",
            "answer_generation",
            question.classes,
            limit,
            trust_min=question.trust_min,
            max_age_days=question.max_age_days,
        )
        caller = Caller(question.tenant_id, "reader", session_id="session-bench", trace_id=trace_id)
        return self._memory.read(query, caller=caller, text=question.text)


def opened(path: Path, clock: Clock | None = None) -> GovernedMemory:
    """Return governed memory over a SQLite file, as shipped."""
    return GovernedMemory.open(f"sqlite:{path}", clock=clock or Clock())


def listening(address: str) -> tuple[GovernedMemory, Listening]:
    """Return governed memory over a store, and the engine that keeps what it is asked."""
    bundle = load_bundle(policies_path())
    engine = Listening(EmbeddedEngine(bundle))
    memory = GovernedMemory(
        store=open_store(address, log=None), engine=engine, bundle=bundle, clock=Clock(), ids=RandomIds()
    )
    return memory, engine


def writer_of(tenant_id: str) -> Caller:
    """Return the caller on whose behalf a tenant's records are kept."""
    return Caller(tenant_id, "writer", session_id="session-bench")


def admitted(
    memory: GovernedMemory, records: Iterable[MemoryCandidate], tenant_id: str
) -> list[MemoryRecord]:
    """Return the records that a batch became.

    Raises:
        SystemExit: the policy refused or held back one; the measurement would compare different things.
    """
    kept = []
    for outcome in memory.write_many(records, caller=writer_of(tenant_id)):
        if isinstance(outcome, Exception) or outcome.effect != "allow" or outcome.duplicate_of is not None:
            raise SystemExit(f"the write policy did not simply admit a record of the corpus: {outcome!r}")
        kept.append(outcome.record)
    return kept
