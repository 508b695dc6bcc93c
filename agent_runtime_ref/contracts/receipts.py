"""What a writer, and whoever asked to forget, gets in return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.contracts.decision import Decision
from agent_runtime_ref.contracts.record import MemoryRecord

__all__ = ["ForgetReceipt", "WriteReceipt"]


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
