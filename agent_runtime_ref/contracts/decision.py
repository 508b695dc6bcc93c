"""What the policy answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref import validation

__all__ = ["Decision"]


@dataclass(frozen=True, slots=True)
class Decision:
    """One answer of the decision point (PDP), or the refusal that stands in for an answer."""

    decision_id: str
    operation: str
    effect: str  # allow, deny or quarantine
    reasons: tuple[str, ...]
    rule_ids: tuple[str, ...]
    obligations: tuple[Mapping[str, Any], ...]
    policy_digest: str
    policy_revision: str
    engine: str
    duration_ns: int

    def to_document(self) -> dict[str, Any]:
        """Return the decision document."""
        return {
            "decision_id": self.decision_id,
            "operation": self.operation,
            "effect": self.effect,
            "reasons": list(self.reasons),
            "rule_ids": list(self.rule_ids),
            "obligations": [dict(obligation) for obligation in self.obligations],
            "policy_digest": self.policy_digest,
            "policy_revision": self.policy_revision,
            "engine": self.engine,
            "duration_ns": self.duration_ns,
        }

    @classmethod
    def from_document(cls, source: object) -> Decision:
        """Return the decision of a decision document: a mapping, or the path of a file."""
        document = validation.load_document(source, schema="decision")
        lists = {name: tuple(document[name]) for name in ("reasons", "rule_ids", "obligations")}
        return cls(**{**document, **lists})
