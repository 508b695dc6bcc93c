"""A conversation that several processes answer: each knows what was said in it to the others.

The other process is a file of turns that wait, which is all that one process sees of another; its lock is
held as by a process that lives, and let go as by one that dies.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import AgentRuntime, GovernedMemory
from agent_runtime_ref.agent import Answer
from agent_runtime_ref.background import BackgroundWorker, PendingFile, Turn, taken_over
from agent_runtime_ref.background.places import pending_folder
from agent_runtime_ref.config import load_settings
from agent_runtime_ref.session_state import Sessions
from agent_runtime_ref.testing import CountedIds
from tests.support import caller
from tests.turns import Scripted, answered


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[GovernedMemory]:
    """Governed memory over a file, as several processes have it open."""
    with GovernedMemory.open(f"sqlite:{tmp_path / 'memory.db'}") as opened:
        yield opened


@pytest.fixture
def other(memory: GovernedMemory) -> Iterator[PendingFile]:
    """The file of another process."""
    folder = pending_folder(memory)
    assert folder is not None
    file = PendingFile.in_folder(folder, CountedIds())
    yield file
    file.close()


def said(memory: GovernedMemory, **changes: Any) -> Turn:
    """Return a turn that another process has answered."""
    base = {"turn_id": "turn-other", "message": "No plastic, please.", "decision_id": "dec-other"}
    mark = memory.subject_mark(caller=caller())
    return answered(**(base | {"mark": mark} | changes))


def opened(memory: GovernedMemory, folder: Path, wait_ms: int = 0) -> AgentRuntime:
    """Return a runtime that waits so long for what was said before."""
    settings = load_settings()
    settings = replace(settings, agent=replace(settings.agent, thread_wait_ms=wait_ms))
    sessions = Sessions(memory, folder=folder / "sessions")
    return AgentRuntime.open(memory, settings, Scripted(Answer("yes")), sessions=sessions)


def test_a_turn_waits_for_another_process(memory: GovernedMemory, other: PendingFile, tmp_path: Path) -> None:
    """What that process was told is not kept yet, so the turn fails; once it is curated the next goes on."""
    other.put(said(memory), None)
    with opened(memory, tmp_path) as runtime:
        late = runtime.run("And which box?", caller=caller())
        assert runtime.drain()
        other.mark("turn-other", done="curation")
        again = runtime.run("And which box?", caller=caller())
        assert runtime.drain()

    assert [late.status, again.status] == ["failed", "complete"]
    assert "ask again" in (late.error or "")


def test_a_turn_goes_on_as_soon_as_another_process_is_done(
    memory: GovernedMemory, other: PendingFile, tmp_path: Path
) -> None:
    """It looks again and again, for as long as it may wait."""
    other.put(said(memory), None)
    timer = threading.Timer(0.05, lambda: other.finish("turn-other"))
    with opened(memory, tmp_path, wait_ms=60_000) as runtime:
        timer.start()
        result = runtime.run("And which box?", caller=caller())
        timer.join()

    assert result.status == "complete"


@pytest.mark.parametrize(
    ("changes", "marks"),
    [
        ({"caller": caller(session_id="session-002")}, {}),
        ({"caller": caller(principal_id="user-7")}, {}),
        ({"status": "interrupted", "reply": ""}, {}),
        ({}, {"attempts": 1}),
    ],
    ids=["another thread", "another user", "still answered", "broken by itself"],
)
def test_a_turn_does_not_wait_for_what_is_not_its_thread(
    memory: GovernedMemory, other: PendingFile, tmp_path: Path, changes: dict[str, Any], marks: dict[str, int]
) -> None:
    """Only for what was answered in its own thread, and not for a curation that is broken by itself."""
    other.put(said(memory, **changes), None)
    if marks:
        other.mark("turn-other", **marks)
    with opened(memory, tmp_path) as runtime:
        result = runtime.run("And which box?", caller=caller())

    assert result.status == "complete"


def test_what_a_process_leaves_that_dies_is_taken_over(
    memory: GovernedMemory, other: PendingFile, tmp_path: Path
) -> None:
    """The next turn does it before it goes on; nobody has to open the runtime anew."""
    with opened(memory, tmp_path, wait_ms=60_000) as runtime:
        other.put(said(memory), None)
        other.close()  # as a process that dies lets go of it
        result = runtime.run("And which box?", caller=caller())
        assert runtime.drain()

    assert result.status == "complete"
    assert "<session_constraints>" in result.context
    assert not other.path.exists()


def test_a_file_that_is_taken_for_a_dead_ones_is_made_anew(
    tmp_path: Path, memory: GovernedMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its making and its lock a file looks like that of a process that died, and may be removed."""
    from agent_runtime_ref.background import pending

    locks, rivals = pending._locked, [True]

    def racing(descriptor: int) -> bool:
        if rivals:
            rivals.clear()
            for file in taken_over(tmp_path):  # a process that looks for the files of the dead
                file.close()
        return locks(descriptor)

    monkeypatch.setattr(pending, "_locked", racing)
    file = PendingFile.in_folder(tmp_path, CountedIds())
    file.put(said(memory), None)
    file.close()

    (found,) = taken_over(tmp_path)
    assert [one.turn.turn_id for one in found.waiting] == ["turn-other"]
    found.close()


def test_a_forked_child_keeps_its_turns_in_a_file_of_its_own(memory: GovernedMemory, tmp_path: Path) -> None:
    """What the parent left can be taken over though the child lives, and the child's own is written down."""
    folder = tmp_path / "pending"
    done = threading.Event()
    worker = BackgroundWorker(
        memory, pending=PendingFile.in_folder(folder, CountedIds()), jobs=[("job", lambda _: done.wait(60))]
    )
    worker.pending.put(said(memory), None)
    tells, hears = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        worker.drain()  # notices that it was forked
        worker.pending.put(said(memory, turn_id="turn-child"), None)
        os.write(tells[1], b".")
        os.read(hears[0], 1)
        os._exit(0)
    os.read(tells[0], 1)
    worker.pending.close()  # as the parent's death would
    found = {one.turn.turn_id for file in taken_over(folder) for one in file.waiting}
    os.write(hears[1], b".")
    os.waitpid(child, 0)
    names = sorted(path.name for path in folder.iterdir())
    done.set()
    worker.close()

    assert found == {"turn-other"}
    assert len(names) == 2
    for descriptor in (*tells, *hears):
        os.close(descriptor)
