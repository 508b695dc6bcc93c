"""The event catalogue: what may be said about a gate, and in which fields.

An event is one line of a JSONL trace; the same event becomes an event line of the decision log and an
OpenTelemetry log record. A field that the catalogue does not name is a mistake of ours and is refused
here, so that content cannot slip into an event by a new argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.clock import timestamp

SCHEMA_VERSION = "1.0"
EVENT_NAME_PREFIX = "agent_memory."

# Where the event's line stands in the decision log: carried by an event that leaves the process.
_PLACE = ("log_chain", "log_seq", "log_hash")
# The gate's span, where the application traces: what is exported later is still found beside it.
_SPAN = ("otel_trace_id", "otel_span_id")
_WHO = ("event_id", "session_id", "tenant_id", "principal_id", "agent_id")
# What the recorder says of an event by itself; whoever tells of one has no say in it.
OWN_FACTS = frozenset((*_WHO, *_SPAN, *_PLACE))
_DECISION = (
    "decision_id",
    "effect",
    "reasons",
    "rule_ids",
    "policy_digest",
    "policy_revision",
    "engine",
    "duration",
)


@dataclass(frozen=True, slots=True)
class EventType:
    """One row of the catalogue."""

    name: str
    when: str
    fields: tuple[str, ...]
    decides: bool = False  # carries the fields of a decision
    severity: str = "INFO"

    @property
    def allowed(self) -> frozenset[str]:
        """Every payload field that such an event may carry."""
        return frozenset(
            (*_WHO, *_SPAN, *_PLACE, *(_DECISION if self.decides else ("decision_id",)), *self.fields)
        )


_ROWS = (
    EventType("run_start", "a turn of the runtime begins", ("purpose",)),
    EventType(
        "policy_precheck",
        "a turn was admitted or refused, by the read policy's decision about what it wants to read",
        ("action", "reason"),
        decides=True,
    ),
    EventType(
        "retrieval",
        "a governed read was answered or refused",
        (
            "operation",
            "purpose",
            "selected",
            "selection_reason",
            "excluded_records",
            "exclusions",
            "considered",
            "limit",
            "underfilled",
        ),
        decides=True,
    ),
    EventType(
        "context_layers_built",
        "a governed read that answers (purposes inspection and compliance_review apart); inside a turn of the"
        " runtime once for the turn, when the model has seen all of it",
        (
            "static_items",
            "session_items",
            "retrieved_items",
            "tool_items",
            "record_ids",
            "context_digest",
            "left_out",
        ),
    ),
    EventType(
        "plan_mismatch",
        "the store returned what the policy refuses",
        ("record_id", "reasons", "rule_ids"),
        severity="ERROR",
    ),
    EventType(
        "memory_write_decision",
        "before a write, a release, a rejection or a quarantine",
        (
            "memory_class",
            "kind",
            "source",
            "provenance",
            "revision_mode",
            "obligations",
            "findings",
            "operation",
            "record_id",
        ),
        decides=True,
    ),
    EventType(
        "memory_persisted",
        "after a write",
        (
            "record_id",
            "memory_class",
            "kind",
            "provenance",
            "revision",
            "trust_level",
            "supersedes",
            "duplicate_of",
        ),
    ),
    EventType(
        "memory_quarantined",
        "a record went into the review queue instead of being readable, or a reviewer put it there",
        ("record_id", "memory_class", "kind", "reasons", "rule_ids", "reviewer", "reason"),
        severity="WARN",
    ),
    EventType(
        "memory_released",
        "a reviewer let a record out of the review queue",
        (
            "record_id",
            "reviewer",
            "reason",
            "memory_class",
            "kind",
            "revision",
            "trust_level",
            "retention",
            "supersedes",
            "purposes",
        ),
    ),
    EventType(
        "memory_rejected",
        "a reviewer removed a record from the review queue",
        ("record_id", "reviewer", "reason", "memory_class", "kind", "tombstone"),
    ),
    EventType(
        "memory_forgotten",
        "everything about a subject was removed, or one record about it",
        (
            "subject",
            "record_id",
            "counts",
            "digests",
            "derived_records",
            "tombstones",
            "dry_run",
            "effect",
            "not_covered",
        ),
        decides=True,
    ),
    EventType(
        "memory_not_persisted",
        "a change that the log tells of did not reach the records; said as soon as the store notices",
        ("record_id", "memory_class", "kind", "event"),
        severity="WARN",
    ),
    EventType(
        "session_constraints_merged",
        "constraints of a session were merged after a turn, or cleared",
        ("counts", "keys", "refused", "total"),
    ),
    EventType(
        "preferences_curated",
        "what was found of a user was put into the long-term preferences, or one of them taken back",
        ("counts", "keys", "turn_id"),
    ),
    EventType(
        "curation_failed",
        "a judge gave no findings, so nothing of the turn was kept",
        ("error.type", "error.code", "judge"),
        severity="WARN",
    ),
    EventType(
        "background_compaction",
        "repetitions of a memory were merged into the earliest of them, after a turn",
        ("removed", "superseded", "kept"),
    ),
    EventType(
        "background_failed",
        "a job after the reply failed; it stays pending, or is kept aside where it failed too often",
        ("job", "error.type", "attempts", "status"),
        severity="ERROR",
    ),
    EventType(
        "tool_execution",
        "a model called a tool",
        ("tool", "status", "error.type"),
    ),
    EventType("run_complete", "a turn ended with a reply", ("status",)),
    EventType(
        "run_failed",
        "a turn ended without a reply: refused, failed or interrupted",
        ("status", "error.type"),
        severity="WARN",
    ),
    EventType(
        "policy_loaded",
        "an engine is ready to decide, at the start or in the place of another bundle",
        ("digest", "revision", "engine", "previous_digest"),
    ),
    EventType(
        "policy_engine_failure",
        "the engine gave no usable decision, so the answer was a refusal; or new policies were of no use",
        ("reason", "error.type", "digest", "operation"),
        decides=True,
        severity="ERROR",
    ),
    EventType(
        "store_failure",
        "the store or its log failed, so nothing was answered or kept",
        ("operation", "error.type", "error.code"),
        severity="ERROR",
    ),
)

CATALOGUE: Mapping[str, EventType] = {row.name: row for row in _ROWS}
_ALLOWED = {row.name: row.allowed for row in _ROWS}  # made once: each event is checked against it


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at a gate."""

    event_type: str
    trace_id: str
    at_us: int
    payload: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Refuse a payload field that the catalogue does not name."""
        unknown = self.payload.keys() - _ALLOWED[self.event_type]
        if unknown:
            raise AssertionError(f"event {self.event_type} has no field {sorted(unknown)}")

    @property
    def event_id(self) -> str:
        """The id by which a duplicate delivery is known."""
        return str(self.payload["event_id"])

    def to_document(self) -> dict[str, Any]:
        """Return one line of a JSONL trace, valid against `event.schema.json`."""
        return event_document(self.event_type, self.trace_id, self.at_us, self.payload)


def event_document(
    event_type: str, trace_id: str, at_us: int, payload: Mapping[str, Any], redacted: Sequence[str] = ()
) -> dict[str, Any]:
    """Return an event as one line of a JSONL trace; `redacted` names the fields that were left out of it."""
    return {
        "schema_version": SCHEMA_VERSION,
        "event_type": event_type,
        "trace_id": trace_id,
        "timestamp": timestamp(at_us),
        "payload": dict(payload),
        "redacted_fields": list(redacted),
    }
