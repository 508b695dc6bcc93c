"""How a memory is used whose policy server does what it must not, and how each refusal must be."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import AsyncGovernedMemory, EngineFailureError, GovernedMemory
from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.policy.engine import ASYNC_CALLER, PolicyEngine
from agent_runtime_ref.policy.opa_server import OpaSettings
from tests.fault_server import (
    answer,
    provenance,
)
from tests.support import caller, events, note, query

DEADLINE_MS = 400


PATIENT_MS = 10_000  # where an answer does come, a busy machine may take its time over it


# What a busy machine may add. That the deadline counts is told by the reason: each server that is late here
# answers in the end, or never.
SLACK_SECONDS = 10


BUNDLE = load_bundle()


Ask = Callable[[], object]


PERMITTED: dict[str, Any] = {
    "allow": True, "deny": [], "excluded": [], "admitted": [], "allowed": [0], "quarantine": [],
    "obligations": [], "plan": {"complete": True, "limit": 5, "clauses": []},
    "assign": [{"trust_level": "high", "retention": "long_term", "ttl_days": None}],
}  # fmt: skip


def good(result: Any = PERMITTED, **changes: Any) -> bytes:
    """Return what an OPA would say that permits everything: the answer that must not be believed."""
    return answer({"provenance": provenance(BUNDLE), "result": result} | changes)


def refusals(url: str, engine: str, asking: str, trace: Path, **settings: Any) -> list[EngineFailureError]:
    """Return how a read and a write are refused, after checking what every refusal must be like."""
    opa = OpaSettings(**({"deadline_ms": PATIENT_MS} | settings))
    memory = GovernedMemory.open(url, engine=engine, opa=opa, trace=trace)
    found = [refusal(call, opa.deadline_ms) for call in asks(memory, asking)]
    memory.close()
    told = [event["payload"] for event in events(trace) if event["event_type"] == "policy_engine_failure"]
    assert [payload["reason"] for payload in told] == [one.reason for one in found]
    assert {one.decision.effect for one in found} == {"deny"}
    with GovernedMemory.open(url) as after:
        assert len(after.read(query(limit=100), caller=caller()).hits) == 1
    return found


def asks(memory: GovernedMemory, asking: str) -> list[Ask]:
    """Return a read and a write, through one of the two clients."""
    if asking == "threads":
        return [
            lambda: memory.read(query(), caller=caller()),
            lambda: memory.write(note("another"), caller=caller()),
        ]
    both = AsyncGovernedMemory(memory)
    return [
        lambda: asyncio.run(both.read(query(), caller=caller())),
        lambda: asyncio.run(both.write(note("another"), caller=caller())),
    ]


def refusal(call: Ask, deadline_ms: int = DEADLINE_MS) -> EngineFailureError:
    """Return how a call was refused, which it must be within the deadline."""
    begun = time.monotonic()
    with pytest.raises(EngineFailureError) as caught:
        call()
    assert time.monotonic() - begun < deadline_ms / 1000 + SLACK_SECONDS
    return caught.value


def as_asked(engine: PolicyEngine, document: str, asking: str) -> object:
    """Put a question to an engine as a gate on a thread does, or as one below the asynchronous facade."""
    context = contextvars.copy_context()
    context.run(ASYNC_CALLER.set, asking == "asyncio")
    return context.run(engine.evaluate, "memory.read", document)
