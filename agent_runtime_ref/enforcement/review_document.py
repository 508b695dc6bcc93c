"""What a reviewer's question is about: a record in quarantine as it would be written now, and who asks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agent_runtime_ref.clock import microseconds
from agent_runtime_ref.contracts import Caller, MemoryCandidate, MemoryRecord
from agent_runtime_ref.contracts.caller import require_text
from agent_runtime_ref.enforcement.amend import name_digest, writer_digests
from agent_runtime_ref.enforcement.attributes import Attributes
from agent_runtime_ref.enforcement.names import may_be_one
from agent_runtime_ref.enforcement.prepared import Context, Prepared, context_of, document_of, prepared
from agent_runtime_ref.enforcement.scanner import Scanner
from agent_runtime_ref.errors import DocumentTypeError, DocumentValueError
from agent_runtime_ref.recall.analysis import normalize_text
from agent_runtime_ref.stores.attributes import TRUST_RANKS
from agent_runtime_ref.stores.base import Head, Queued, Store

__all__ = ["Look", "Request", "candidate_of", "looked_at", "question"]

ABSENT = "absent"
# Each step, and the status of the records that it is taken with.
DUE = {"release": "quarantined", "reject": "quarantined", "quarantine": "active"}
# Detectors look at the whole of it, so there is a bound whatever the policy's own is.
REASON_CHARS_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Request:
    """What a reviewer wants done, and why."""

    operation: str  # release, reject or quarantine
    record_id: str
    caller: Caller
    reason: str

    def __post_init__(self) -> None:
        """Refuse what is no text, or nothing; everything else is the policy's to judge."""
        for name in ("record_id", "reason"):
            value = getattr(self, name)
            if not isinstance(value, str):
                raise DocumentTypeError(f"{name}: must be a string", path=name)
            require_text(name, value)
            # Blanks, and signs that nobody sees, are no reason.
            if not any(letter.isalnum() for letter in value):
                raise DocumentValueError(f"{name}: must not be empty", path=name)
        if len(self.reason) > REASON_CHARS_MAX:
            raise DocumentValueError(
                f"reason: must have at most {REASON_CHARS_MAX} characters", path="reason"
            )


@dataclass(frozen=True, slots=True)
class Waiting:
    """A record in quarantine, or one that is to go there, scanned anew, with what the store knows of it."""

    queued: Queued
    item: Prepared
    context: Context

    @property
    def head(self) -> Head | None:
        """What its release would supersede."""
        return self.context.heads[0]


@dataclass(frozen=True, slots=True)
class Look:
    """What was found under the id that a reviewer named."""

    status: str  # of the record; `absent` where the tenant has none of that id
    waiting: Waiting | None  # None: it has not the status that the step is taken with

    @property
    def subject(self) -> str | None:
        """Whom the record is about."""
        return None if self.waiting is None else self.waiting.queued.record.subject


def looked_at(request: Request, *, store: Store, scanner: Scanner, now_us: int) -> Look:
    """Return what there is to review, looking only into the caller's own tenant."""
    tenant_id, record_id = request.caller.tenant_id, request.record_id
    status = DUE[request.operation]
    queued = store.queued(tenant_id, record_id, status)
    if queued is None:
        found = store.lineage(tenant_id, [record_id]).get(record_id)
        # Put there between the two questions: whoever asks again will see it.
        gone = found is None or found.status == status
        return Look(ABSENT if found is None or gone else found.status, None)
    replaces = queued.waiting is not None and queued.waiting.replaces
    candidate = candidate_of(queued.record, revision_mode="replace" if replaces else "append")
    item = prepared(candidate, scanner=scanner, store_key=store.store_key())
    # Of a redacted record the digests are of what was written, as they would be if it were written again.
    item = replace(item, dedup=queued.dedup or item.dedup, tombstone=queued.original or item.tombstone)
    return Look(status, Waiting(queued, item, context_of([item], store, request.caller, now_us)))


def candidate_of(record: MemoryRecord, *, revision_mode: str) -> MemoryCandidate:
    """Return the candidate that a record was, as far as it was kept."""
    return MemoryCandidate(
        record.tenant_id,
        record.memory_class,
        record.kind,
        record.content,
        record.source,
        record.confidence,
        record.provenance,
        revision_mode,
        key=record.key,
        subject=record.subject,
        summary=record.summary,
        origin=record.origin,
        derived_from=record.derived_from,
        scope=record.scope,
    )


def question(
    request: Request, look: Look, *, attributes: Attributes, scanner: Scanner, now_us: int
) -> dict[str, Any]:
    """Return the write policy's input for a review; the reason is in it as a word, never as a text."""
    reason = request.reason
    return {
        "operation": request.operation,
        "now_ns": now_us * 1000,
        "caller": _caller(request.caller, look, attributes),
        "candidates": [_candidate(request, look, attributes)],
        "review": {
            "reason": reason_word(request, look, attributes),
            "reason_chars": len(reason),
            "reason_findings": sorted({finding.type for finding in scanner.scan({"reason": reason})}),
        },
    }


def reason_word(request: Request, look: Look, attributes: Attributes) -> str:
    """Return the reason as it may be logged: a word out of the record, or for whom it is about, never is.

    What is said of a record about somebody goes with that one's key when that one is forgotten.
    """
    reason, waiting = request.reason, look.waiting
    shown = attributes.words.safe(reason)
    if waiting is None or (shown == reason and not _is_out_of(waiting.queued.record, reason)):
        return shown
    subject = waiting.queued.record.subject
    if subject is None:
        return attributes.words.digest(reason)
    return attributes.pseudonyms.of(request.caller.tenant_id, subject, reason)


def _is_out_of(record: MemoryRecord, word: str) -> bool:
    """Tell whether a word stands in what a record says, or names whom it is about."""
    told = (record.content, record.summary, record.key)
    text = normalize_text(" ".join(one for one in told if one is not None))
    as_a_word = rf"(?<![a-z0-9_]){re.escape(normalize_text(word))}(?![a-z0-9_])"
    return may_be_one(word, record.subject) or re.search(as_a_word, text) is not None


def _caller(caller: Caller, look: Look, attributes: Attributes) -> dict[str, Any]:
    """Return who asks; whoever may be the one that the record is about acts for that one."""
    names = (caller.own_subject, caller.principal_id, caller.agent_id)
    shown, subject = attributes.caller(caller), look.subject
    if subject is not None and any(may_be_one(name, subject) for name in names):
        shown["subject"] = attributes.words.safe(subject)
    return shown


def _candidate(request: Request, look: Look, attributes: Attributes) -> dict[str, Any]:
    words, waiting = attributes.words, look.waiting
    queue: dict[str, Any] = {"record_id": words.safe(request.record_id), "status": look.status}
    if waiting is None:
        return {"tenant_id": words.safe(request.caller.tenant_id), "subject": None, "queue": queue}
    shown = document_of(waiting.item, waiting.head, waiting.context, words)
    return {**shown, "queue": {**queue, **_queue(request, waiting)}}


def _queue(request: Request, waiting: Waiting) -> dict[str, Any]:
    record, kept = waiting.queued.record, waiting.queued.waiting
    assert record.created_at is not None, "a record is given its instant before it is stored"
    store_key, caller = waiting.context.store_key, request.caller
    principal, agent = writer_digests(store_key, record.memory_id, caller)
    written_by = (None, None) if kept is None else (kept.principal, kept.agent)
    acted_for = name_digest(store_key, record.memory_id, caller, caller.own_subject)
    if acted_for in written_by:
        principal = acted_for  # who acts for the writer has the writer's two eyes
    return {
        "trust_rank": TRUST_RANKS[record.trust_level],
        "created_ns": microseconds(record.created_at) * 1000,
        "expires_ns": None if record.expires_at is None else microseconds(record.expires_at) * 1000,
        "duplicate": waiting.item.dedup in waiting.context.duplicates,
        "written_by": _names(*written_by),
        "reviewer": _names(principal, agent),
    }


def _names(principal: bytes | None, agent: bytes | None) -> Mapping[str, str | None]:
    return {"principal": _digest(principal), "agent": _digest(agent)}


def _digest(value: bytes | None) -> str | None:
    return None if value is None else "hmac:" + value.hex()[:32]
