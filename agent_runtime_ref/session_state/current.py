"""Whose constraints count here and now: a context variable that the runtime sets and the enforcer reads.

A tool's arguments come from a model, which may leave out what it was told two turns ago. So what is
enforced does not go through them. Each thread and each asyncio task has a context of its own, and turns that
run side by side never see each other's; a thread that a tool starts itself is handed the context
(`copy_context().run`, which `asyncio.to_thread` does by itself), or the enforcer refuses to work there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from agent_runtime_ref.errors import NoTurnError
from agent_runtime_ref.session_state.state import SessionState

__all__ = ["Standing", "TurnConstraints", "current", "in_turn"]


class Standing(Protocol):
    """What the enforcer needs of a long-term preference; whoever keeps them need not be known here."""

    @property
    def polarity(self) -> str:
        """`like` or `dislike`."""

    @property
    def strength(self) -> str:
        """`hard` or `soft`."""

    @property
    def category(self) -> str:
        """The kind of thing: `material`."""

    @property
    def domain(self) -> str:
        """Where it counts; `general` is everywhere."""

    @property
    def slug(self) -> str:
        """The thing: `plastic`."""


@dataclass(frozen=True, slots=True)
class TurnConstraints:
    """All that is enforced in a turn: the session's constraints, and what the user always or never wants."""

    state: SessionState
    standing: tuple[Standing, ...] = ()


_CURRENT: ContextVar[TurnConstraints | None] = ContextVar("agent_runtime_ref.turn_constraints", default=None)


@contextmanager
def in_turn(state: SessionState, standing: Iterable[Standing] = ()) -> Iterator[TurnConstraints]:
    """Have the constraints of a turn enforced within the block, and those of before again behind it."""
    constraints = TurnConstraints(state, tuple(standing))
    token = _CURRENT.set(constraints)
    try:
        yield constraints
    finally:
        _CURRENT.reset(token)


def current() -> TurnConstraints:
    """Return the constraints of the turn that runs here.

    Raises:
        NoTurnError: none runs. To enforce nothing would look the same as to have nothing to enforce.
    """
    constraints = _CURRENT.get()
    if constraints is None:
        raise NoTurnError("no turn runs in this context")
    return constraints
