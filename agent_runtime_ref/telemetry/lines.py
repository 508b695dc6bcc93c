"""The lines of the decision log: one per decision in OPA's decision-log fields, one per event.

A line is made here as JSON text without its place in the chain; the store adds sequence and hash
inside the transaction that the line belongs to.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_runtime_ref.clock import timestamp
from agent_runtime_ref.contracts import Decision
from agent_runtime_ref.telemetry.events import Event

INPUT_VERSION = 1
LINE_BYTES_MAX = 64 * 1024

CONSIDERED_COLUMNS = (
    "record_id",
    "tenant_id",
    "subject",
    "memory_class",
    "kind",
    "key",
    "source",
    "provenance",
    "provenance_known",
    "trust_rank",
    "confidence_millionths",
    "created_ns",
    "expires_ns",
    "status",
    "revision",
    "outranked",
    "derived",
)


@dataclass(frozen=True, slots=True)
class Considered:
    """What a read looked at: metadata of records in rank order, never content."""

    returned: Sequence[Sequence[Any]]
    kept_out: Sequence[Sequence[Any]]  # each row ends with the reason
    total: int
    exclusions: Mapping[str, int]
    store_revision: int


@dataclass(frozen=True, slots=True)
class DecisionLine:
    """Everything a reviewer needs to ask the same question again."""

    event_id: str
    trace_id: str
    session_id: str | None
    at_us: int
    path: str
    decision: Decision
    requested_by: str
    input: Mapping[str, Any]
    result: Mapping[str, Any]
    considered: Considered | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


def decision_text(line: DecisionLine) -> str:
    """Return the body of a decision line, at most 64 KiB: kept-out records are left out first."""
    document = _decision_document(line)
    if line.considered is None:
        return _text(document)
    rows = list(line.considered.kept_out)
    while True:
        document["considered"] = _considered_document(line.considered, rows)
        text = _text(document)
        if len(text.encode("utf-8", "surrogatepass")) <= LINE_BYTES_MAX or not rows:
            return text
        del rows[len(rows) // 2 :]


def event_text(event: Event) -> str:
    """Return the body of an event line."""
    return _text({"type": "event", "event_id": event.event_id, **event.to_document()})


def _decision_document(line: DecisionLine) -> dict[str, Any]:
    decision = line.decision
    return {
        "type": "decision",
        "event_id": line.event_id,
        "input_version": INPUT_VERSION,
        "decision_id": decision.decision_id,
        "trace_id": line.trace_id,
        "session_id": line.session_id,
        "timestamp": timestamp(line.at_us),
        "path": line.path,
        "labels": {"engine": decision.engine},
        "bundles": {"memory": {"revision": decision.policy_revision, "digest": decision.policy_digest}},
        "requested_by": line.requested_by,
        "input": line.input,
        "result": line.result,
        "metrics": {"timer_rego_query_eval_ns": decision.duration_ns},
        **line.extra,
    }


def _considered_document(considered: Considered, rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    return {
        "columns": CONSIDERED_COLUMNS,
        "returned": considered.returned,
        "kept_out": rows,
        "considered": considered.total,
        "considered_logged": len(considered.returned) + len(rows),
        "exclusions": considered.exclusions,
        "store_revision": considered.store_revision,
    }


_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def _text(document: Mapping[str, Any]) -> str:
    return _ENCODE(document)
