"""The work after a reply, in its order: how it ended, candidates, curation, the exchange, compaction.

A job is a name and a function of the turn that waits. What a policy refuses is a decision and no failure;
what raises stays to be done again, and each job is written so that doing it twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from agent_runtime_ref.background.candidates import Proposer
from agent_runtime_ref.background.compaction import Compaction
from agent_runtime_ref.background.curated import CuratedTurns
from agent_runtime_ref.background.ends import late_end
from agent_runtime_ref.background.pending import Waiting
from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.curator.rules.text import asks_to_forget
from agent_runtime_ref.runtime import GovernedMemory
from agent_runtime_ref.telemetry.turns import Said, keeping

__all__ = ["CURATION", "ENDED", "CuratedIn", "Curation", "Exchanges", "Job", "jobs_of"]


class Curation(Protocol):
    """Who decides what a turn says of its user; what comes back is nobody's business here."""

    def curate_turn(self, user_text: str, reply: str, *, caller: Caller) -> object:
        """Split the turn into what holds for this session and what holds from now on, and keep both."""


class Exchanges(Protocol):
    """Where the exchanges of a thread are kept; `session_state.Sessions` is one."""

    def add_turn(
        self, thread_id: str, user_text: str, reply: str | None, *, caller: Caller, status: str
    ) -> object:
        """Keep an exchange; the same turn is not kept twice."""


# Which memory holds the standing preferences of a caller; None where there is none.
CuratedIn = Callable[[Caller], GovernedMemory | None]
Job = tuple[str, Callable[[Waiting], object]]
# The process that answers a turn tells how it ended; only another one, after its death, has that left to do.
ENDED = "ended"
CURATION = "curation"
_FORGETTING = "forget_preference"


def jobs_of(
    memory: GovernedMemory,
    *,
    propose: Proposer,
    curation: Curation | None = None,
    curated_in: CuratedIn | None = None,
    exchanges: Exchanges | None = None,
) -> Sequence[Job]:
    """Return the jobs of a turn over `memory`, in order; see `BackgroundWorker`."""
    curated = CuratedTurns()

    def end(waiting: Waiting) -> object:
        return memory.end_run(late_end(waiting))

    def write(waiting: Waiting) -> object:
        return memory.write_many(propose(waiting.turn), caller=waiting.turn.caller)

    def curate(waiting: Waiting) -> object:
        assert curation is not None
        turn = waiting.turn
        if waiting.again and curated.holds(turn, _kept_in(memory, curated_in, turn.caller)):
            return None
        if _FORGETTING in turn.tools and not asks_to_forget(turn.message):
            # The words that had something forgotten name it. A judge passes over them where they are known;
            # where they are not, they would teach it again.
            return None
        with keeping(Said(turn.turn_id, turn.at_us)):
            return curation.curate_turn(turn.message, turn.reply, caller=_in_conversation(turn.caller))

    def exchange(waiting: Waiting) -> object:
        # A step of its own: whether the turn had to be curated, or was before it failed here, is no matter.
        assert exchanges is not None
        turn, caller = waiting.turn, _in_conversation(waiting.turn.caller)
        if caller.session_id is None:
            return None
        status = "failed" if turn.status == "interrupted" else turn.status
        with keeping(Said(turn.turn_id, turn.at_us)):
            return exchanges.add_turn(
                caller.session_id, turn.message, turn.reply or None, caller=caller, status=status
            )

    jobs: list[Job] = [(ENDED, end), ("candidates", write)]
    jobs += [] if curation is None else [(CURATION, curate)]
    jobs += [] if exchanges is None else [("exchange", exchange)]
    return [*jobs, ("compaction", Compaction(memory))]


def _in_conversation(caller: Caller) -> Caller:
    """Return the caller as of a thread; a turn without one has its own, that nobody will come back to."""
    return replace(caller, session_id=None) if caller.session_id == caller.trace_id else caller


def _kept_in(memory: GovernedMemory, curated_in: CuratedIn | None, caller: Caller) -> list[GovernedMemory]:
    """Return where it may be on record that the caller's preferences changed."""
    other = None if curated_in is None else curated_in(caller)
    return [memory] if other is None or other is memory else [memory, other]
