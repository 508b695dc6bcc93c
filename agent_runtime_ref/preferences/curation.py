"""What stands between preferences and their writer: the curator, as a protocol.

Preferences do not know the curator. Whoever composes the two hands it in; where nobody did, it is looked up
when the first finding is to be kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from agent_runtime_ref.contracts import Caller, Decision
from agent_runtime_ref.contracts.finding import Finding

if TYPE_CHECKING:
    from agent_runtime_ref.runtime import GovernedMemory

__all__ = ["OUTCOMES", "Curated", "Curation", "default_curation"]

# added: nothing stood there · repeated: something did, and is surer now · kept: an inference, and what the
# user stated stands · contradicted: by a later finding of the same call · forgotten: its user took it back
# after it was said · quarantined, refused: by the policy · invalid: it was no preference
OUTCOMES = ("added", "repeated", "kept", "contradicted", "forgotten", "quarantined", "refused", "invalid")


@dataclass(frozen=True, slots=True)
class Curated:
    """What became of one finding."""

    key: str  # derived; empty where none could be
    outcome: str  # one of OUTCOMES
    record_id: str | None = None
    decision: Decision | None = None  # None where the policy was not asked
    superseded: tuple[str, ...] = ()  # keys whose records were removed, because this contradicts them
    problem: str | None = None  # of what was invalid

    def to_document(self) -> dict[str, Any]:
        """Return it as a mapping of plain values."""
        return {
            "key": self.key,
            "outcome": self.outcome,
            "record_id": self.record_id,
            "decision": None if self.decision is None else self.decision.to_document(),
            "superseded": list(self.superseded),
            "problem": self.problem,
        }


class Curation(Protocol):
    """Keeps findings; the curator does, and nobody else can."""

    def keep(
        self,
        findings: Sequence[Finding],
        *,
        memory: GovernedMemory,
        caller: Caller,
        source_session: str | None = None,
    ) -> tuple[Curated, ...]:
        """Keep standing preferences of the caller's subject, and say what became of each, in order."""


def default_curation() -> Curation:
    """Return the curator's own."""
    # The one import upwards, declared in the import contracts: a registration at import would have to run
    # before anybody uses preferences, and every command would pay for it.
    from agent_runtime_ref.curator.keeping import KEEPER

    return KEEPER
