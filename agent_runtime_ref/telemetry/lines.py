"""The lines of the decision log: one per decision in OPA's decision-log fields, one per event.

A line is made here as JSON text without its place in the chain; the store adds sequence and hash
inside the transaction that the line belongs to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_runtime_ref.clock import timestamp
from agent_runtime_ref.compact_json import compact
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
# Behind the attributes of a record: what ordered it, null without a text. A replay needs it to tell which
# records a changed policy would push out of an answer.
SCORE_COLUMN = "score_millionths"
READERS_ORDER = "reader"  # the order of an answer that its reader chose, or ordered by what the line has not


@dataclass(frozen=True, slots=True)
class Considered:
    """What a read looked at: metadata of records in rank order, never content."""

    returned: Sequence[Sequence[Any]]
    kept_out: Sequence[Sequence[Any]]  # each row ends with the reason, behind the score
    total: int
    exclusions: Mapping[str, int]
    store_revision: int
    by_reader: bool = False  # the order is not the store's, and no score in the rows tells it


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
    """Return the body of a decision line, at most 64 KiB.

    Records that were kept out are left out first, then returned ones, the lowest ranks of either; the
    line says how many of how many it holds.
    """
    document = _decision_document(line)
    if line.considered is None:
        return compact(document)
    returned, kept_out = list(line.considered.returned), list(line.considered.kept_out)
    while True:
        document["considered"] = _considered_document(line.considered, returned, kept_out)
        text = compact(document)
        if len(text.encode("utf-8")) <= LINE_BYTES_MAX or not (kept_out or returned):
            return text
        rows = kept_out or returned
        del rows[len(rows) // 2 :]


def event_text(event: Event) -> str:
    """Return the body of an event line."""
    return compact({"type": "event", "event_id": event.event_id, **event.to_document()})


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


def _considered_document(
    considered: Considered, returned: Sequence[Sequence[Any]], kept_out: Sequence[Sequence[Any]]
) -> dict[str, Any]:
    return {
        "columns": (*CONSIDERED_COLUMNS, SCORE_COLUMN),
        "returned": returned,
        "kept_out": kept_out,
        "considered": considered.total,
        "considered_logged": len(returned) + len(kept_out),
        "exclusions": considered.exclusions,
        "store_revision": considered.store_revision,
        **({"order": READERS_ORDER} if considered.by_reader else {}),
    }
