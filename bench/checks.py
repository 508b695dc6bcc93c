"""The two small machines behind every call: the schema check of a record, and the engine on a batch.

Both do nothing but compute, so their ratios are of CPU time.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import jsonschema_rs

from agent_runtime_ref import MemoryRecord, validation
from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.policy.embedded import EmbeddedEngine
from agent_runtime_ref.resources import policies_path
from bench.data import NOW_US, Slice, candidates
from bench.governed import WRITE, admitted, listening
from bench.ratios import interleaved
from bench.report import Line, Measured, Times

SCHEMA_BOUND = 8.0
BATCH_BOUND = 0.5
_CALLS = 500  # one check takes about a microsecond, the clock a tenth of that


def measure_schema(*, rounds: int) -> Measured:
    """Check a record from value object to verdict, and its ready document by the bare library."""
    record = _record()
    document = record.to_document()
    bare = jsonschema_rs.Draft202012Validator(
        dict(validation.schema_document("memory_record")), validate_formats=True
    ).is_valid
    assert bare(document)
    contenders: dict[str, Callable[[int], object]] = {
        "governed": _repeated(lambda: validation.check("memory_record", record.to_document())),
        "value made anew": _repeated(_record),
        "bare": _repeated(lambda: bare(document)),
    }
    timings = interleaved(contenders, range(rounds), seed="schema", warm_up=3)
    against = timings.ratio("governed", "bare")
    anew = timings.ratio("value made anew", "bare")
    lines = [
        Line("schema check of a record: value to document to verdict / bare call", against.cpu, SCHEMA_BOUND),
        Line("making the value, its own check included / bare call", anew.cpu),
    ]
    times = [
        Times(f"schema check: {name}", [one / _CALLS for one in found])
        for name, found in timings.wall.items()
    ]
    return Measured(lines, times)


def measure_batch(*, rounds: int) -> Measured:
    """Decide on a thousand candidates at once, and on each of them alone."""
    document = _write_document(Slice("tenant-000", 0, 1_000, NOW_US))
    whole = json.loads(document)
    singles = [json.dumps({**whole, "candidates": [one]}) for one in whole["candidates"]]
    decide = partial(EmbeddedEngine(load_bundle(policies_path())).evaluate, WRITE)
    contenders: dict[str, Callable[[int], object]] = {
        "one call": lambda _: decide(document),
        "each alone": lambda _: [decide(one) for one in singles],
    }
    timings = interleaved(contenders, range(rounds), seed="batch", warm_up=1)
    against = timings.ratio("one call", "each alone")
    line = Line("1,000 candidates in one engine call / each decided alone", against.cpu, BATCH_BOUND)
    return Measured(
        [line], [Times(f"1,000 write decisions: {name}", found) for name, found in timings.wall.items()]
    )


def _write_document(part: Slice) -> str:
    """Return what the write gate asks the engine about a batch."""
    memory, engine = listening("memory:")
    with memory:
        engine.heard.clear()
        admitted(memory, candidates(part), part.tenant_id)
        asked = [text for entrypoint, text in engine.heard if entrypoint == WRITE]
    if len(asked) != 1 or len(json.loads(asked[0])["candidates"]) != part.size:
        raise SystemExit(f"a batch of {part.size} was put to the engine in {len(asked)} calls")
    return asked[0]


def _record() -> MemoryRecord:
    return MemoryRecord(
        "mem-0123456789abcdef01234567",
        "tenant-000",
        "long_term",
        "validated_fact",
        "support tickets of this customer go to the second line first",
        "trusted_service",
        0.9,
        "validated_service_rule",
        1,
        key="support.queue",
        trust_level="medium",
        created_at=datetime(2026, 4, 7, 12, tzinfo=UTC),
        retention="long_term",
    )


def _repeated(call: Callable[[], object]) -> Callable[[int], None]:
    def repeat(_: int) -> None:
        for _ in range(_CALLS):
            call()

    return repeat
