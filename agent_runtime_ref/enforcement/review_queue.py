"""The review gate: what waits in quarantine is let go or removed, if the write policy permits it.

It is the write gate's operations `release` and `reject`. A release is a write: the record is scanned anew,
its slot, lineage and twins are looked at as they are now, and the policy says what trust and life it is left.
Who wrote a record is kept by the store beside it, from the trusted context of its writer. The change, the
decision and its events are one transaction, which fails if the record is no longer as the reviewer saw it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent_runtime_ref.clock import microseconds
from agent_runtime_ref.contracts import Decision, MemoryRecord, Readability, ReviewReceipt
from agent_runtime_ref.enforcement.amend import assignment, change_of, expiry
from agent_runtime_ref.enforcement.attributes import Attributes, subjects_named
from agent_runtime_ref.enforcement.failures import Failures, settled
from agent_runtime_ref.enforcement.readers import Readers
from agent_runtime_ref.enforcement.recorder import Call, Recorder
from agent_runtime_ref.enforcement.review_document import Look, Request, Waiting, looked_at, question
from agent_runtime_ref.enforcement.ruling import DecisionPoint, Ruling
from agent_runtime_ref.enforcement.scanner import Scanner
from agent_runtime_ref.errors import PolicyDeniedError
from agent_runtime_ref.stores.base import Change, Rejected, Store, WriteBatch
from agent_runtime_ref.stores.digests import tombstone_digest
from agent_runtime_ref.telemetry.chain import Lines
from agent_runtime_ref.telemetry.events import Event
from agent_runtime_ref.telemetry.lines import event_text
from agent_runtime_ref.telemetry.otel import gate_span

PATH = "memory/write/decision"
# What the gate can do beside the step itself.
_KNOWN = {
    "release": frozenset[str](),
    "reject": frozenset({"tombstone"}),
    "quarantine": frozenset[str](),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One attempt: the request, what was found, the frame of the call and the question put to the policy."""

    request: Request
    look: Look
    call: Call
    document: Mapping[str, Any]


class ReviewGate:
    """Takes records out of quarantine, one way or the other."""

    def __init__(
        self,
        *,
        point: DecisionPoint,
        store: Store,
        attributes: Attributes,
        recorder: Recorder,
        scanner: Scanner,
        readers: Readers,
    ) -> None:
        self._point = point
        self._store = store
        self._attributes = attributes
        self._recorder = recorder
        self._scanner = scanner
        self._readers = readers

    def review(self, request: Request) -> ReviewReceipt:
        """Carry out a release or a rejection, and return its receipt.

        Raises:
            PolicyDeniedError: the policy refused; the record is as it was.
            EngineFailureError: the engine gave no clear answer; the record is as it was.
            RevisionConflictError: others kept changing what the record depends on.
            DecisionLogError: the decision could not be written down, so nothing was done.
        """
        with gate_span(request.operation), self._failures(request) as told:
            call = told.call
            return settled(lambda: self._carried_out(self._asked(request, call, told)))

    def _failures(self, request: Request) -> Failures:
        """Return the block of a step, which knows no more of it than who wants it until it was looked at."""
        call = self._recorder.call(
            request.caller, request.operation, trace_id=None, session_id=None, subjects=()
        )
        known = {"operation": request.operation, "now_ns": call.at_us * 1000}
        return self._recorder.failures(
            call, PATH, lambda: {**known, "caller": self._attributes.caller(request.caller)}, read=False
        )

    def _asked(self, request: Request, call: Call, told: Failures) -> Asked:
        self._attributes.pseudonyms.refresh()
        look = looked_at(request, store=self._store, scanner=self._scanner, now_us=call.at_us)
        call = self._recorder.about(call, subjects_named(request.caller, look.subject))
        document = question(
            request, look, attributes=self._attributes, scanner=self._scanner, now_us=call.at_us
        )
        asked = Asked(request, look, call, document)
        told.call, told.document = call, lambda: self._logged(asked)
        return asked

    def _carried_out(self, asked: Asked) -> ReviewReceipt:
        ruling = self._point.write(asked.document)
        refusals = review_refusals(ruling.document, asked.request.operation)
        if refusals:
            raise self._refused(asked, refusals, ruling)
        waiting = asked.look.waiting
        assert waiting is not None, "the policy permits a review of what is in quarantine only"
        if asked.request.operation == "release":
            return self._released(asked, waiting, ruling)
        return self._rejected(asked, waiting, ruling)

    def _refused(self, asked: Asked, rows: Sequence[Mapping[str, Any]], ruling: Ruling) -> PolicyDeniedError:
        decision = self._recorder.decision(asked.call, "deny", rows, duration_ns=ruling.duration_ns)
        result = {"allow": False, "effect": "deny", "deny": list(rows)}
        line = self._recorder.line(asked.call, decision, PATH, self._logged(asked), result)
        tenant_id = asked.call.caller.tenant_id
        self._recorder.keep([line], [self._decided(asked, decision)], read=False, tenant_id=tenant_id)
        return PolicyDeniedError(decision)

    # --- release -------------------------------------------------------------------------------------------

    def _released(self, asked: Asked, waiting: Waiting, ruling: Ruling) -> ReviewReceipt:
        assigned = ruling.document["assign"][0]
        record = _let_go(waiting, assigned)
        change = replace(
            change_of(waiting.item, record, waiting.head, waiting.context),
            original=waiting.queued.original,
            queued=waiting.queued,
        )
        readable = self._readers.of(record, now_us=asked.call.at_us)
        decision = self._recorder.decision(asked.call, "allow", (), duration_ns=ruling.duration_ns)
        supersedes = None if change.supersedes is None else change.supersedes.memory_id
        told = self._told(asked, decision, "memory_released", _facts(record, supersedes, readable))
        result = {"allow": True, "effect": "allow", "deny": [], "assign": assigned}
        outcome = self._committed(asked, decision, result, told, changes=[change])
        return ReviewReceipt(
            operation="release",
            decision=decision,
            reviewer=asked.request.caller.principal_id,
            reason=asked.request.reason,
            before=waiting.queued.record,
            record=record,
            supersedes=outcome[0] if outcome else None,
            readable=readable,
            tombstone=False,
        )

    # --- reject --------------------------------------------------------------------------------------------

    def _rejected(self, asked: Asked, waiting: Waiting, ruling: Ruling) -> ReviewReceipt:
        obliged = [
            {"type": row["type"], "findings": row["findings"]} for row in ruling.document["obligations"]
        ]
        record = waiting.queued.record
        stays_out = bool(obliged)
        rejected = Rejected(waiting.queued, self._tombstones(waiting) if stays_out else ())
        decision = self._recorder.decision(
            asked.call, "allow", (), obligations=obliged, duration_ns=ruling.duration_ns
        )
        told = self._told(asked, decision, "memory_rejected", {"tombstone": stays_out})
        result = {"allow": True, "effect": "allow", "deny": [], "obligations": obliged}
        self._committed(asked, decision, result, told, rejected=[rejected])
        return ReviewReceipt(
            operation="reject",
            decision=decision,
            reviewer=asked.request.caller.principal_id,
            reason=asked.request.reason,
            before=record,
            record=None,
            supersedes=None,
            readable=None,
            tombstone=stays_out,
        )

    def _tombstones(self, waiting: Waiting) -> tuple[bytes, ...]:
        record, original = waiting.queued.record, waiting.queued.original
        kept = tombstone_digest(self._store.store_key(), record.tenant_id, record.subject, record.content)
        return (kept,) if original is None else (kept, original)

    # --- what is written down ------------------------------------------------------------------------------

    def _committed(
        self,
        asked: Asked,
        decision: Decision,
        result: Mapping[str, Any],
        told: Event,
        *,
        changes: Sequence[Change] = (),
        rejected: Sequence[Rejected] = (),
    ) -> tuple[str, ...]:
        """Commit the step with its lines, and return the ids of what it superseded."""
        decided = self._decided(asked, decision)
        line = self._recorder.line(asked.call, decision, PATH, self._logged(asked), result)
        lines = Lines.of(asked.call.caller.tenant_id, (line, event_text(decided), event_text(told)))
        batch = WriteBatch(changes, lines, now_us=asked.call.at_us, rejected=rejected)
        outcomes = self._store.commit(batch)
        self._recorder.mirror([decided, told], lines)
        return outcomes[0].superseded if outcomes else ()

    def _decided(self, asked: Asked, decision: Decision) -> Event:
        payload: dict[str, Any] = {
            "operation": asked.request.operation,
            "record_id": self._attributes.words.safe(asked.request.record_id),
            "obligations": [one["type"] for one in decision.obligations],
        }
        waiting, safe = asked.look.waiting, self._attributes.words.safe
        if waiting is not None:
            candidate = waiting.item.candidate
            payload |= {
                "memory_class": safe(candidate.memory_class),
                "kind": safe(candidate.kind),
                "source": safe(candidate.source),
                "provenance": safe(candidate.provenance),
                "revision_mode": candidate.revision_mode,
                "findings": sorted({finding.type for finding in waiting.item.findings}),
            }
        return self._recorder.event(asked.call, "memory_write_decision", decision, payload, decides=True)

    def _told(self, asked: Asked, decision: Decision, event_type: str, facts: Mapping[str, Any]) -> Event:
        """Return the event of what happened; the reviewer is named as every event names a principal."""
        safe = self._attributes.words.safe
        assert asked.look.waiting is not None
        record = asked.look.waiting.queued.record
        payload = {
            "record_id": safe(record.memory_id),
            "reason": asked.document["review"]["reason"],
            "memory_class": safe(record.memory_class),
            "kind": safe(record.kind),
            **facts,
        }
        event = self._recorder.event(asked.call, event_type, decision, payload, decides=False)
        return replace(event, payload={**event.payload, "reviewer": event.payload["principal_id"]})

    def _logged(self, asked: Asked) -> Mapping[str, Any]:
        """Return the question for the log: the key of a record about somebody stands as a pseudonym."""
        subject, shown = asked.look.subject, dict(asked.document["candidates"][0])
        if subject is None or shown["key"] is None:
            return asked.document
        assert asked.look.waiting is not None
        key = asked.look.waiting.queued.record.key
        assert key is not None
        shown["key"] = self._attributes.pseudonyms.of(asked.request.caller.tenant_id, subject, key)
        return {**asked.document, "candidates": [shown]}


def review_refusals(answer: Mapping[str, Any], operation: str) -> list[Mapping[str, Any]]:
    """Return why a step is not taken; empty only where the policy says that it is, and nothing besides."""
    refusals = [*answer["deny"], *answer["quarantine"]]
    for row in answer["obligations"]:
        if row["type"] not in _KNOWN[operation] or not isinstance(row.get("findings"), list):
            refusals.append({"rule_id": "GATE", "reason": "obligation_unknown"})
    if answer["allowed"] != [0] and not refusals:
        refusals.append({"rule_id": "GATE", "reason": "not_permitted"})
    return refusals


def _let_go(waiting: Waiting, assigned: Mapping[str, Any]) -> MemoryRecord:
    """Return the record as it is after its release; its life still counts from when it was written."""
    trust, retention, ttl_days = assignment(assigned)
    record, head = waiting.queued.record, waiting.head
    assert record.created_at is not None
    own_end = None if record.expires_at is None else microseconds(record.expires_at)
    revision = record.revision
    if head is not None and head.memory_id is not None:
        revision = max(revision, head.revision + 1)
    return replace(
        record,
        status="active",
        trust_level=trust,
        retention=retention,
        expires_at=expiry(microseconds(record.created_at), ttl_days, own_end),
        revision=revision,
    )


def _facts(record: MemoryRecord, supersedes: str | None, readable: Readability) -> dict[str, Any]:
    return {
        "revision": record.revision,
        "trust_level": record.trust_level,
        "retention": record.retention,
        "supersedes": supersedes,
        "purposes": list(readable.purposes),
    }
