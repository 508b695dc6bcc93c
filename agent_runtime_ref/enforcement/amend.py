"""Carrying out a write decision: trust, retention, redaction and status come from the policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from agent_runtime_ref.clock import Ids, instant
from agent_runtime_ref.contracts import Caller, MemoryCandidate, MemoryRecord
from agent_runtime_ref.enforcement.detectors import Finding, redact
from agent_runtime_ref.enforcement.names import folded
from agent_runtime_ref.enforcement.prepared import REDACTABLE, Context, Prepared
from agent_runtime_ref.errors import EngineFailureError
from agent_runtime_ref.stores.base import Change, Head, Waiting
from agent_runtime_ref.stores.digests import writer_digest

KNOWN_OBLIGATIONS = frozenset({"redact"})
_DAY_US = 24 * 3600 * 1_000_000


def unmet_obligations(
    obligations: Sequence[Mapping[str, Any]], findings: Sequence[Finding]
) -> list[dict[str, str]]:
    """Return the refusals that follow from obligations the gate cannot carry out; empty if it can."""
    refusals = []
    for obligation in obligations:
        if obligation.get("type") not in KNOWN_OBLIGATIONS or not isinstance(
            obligation.get("findings"), list
        ):
            refusals.append({"rule_id": "GATE", "reason": "obligation_unknown"})
        elif any(finding.field not in REDACTABLE for finding in _named(findings, obligation)):
            refusals.append({"rule_id": "GATE", "reason": "secret_not_redactable"})
    return refusals


def amended(
    item: Prepared,
    *,
    assigned: Mapping[str, Any],
    obligations: Sequence[Mapping[str, Any]],
    quarantined: bool,
    head: Head | None,
    now_us: int,
    ids: Ids,
) -> MemoryRecord:
    """Return the record to keep for an admitted candidate.

    Raises:
        EngineFailureError: the policy assigned no usable trust or retention.
    """
    trust, retention, ttl_days = assignment(assigned)
    candidate = _redacted(item, obligations)
    pinned = item.pinned
    created_us = now_us if pinned is None or pinned.created_us is None else pinned.created_us
    return MemoryRecord(
        ids.new("mem") if pinned is None else pinned.memory_id,
        candidate.tenant_id,
        candidate.memory_class,
        candidate.kind,
        candidate.content,
        candidate.source,
        candidate.confidence,
        candidate.provenance,
        _revision(head) if pinned is None else pinned.revision,
        subject=candidate.subject,
        key=candidate.key,
        summary=candidate.summary,
        origin=candidate.origin,
        trust_level=trust,
        created_at=instant(created_us),
        retention=retention,
        expires_at=expiry(created_us, ttl_days, None if pinned is None else pinned.expires_us),
        status="quarantined" if quarantined else ("active" if pinned is None else pinned.status),
        derived_from=candidate.derived_from,
        scope=candidate.scope,
    )


def change_of(item: Prepared, record: MemoryRecord, head: Head | None, context: Context) -> Change:
    """Return the change to commit: what waits in quarantine supersedes nothing yet."""
    replacing = item.candidate.revision_mode == "replace" and record.status == "active"
    return Change(
        record=record,
        supersedes=head if replacing and head is not None and head.memory_id is not None else None,
        dedup=item.dedup if item.pinned is None and item.candidate.revision_mode == "append" else None,
        exclusive=replacing,
        # One who may learn a forgotten memory again relies on no absence.
        unforgotten=None if item.tombstone in context.forgotten else item.tombstone,
        original=None if record.content == item.candidate.content else item.tombstone,
        parents={one: context.lineage[one] for one in record.derived_from if one in context.lineage},
        waiting=_waiting(item, record, context) if record.status == "quarantined" else None,
    )


def _waiting(item: Prepared, record: MemoryRecord, context: Context) -> Waiting:
    """Return who wrote a record, out of the trusted context: nothing that a candidate says is in it."""
    principal, agent = writer_digests(context.store_key, record.memory_id, context.writer)
    return Waiting(principal, agent, item.candidate.revision_mode == "replace")


def writer_digests(store_key: bytes, memory_id: str, caller: Caller) -> tuple[bytes, bytes | None]:
    """Return the digests that stand for a caller beside one record: of the principal, and of its agent."""
    principal = name_digest(store_key, memory_id, caller, caller.principal_id)
    if caller.agent_id is None:
        return principal, None
    return principal, name_digest(store_key, memory_id, caller, caller.agent_id)


def name_digest(store_key: bytes, memory_id: str, caller: Caller, name: str) -> bytes:
    """Return the digest of one of a caller's names, the same for names that may be one person's."""
    return writer_digest(store_key, caller.tenant_id, memory_id, folded(name))


def expiry(created_us: int, ttl_days: int | None, pinned_us: int | None) -> datetime | None:
    """Return the earlier of what the policy and a seed say; None where neither sets an end."""
    ends = [] if ttl_days is None else [created_us + ttl_days * _DAY_US]
    ends += [] if pinned_us is None else [pinned_us]
    return instant(min(ends)) if ends else None


def _revision(head: Head | None) -> int:
    return 1 if head is None else head.revision + 1


def assignment(assigned: Mapping[str, Any]) -> tuple[str, str, int | None]:
    """Return trust, retention and days to live as the policy assigned them.

    Raises:
        EngineFailureError: they are not usable.
    """
    trust, retention = assigned.get("trust_level"), assigned.get("retention")
    ttl_days = assigned.get("ttl_days")
    if trust not in ("low", "medium", "high") or not isinstance(retention, str):
        raise EngineFailureError("engine_wrong_type", "assign")
    if ttl_days is not None and (type(ttl_days) is not int or ttl_days < 1):
        raise EngineFailureError("engine_wrong_type", "assign.ttl_days")
    return trust, retention, ttl_days


def _named(findings: Sequence[Finding], obligation: Mapping[str, Any]) -> list[Finding]:
    return [finding for finding in findings if finding.type in obligation["findings"]]


def _redacted(item: Prepared, obligations: Sequence[Mapping[str, Any]]) -> MemoryCandidate:
    candidate = item.candidate
    findings = [finding for obligation in obligations for finding in _named(item.findings, obligation)]
    if not findings:
        return candidate
    by_field: dict[str, list[Finding]] = {}
    for finding in findings:
        by_field.setdefault(finding.field, []).append(finding)
    changed: dict[str, Any] = {
        name: redact(getattr(candidate, name), by_field[name])
        for name in ("content", "summary")
        if name in by_field
    }
    if "title" in by_field and candidate.origin is not None:
        title = redact(candidate.origin.title, by_field["title"])
        changed["origin"] = replace(candidate.origin, title=title)
    return replace(candidate, **changed)
