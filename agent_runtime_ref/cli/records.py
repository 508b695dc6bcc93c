"""Records as the commands show them: in the words of memory.yaml, with what the policy assigned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.clock import microseconds, timestamp

if TYPE_CHECKING:
    from agent_runtime_ref.contracts import MemoryRecord
    from agent_runtime_ref.enforcement.explain import Explanation

# Attribute of the policy -> how a sentence about it goes on after "if".
_WORDS = {
    "provenance_known": "its provenance were known",
    "outranked": "no active record of higher trust had its key",
}


def record_document(record: MemoryRecord) -> dict[str, Any]:
    """Return a record with the keys of memory.yaml, and those that only the policy sets."""
    document: dict[str, Any] = {
        "memory_id": record.memory_id,
        "tenant_id": record.tenant_id,
        "memory_class": record.memory_class,
        "kind": record.kind,
        "content": record.content,
        "source": record.source,
        "confidence": record.confidence,
        "provenance": record.provenance,
        "revision": record.revision,
        "trust_level": record.trust_level,
        "status": record.status,
        "created_at": _time(record.created_at),
        "retention": record.retention,
    }
    rarer = {
        "expires_at": _time(record.expires_at),
        "subject": record.subject,
        "key": record.key,
        "summary": record.summary,
        "origin": None if record.origin is None else record.origin.to_document(),
        "derived_from": list(record.derived_from),
        "scope": list(record.scope),
    }
    return document | {name: value for name, value in rarer.items() if value}


def verdict_sentence(explanation: Explanation, settings: Mapping[str, Any]) -> str:
    """Return what happens to a record, why, and what would have to be different."""
    if explanation.admitted:
        return "shown"
    why = ", ".join(explanation.reasons) or "not permitted"
    rules = ", ".join(explanation.rule_ids)
    kept_out = f"kept out: {why} ({rules})" if rules else f"kept out: {why}"
    if explanation.change is None:
        return f"{kept_out}; no change of the record alone would let it in"
    return f"{kept_out}; {change_sentence(explanation.change, settings)}"


def change_sentence(change: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """Return the counterfactual as a sentence."""
    parts = [_part(name, value, settings) for name, value in change.items()]
    return f"let in if {' and '.join(parts)}"


def table_rows(records: Sequence[MemoryRecord], last: Sequence[str] | None = None) -> list[list[str]]:
    """Return the rows of a table of records; `last` holds one more cell for each."""
    rows = []
    for index, record in enumerate(records):
        row = [record.memory_id, record.tenant_id, record.memory_class, record.kind, record.trust_level,
               record.status, record.content]  # fmt: skip
        rows.append(row if last is None else [*row, last[index]])
    return rows


def table_headings(*last: str) -> list[str]:
    """Return the headings that go with `table_rows`."""
    return ["record", "tenant", "class", "kind", "trust", "status", "content", *last]


def counted(count: int, what: str = "record") -> str:
    """Return a number of things in words."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _part(name: str, value: Any, settings: Mapping[str, Any]) -> str:
    if name in _WORDS:
        return _WORDS[name]
    if name == "trust_rank":
        levels = {rank: level for level, rank in settings["trust_ranks"].items()}
        return f"trust_level were `{levels.get(value, value)}`"
    return f"{name} were `{value}`"


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else timestamp(microseconds(moment))
