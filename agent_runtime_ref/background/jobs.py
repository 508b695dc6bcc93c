"""The work after a reply, in its order: how it ended, candidates and write gate, curation, compaction.

A job is a name and a function of the turn that waits. What a policy refuses is a decision and no failure;
what raises stays to be done again, and each job is written so that doing it twice changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from agent_runtime_ref.background.candidates import Proposer
from agent_runtime_ref.background.compaction import Compaction
from agent_runtime_ref.background.pending import Waiting
from agent_runtime_ref.background.turn import Turn
from agent_runtime_ref.clock import instant
from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.curator.rules.text import asks_to_forget
from agent_runtime_ref.enforcement.runs import LateEnd
from agent_runtime_ref.runtime import GovernedMemory

__all__ = ["ENDED", "Curation", "Job", "jobs_of"]


class Curation(Protocol):
    """Who decides what a turn says of its user; what comes back is nobody's business here."""

    def curate_turn(self, user_text: str, reply: str, *, caller: Caller) -> object:
        """Split the turn into what holds for this session and what holds from now on, and keep both."""


Job = tuple[str, Callable[[Waiting], object]]
# The process that answers a turn tells how it ended; only another one, after its death, has that left to do.
ENDED = "ended"
_FORGETTING = "forget_preference"


def jobs_of(memory: GovernedMemory, *, propose: Proposer, curation: Curation | None) -> Sequence[Job]:
    """Return the jobs of a turn over `memory`, in order."""

    def end(waiting: Waiting) -> object:
        turn = waiting.turn
        return memory.end_run(LateEnd(turn.caller, turn.decision_id, waiting.built))

    def write(waiting: Waiting) -> object:
        return memory.write_many(propose(waiting.turn), caller=waiting.turn.caller)

    def curate(waiting: Waiting) -> object:
        assert curation is not None
        turn = waiting.turn
        if waiting.again and _was_curated(memory, turn):
            return None
        if _FORGETTING in turn.tools and not asks_to_forget(turn.message):
            # The words that had something forgotten name it. A judge passes over them where they are known;
            # where they are not, they would teach it again.
            return None
        caller = turn.caller
        if caller.session_id == caller.trace_id:
            # A turn without a conversation has one of its own that nobody will come back to.
            caller = replace(caller, session_id=None)
        return curation.curate_turn(turn.message, turn.reply, caller=caller)

    curating: list[Job] = [] if curation is None else [("curation", curate)]
    return [(ENDED, end), ("candidates", write), *curating, ("compaction", Compaction(memory))]


def _was_curated(memory: GovernedMemory, turn: Turn) -> bool:
    """Say whether the log tells that what a turn says of its user was kept: again would count twice."""
    needle = '"event_type":"preferences_curated"'
    events = (json.loads(line) for line in memory.log_lines() if needle in line)
    since = instant(turn.at_us)
    return any(
        one["trace_id"] == turn.caller.trace_id and datetime.fromisoformat(one["timestamp"]) >= since
        for one in events
    )
