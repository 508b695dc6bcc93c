"""How far an export is behind, for somebody who watches it and does not deliver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Protocol

from agent_runtime_ref.export.cursor import Reached, reached_in
from agent_runtime_ref.export.outgoing import is_event
from agent_runtime_ref.runtime import Chain

# Who is further behind than this knows that something is wrong; reading on would not tell him more.
LINES_MAX = 100_000


class Logged(Protocol):
    """What has a decision log; an open memory has."""

    def log_chains(self, *, read: bool = False) -> Iterable[Chain]:
        """The chains of the log of writes, or of reads."""


def backlog(memory: Logged, cursor: str | Path) -> Mapping[str, int]:
    """How many events the exporter with this cursor has not delivered, by log: `writes`, `reads` or `log`.

    Of each chain at most the next 100,000 lines are looked at. The exporter may run meanwhile.

    Raises:
        CursorError: the file is no cursor of an export.
    """
    reached = reached_in(Path(cursor))
    found: Counter[str] = Counter()
    for read in (False, True):
        for chain in memory.log_chains(read=read):
            start = reached.get(chain.name, Reached()).seq
            lines = islice(chain.raw(start), LINES_MAX)
            found[chain.name.partition(":")[0]] += sum(map(is_event, lines))
    return found
