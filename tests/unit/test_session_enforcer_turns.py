"""Constraints are those of the turn: none is let through without one, and no turn sees another's."""

from __future__ import annotations

import asyncio
import threading
from contextvars import copy_context

import pytest

from agent_runtime_ref.errors import NoTurnError
from agent_runtime_ref.session_state import Enforcer, SessionState, in_turn, merge
from tests.constraining import finding
from tests.enforcing import ITEMS, ids


def test_without_a_turn_nothing_is_let_through() -> None:
    """A context that nobody set is an error: it would look like having no constraints."""
    with pytest.raises(NoTurnError):
        Enforcer().apply(ITEMS)

    with in_turn(SessionState()):
        failed: list[Exception] = []
        thread = threading.Thread(target=_tried, args=(failed,))
        thread.start()
        thread.join()
        assert [type(error) for error in failed] == [NoTurnError]
        handed_over = threading.Thread(target=copy_context().run, args=(_tried, failed))
        handed_over.start()
        handed_over.join()
        assert len(failed) == 1


def _tried(failed: list[Exception]) -> None:
    try:
        Enforcer().apply(ITEMS)
    except NoTurnError as error:
        failed.append(error)


def test_turns_may_be_nested() -> None:
    """A turn within a turn has its own constraints, and gives those of before back."""
    with in_turn(merge(SessionState(), [finding("plastic")])):
        with in_turn(merge(SessionState(), [finding("tin")])):
            assert ids(Enforcer().apply(ITEMS)) == ["box", "bag"]
        assert ids(Enforcer().apply(ITEMS)) == ["tin", "bag"]


WORDS = ["plastic", "tin", "canvas"]


def test_parallel_threads_never_see_each_others_constraints() -> None:
    """Every thread is in the middle of its turn while the others are; each keeps to its own."""
    found: dict[int, list[list[str]]] = {}
    barrier = threading.Barrier(6)

    def turn(number: int) -> None:
        with in_turn(merge(SessionState(), [finding(WORDS[number % 3])])):
            barrier.wait(30)
            found[number] = [ids(Enforcer().apply(ITEMS)) for _ in range(20)]
            barrier.wait(30)

    threads = [threading.Thread(target=turn, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    left = [["tin", "bag"], ["box", "bag"], ["box", "tin"]]
    assert found == {number: [left[number % 3]] * 20 for number in range(6)}


def test_parallel_tasks_never_see_each_others_constraints() -> None:
    """The same for tasks of one loop, which take turns at every await, and for the threads they use."""

    async def turn(number: int) -> list[list[str]]:
        with in_turn(merge(SessionState(), [finding(WORDS[number % 3])])):
            seen = []
            for _ in range(5):
                await asyncio.sleep(0)
                seen.append(ids(Enforcer().apply(ITEMS)))
            seen.append(ids(await asyncio.to_thread(Enforcer().apply, ITEMS)))
            return seen

    async def all_turns() -> list[list[list[str]]]:
        return await asyncio.gather(*(turn(number) for number in range(9)))

    left = [["tin", "bag"], ["box", "bag"], ["box", "tin"]]
    assert asyncio.run(all_turns()) == [[left[number % 3]] * 6 for number in range(9)]
