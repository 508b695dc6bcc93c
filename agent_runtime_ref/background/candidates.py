"""What a turn offers to memory: the words of the user, as a conversation that can be recalled.

A reply is not offered. It repeats what was retrieved, and a memory that is written back because it was read
would feed on itself and pass for new evidence. What a conversation says of its user is the curator's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agent_runtime_ref.background.turn import Turn
from agent_runtime_ref.clock import instant
from agent_runtime_ref.contracts import MemoryCandidate, Origin
from agent_runtime_ref.contracts.projection import CONVERSATION, CONVERSATION_CLASS

__all__ = ["Proposer", "conversation_of"]

Proposer = Callable[[Turn], Sequence[MemoryCandidate]]
CONFIDENCE = 1.0  # that it was said, not that it is so


def conversation_of(turn: Turn) -> Sequence[MemoryCandidate]:
    """Return the user's message as one candidate.

    It comes from the turn, which is its provenance: so the same words in two turns are two conversations, and
    a turn that is worked on again adds nothing.
    """
    caller = turn.caller
    origin = Origin(caller.session_id or turn.turn_id, "conversation", "user message", instant(turn.at_us))
    return (
        MemoryCandidate(
            caller.tenant_id,
            CONVERSATION_CLASS,
            CONVERSATION,
            turn.message,
            "user_input",
            CONFIDENCE,
            turn.turn_id,
            subject=caller.own_subject,
            origin=origin,
        ),
    )
