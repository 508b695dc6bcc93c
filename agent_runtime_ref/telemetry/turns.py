"""The turn that is under way in this context, so that its gates tell of it once and in one place.

A turn of the runtime reads and writes through the same gates as everybody. What it adds is in a context
variable: a read inside it leaves `context_layers_built` to the turn, and every event is also handed to it.
Nothing of a turn that runs beside it, in another thread or task, is seen here.

So is the turn of which what was said is being kept, behind its reply: what the gates then write says which
turn it is of, and what was taken back since stays so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from agent_runtime_ref.telemetry.events import Event

__all__ = ["Said", "Told", "current", "inside", "keeping", "looking", "said", "tells_contexts"]


class Told:
    """The events of one turn, in the order in which they were written down."""

    __slots__ = ("_events",)

    def __init__(self) -> None:
        self._events: list[Event] = []

    def add(self, events: Iterable[Event]) -> None:
        """Take events that the log holds."""
        self._events.extend(events)

    def events(self) -> tuple[Event, ...]:
        """Return what was told so far."""
        return tuple(self._events)


_CURRENT: ContextVar[Told | None] = ContextVar("agent_runtime_ref_turn", default=None)


def current() -> Told | None:
    """Return the turn of this context; None outside of one."""
    return _CURRENT.get()


@contextmanager
def inside(told: Told) -> Iterator[None]:
    """Make `told` the turn of this context for as long as the block lasts."""
    token = _CURRENT.set(told)
    try:
        yield
    finally:
        _CURRENT.reset(token)


_LOOKING: ContextVar[bool] = ContextVar("agent_runtime_ref_look", default=False)


@contextmanager
def looking() -> Iterator[None]:
    """Have the reads of the block be looks: somebody sees what is kept, and no agent is handed a context."""
    token = _LOOKING.set(True)
    try:
        yield
    finally:
        _LOOKING.reset(token)


def tells_contexts() -> bool:
    """Tell whether a read of its own accord tells of the context that its answer is."""
    return current() is None and not _LOOKING.get()


@dataclass(frozen=True, slots=True)
class Said:
    """A turn of which what was said is being kept."""

    turn_id: str
    at_us: int  # when the message came


_SAID: ContextVar[Said | None] = ContextVar("agent_runtime_ref_said", default=None)


def said() -> Said | None:
    """Return the turn of which something is being kept in this context; None where nothing is."""
    return _SAID.get()


@contextmanager
def keeping(turn: Said) -> Iterator[None]:
    """Have what is written in the block be of `turn`."""
    token = _SAID.set(turn)
    try:
        yield
    finally:
        _SAID.reset(token)
