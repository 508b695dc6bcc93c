"""What other processes over the same store still have to do about a thread.

Turns of one conversation may be answered by several processes. What one of them has not kept yet stands in
its file of turns that wait, which every process of the same user can read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from agent_runtime_ref.background.pending import NOT_OURS, SUFFIX, Waiting, applied

__all__ = ["waits_elsewhere"]


def waits_elsewhere(folder: Path, own: Path, is_meant: Callable[[Waiting], bool]) -> bool:
    """Say whether a turn that `is_meant` waits in a file of `folder` beside the one called `own`.

    A turn that was put aside has a file under its own name, and is waited for by nobody.
    """
    return any(
        path != own and any(is_meant(one) and one.turn.turn_id != path.stem for one in _seen(path))
        for path in folder.glob("*" + SUFFIX)
    )


def _seen(path: Path) -> Iterator[Waiting]:
    """Yield what waits in a file that another process may be writing to; what is no line of ours is not."""
    waiting: dict[str, Waiting] = {}
    with suppress(OSError):  # it has just been removed
        for line in path.read_bytes().split(b"\n")[:-1]:
            with suppress(*NOT_OURS):
                applied(waiting, json.loads(line))
    yield from waiting.values()
