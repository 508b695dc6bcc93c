"""How a turn ends that nobody told the end of: of its own caller, or of nobody where he was forgotten.

A run that began has an end in the log, whatever became of its person. But a line about somebody who was
forgotten would make his name a key again, so the end is told of nobody; decision and trace say which turn.
"""

from __future__ import annotations

from dataclasses import replace

from agent_runtime_ref.background.pending import Waiting
from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.enforcement.runs import LateEnd

__all__ = ["late_end", "of_nobody"]

_NOBODY = "anonymous"


def late_end(waiting: Waiting) -> LateEnd:
    """Return the end of a turn as it has to be told now."""
    turn = waiting.turn
    return LateEnd(turn.caller, turn.decision_id, waiting.built, turn.log_seq)


def of_nobody(waiting: Waiting) -> Waiting:
    """Return a turn as of nobody in particular: without its subject, and without its words."""
    turn = waiting.turn
    return replace(waiting, turn=replace(turn, caller=_without_subject(turn.caller), message="", reply=""))


def _without_subject(caller: Caller) -> Caller:
    """Return the caller without the subject; somebody else who acted for it stays."""
    is_own = caller.principal_id == caller.own_subject
    return replace(caller, principal_id=_NOBODY if is_own else caller.principal_id, subject=None)
