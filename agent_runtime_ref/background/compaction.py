"""Compaction as a job behind a turn: how often whose memory is looked through.

Looking through a person's memory costs as much as there is of it, so the larger it is the more turns pass
before it is done again: over many turns each one pays for about ten records.
"""

from __future__ import annotations

from collections import OrderedDict

from agent_runtime_ref.background.pending import Waiting
from agent_runtime_ref.errors import EngineFailureError, PolicyDeniedError, StoreCapabilityError
from agent_runtime_ref.runtime import GovernedMemory
from agent_runtime_ref.telemetry import diagnostics

__all__ = ["Compaction"]

RECORDS_A_TURN = 10
# Where the policy refuses it, or there is more than one read looks through, asking again soon is no use.
TURNS_OFF = 1_000
SCOPES_MAX = 10_000


class Compaction:
    """Merges repetitions in the memory of whoever had a turn. For the one thread of a worker."""

    def __init__(self, memory: GovernedMemory) -> None:
        self._memory = memory
        self._wait: OrderedDict[tuple[str, str, str], int] = (
            OrderedDict()
        )  # turns until it is looked at again

    def __call__(self, waiting: Waiting) -> None:
        """Merge, if it is time to.

        Raises:
            EngineFailureError, StoreError: what was merged before stays merged.
        """
        turn = waiting.turn
        scope = (turn.caller.tenant_id, turn.caller.own_subject, turn.purpose)
        left = self._wait.pop(scope, 0)
        self._wait[scope] = left - 1 if left else self._merged(waiting)
        while len(self._wait) > SCOPES_MAX:
            self._wait.popitem(last=False)

    def _merged(self, waiting: Waiting) -> int:
        """Merge, and return for how many turns that will do."""
        turn = waiting.turn
        try:
            done = self._memory.compact(caller=turn.caller, purpose=turn.purpose)
        except EngineFailureError:
            raise
        except (PolicyDeniedError, StoreCapabilityError) as error:
            diagnostics.warning("compaction_left_out", reason=type(error).__name__)
            return TURNS_OFF
        return TURNS_OFF if done.refused else done.examined // RECORDS_A_TURN
