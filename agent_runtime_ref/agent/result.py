"""What a turn came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agent_runtime_ref.agent.layers import Layer, Manifest
from agent_runtime_ref.contracts import Decision
from agent_runtime_ref.telemetry.events import Event
from agent_runtime_ref.telemetry.turns import Told

__all__ = ["TurnResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """A turn's reply, and all that is known of how it came about."""

    reply: str  # empty where there is none
    status: str  # complete, denied or failed
    layers: tuple[Layer, ...]  # static, session, retrieved, tool
    manifest: Manifest | None  # None: nothing was built, since the turn was refused
    context: str = field(repr=False)  # the text of the layers, as it was shown
    context_digest: str | None  # of that text, keyed; None as above
    decision: Decision  # of the precheck, and of the retrieval that carried it out
    error: str | None  # a sentence that says why there is no reply
    model: str
    turn_id: str
    trace_id: str
    session_id: str
    told: Told = field(repr=False, compare=False)

    @property
    def events(self) -> tuple[Event, ...]:
        """Every event of the turn so far; those of its background work come in until it is done."""
        return self.told.events()

    def to_document(self) -> dict[str, Any]:
        """Return the result as a mapping of plain values; of the context it holds the manifest alone."""
        return {
            "reply": self.reply,
            "status": self.status,
            "error": self.error,
            "layers": [layer.to_document() for layer in self.layers],
            "manifest": None if self.manifest is None else self.manifest.to_document(),
            "context_digest": self.context_digest,
            "decision": self.decision.to_document(),
            "model": self.model,
            "turn_id": self.turn_id,
            "trace_id": self.trace_id,
            "session_id": self.session_id,
            "events": [event.to_document() for event in self.events],
        }
