"""What a writer, and whoever asked to forget, gets in return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent_runtime_ref.contracts.decision import Decision
from agent_runtime_ref.contracts.parts import text_of
from agent_runtime_ref.contracts.record import MemoryRecord

__all__ = ["ForgetReceipt", "Readability", "ReviewReceipt", "WriteReceipt"]


@dataclass(frozen=True, slots=True)
class WriteReceipt:
    """What became of an admitted candidate."""

    effect: str  # allow or quarantine
    record: MemoryRecord
    decision: Decision
    supersedes: str | None = None
    duplicate_of: str | None = None
    notes: tuple[str, ...] = ()

    def to_document(self) -> dict[str, Any]:
        """Return the receipt as a mapping of plain values."""
        return {
            "effect": self.effect,
            "record": self.record.to_document(),
            "decision": self.decision.to_document(),
            "supersedes": self.supersedes,
            "duplicate_of": self.duplicate_of,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetReceipt:
    """What was removed about a subject (or would be, in a dry run), and what no removal here covers."""

    decision: Decision
    dry_run: bool
    records: int
    derived: int  # records that were derived from the subject's
    superseded: int  # older revisions among the records
    terms: int
    dedup_keys: int
    tombstones: int
    by_class: Mapping[str, int]
    digests: Mapping[str, str]  # one for each class
    log_key_destroyed: bool
    not_covered: tuple[str, ...]

    def to_document(self) -> dict[str, Any]:
        """Return the receipt as a mapping of plain values; it holds no content and no subject."""
        return {
            "decision": self.decision.to_document(),
            "dry_run": self.dry_run,
            "records": self.records,
            "derived": self.derived,
            "superseded": self.superseded,
            "terms": self.terms,
            "dedup_keys": self.dedup_keys,
            "tombstones": self.tombstones,
            "by_class": dict(self.by_class),
            "digests": dict(self.digests),
            "log_key_destroyed": self.log_key_destroyed,
            "not_covered": list(self.not_covered),
        }


@dataclass(frozen=True, slots=True)
class Readability:
    """Who is shown a record, as the read policy says: by whom, and for which purposes."""

    tenant_id: str
    subject: str | None  # None: everybody in the tenant
    purposes: tuple[str, ...]
    kept_from: Mapping[str, tuple[str, ...]]  # every other purpose, with the reasons

    def to_document(self) -> dict[str, Any]:
        """Return the `readable` part of a receipt."""
        return {
            "tenant_id": self.tenant_id,
            "subject": self.subject,
            "purposes": list(self.purposes),
            "kept_from": {purpose: list(reasons) for purpose, reasons in self.kept_from.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewReceipt:
    """What became of a record in quarantine."""

    operation: str  # release or reject
    decision: Decision
    reviewer: str
    reason: str
    before: MemoryRecord  # in quarantine
    record: MemoryRecord | None  # as it is now; None: it was removed
    supersedes: str | None
    readable: Readability | None  # None: it was removed
    tombstone: bool  # whether the removed content is known again when it comes again

    @property
    def changes(self) -> Mapping[str, tuple[Any, Any]]:
        """What is different now: attribute -> (before, now)."""
        if self.record is None:
            return {"status": (self.before.status, None)}
        names = ("status", "trust_level", "retention", "expires_at", "revision")
        pairs = {name: (getattr(self.before, name), getattr(self.record, name)) for name in names}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def to_document(self) -> dict[str, Any]:
        """Return the review_receipt document; of a removed record it holds no content."""
        return {
            "operation": self.operation,
            "record_id": self.before.memory_id,
            "tenant_id": self.before.tenant_id,
            "reviewer": self.reviewer,
            "reason": self.reason,
            "decision": self.decision.to_document(),
            "changes": {name: [_plain(old), _plain(new)] for name, (old, new) in self.changes.items()},
            "record": None if self.record is None else self.record.to_document(),
            "supersedes": self.supersedes,
            "readable": None if self.readable is None else self.readable.to_document(),
            "tombstone": self.tombstone,
        }


def _plain(value: Any) -> Any:
    return text_of(value) if isinstance(value, datetime) else value
