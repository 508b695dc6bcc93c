"""What N and L are given: a kept record as plain values, and the limits that policy sets for a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agent_runtime_ref.clock import microseconds
from agent_runtime_ref.contracts import MemoryRecord
from bench.data import DAY_US, NOW_US, Question


class Row(NamedTuple):
    """The twelve fields of a record that both baselines keep."""

    memory_id: str
    tenant_id: str
    memory_class: str
    kind: str
    key: str | None
    content: str
    source: str
    confidence: float
    provenance: str
    trust_rank: int
    created_us: int
    expires_us: int | None


class ClassLimit(NamedTuple):
    """What a record of one class must meet to be shown."""

    memory_class: str
    trust_rank: int
    created_us: int


def row_of(record: MemoryRecord, ranks: Mapping[str, int]) -> Row:
    """Return a kept record as both baselines keep it."""
    assert record.created_at is not None
    return Row(
        record.memory_id,
        record.tenant_id,
        record.memory_class,
        record.kind,
        record.key,
        record.content,
        record.source,
        record.confidence,
        record.provenance,
        ranks[record.trust_level],
        microseconds(record.created_at),
        None if record.expires_at is None else microseconds(record.expires_at),
    )


def class_limits(question: Question, settings: Mapping[str, Any]) -> list[ClassLimit]:
    """Return for each class asked for what question and policy settings demand together."""
    ranks = settings["trust_ranks"]
    found = []
    for name in sorted(question.classes):
        floors = [ranks[level] for level, classes in settings["trust_floors"].items() if name in classes]
        days = [limit["days"] for limit in settings["age_limits"] if name in limit["classes"]]
        found.append(
            ClassLimit(
                name,
                max([ranks[question.trust_min], *floors]),
                NOW_US - min([question.max_age_days, *days]) * DAY_US,
            )
        )
    return found


def terms(text: str) -> list[str]:
    """Return the words of a text, or the pairs of adjacent ideographs, each once."""
    found = []
    for word in text.split():
        found += [word] if word.isascii() else [word[place : place + 2] for place in range(len(word) - 1)]
    return list(dict.fromkeys(found))


def limits_sql(limits: Sequence[ClassLimit], columns: Sequence[str]) -> str:
    """Return the condition of `limits` over the columns of class, trust and instant; values are bound."""
    memory_class, trust, created = columns
    one = f"({memory_class}=? AND {trust}>=? AND {created}>=?)"
    return f"({' OR '.join([one] * len(limits))})"
