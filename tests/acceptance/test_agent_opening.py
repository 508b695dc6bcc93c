"""What `AgentRuntime.open` holds is given up again: when it fails, and when the runtime is closed."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import AgentRuntime, GovernedMemory
from agent_runtime_ref.agent import runtime as module
from agent_runtime_ref.background import Turn, taken_over
from agent_runtime_ref.background.pending import PendingFile
from agent_runtime_ref.background.places import pending_folder
from agent_runtime_ref.errors import StoreError, UsageError
from agent_runtime_ref.preferences import PreferenceStore
from agent_runtime_ref.testing import CountedIds
from tests.support import caller
from tests.turns import tool


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    """A file: what waits outlives a process there."""
    return f"sqlite:{tmp_path / 'memory.db'}"


def left_behind(memory: GovernedMemory) -> Path:
    """Return the folder in which a process that died left one turn."""
    folder = pending_folder(memory)
    assert folder is not None
    turn = Turn(
        turn_id="turn-1",
        caller=caller(),
        purpose="answer_generation",
        message="Where do support tickets go?",
        reply="To the queue.",
        status="complete",
        at_us=1,
        decision_id="dec-1",
        mark=memory.subject_mark(caller=caller()),
    )
    file = PendingFile.in_folder(folder, CountedIds())
    file.put(turn, None)
    file.close()
    return folder


def waiting(folder: Path) -> list[str]:
    """Return the turns that nobody holds."""
    found = []
    for file in taken_over(folder):
        found += [one.turn.turn_id for one in file.waiting]
        file.close()
    return found


def workers() -> list[str]:
    """Return the threads of workers that run."""
    return [one.name for one in threading.enumerate() if one.name == "background-worker"]


def test_a_runtime_that_cannot_be_opened_takes_nothing_over(memory: GovernedMemory) -> None:
    """What waits stays for the next one that opens: no thread works on it, and nobody holds its file."""
    folder = left_behind(memory)
    before = workers()
    twice = [tool("same", lambda *_, **__: "x")] * 2

    with pytest.raises(UsageError, match="two tools"):
        AgentRuntime.open(memory, tools=twice)

    assert workers() == before
    assert waiting(folder) == ["turn-1"]


def test_a_taking_over_that_fails_ends_the_worker(
    memory: GovernedMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was taken before the failure is done, and the thread ends with it."""
    folder = left_behind(memory)
    before = workers()

    def failing(place: Path) -> Any:
        yield from taken_over(place)
        raise StoreError(str(place), "gone")

    monkeypatch.setattr(module, "taken_over", failing)
    with pytest.raises(StoreError, match="gone"):
        AgentRuntime.open(memory)

    assert workers() == before
    assert waiting(folder) == []


@pytest.mark.parametrize("is_given", [False, True], ids=["of its own", "given"])
def test_a_runtime_closes_the_preferences_that_it_opened(
    memory: GovernedMemory, monkeypatch: pytest.MonkeyPatch, is_given: bool
) -> None:
    """Those that somebody gave it stay open."""
    closed: list[PreferenceStore] = []
    monkeypatch.setattr(PreferenceStore, "close", lambda store: closed.append(store))
    given = PreferenceStore(memory=memory) if is_given else None
    runtime = AgentRuntime.open(memory, preferences=given)
    assert closed == []
    runtime.close()

    assert len(closed) == (0 if is_given else 1)
