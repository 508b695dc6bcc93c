"""Which turns a log says were curated: asked of every turn whose curation is begun again.

Each line of a log is read once by a process, however many turns ask.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from agent_runtime_ref.background.turn import Turn
from agent_runtime_ref.runtime import GovernedMemory
from agent_runtime_ref.telemetry.chain import number

__all__ = ["CuratedTurns"]

_NEEDLE = b'"event_type":"preferences_curated"'


@dataclass(slots=True)
class _Log:
    """How far each chain of a memory's log was read, and what turns it names by then."""

    reached: dict[str, int] = field(default_factory=dict)
    turns: set[str] = field(default_factory=set)

    def read_on(self, memory: GovernedMemory, tenant_id: str) -> None:
        """Read what was written since, where the events of a tenant stand."""
        for chain in memory.log_chains(tenant_id=tenant_id):
            for line in chain.raw(self.reached.get(chain.name, 0)):
                self.reached[chain.name] = number(line) or self.reached.get(chain.name, 0)
                if _NEEDLE in line:
                    self._take(line)

    def _take(self, line: bytes) -> None:
        named = json.loads(line)["payload"].get("turn_id")
        if isinstance(named, str):
            self.turns.add(named)


class CuratedTurns:
    """Answers from the logs of memories, and remembers how far it has read them. For one thread."""

    def __init__(self) -> None:
        self._logs: WeakKeyDictionary[GovernedMemory, _Log] = WeakKeyDictionary()

    def holds(self, turn: Turn, memories: Sequence[GovernedMemory]) -> bool:
        """Say whether a log tells that what a turn says of its user was kept: again would count twice.

        By its turn, not by its trace: a trace may have several, and a tool of the turn may change
        preferences.
        """
        for memory in memories:
            log = self._logs.setdefault(memory, _Log())
            log.read_on(memory, turn.caller.tenant_id)
            if memory.log_name(turn.turn_id) in log.turns:
                return True
        return False
