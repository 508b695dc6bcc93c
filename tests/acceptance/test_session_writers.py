"""Several writers of one thread, and writers that end in the middle: nothing is lost or half-written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.errors import SessionStateError, StoreError
from agent_runtime_ref.session_state import Sessions
from agent_runtime_ref.testing import CountedIds, FrozenClock
from tests.constraining import finding
from tests.support import caller

THREAD = "thread-1"
USER = caller(subject="user-42")
# One process merges ten constraints, one at a time; another does so at the same time.
WRITER = """
import sys
from agent_runtime_ref import Caller, GovernedMemory
from agent_runtime_ref.session_state import Sessions
from tests.constraining import finding

user = Caller("tenant-acme", "user-42", subject="user-42")
with GovernedMemory.open("memory:") as memory:
    sessions = Sessions(memory, folder=sys.argv[1])
    for number in range(10):
        sessions.merge("thread-1", [finding(f"{sys.argv[2]}-{number}")], caller=user)
"""


def test_processes_lose_none_of_each_others_constraints(tmp_path: Path) -> None:
    """A merge reads and replaces the file under one lock, so every constraint of either is there."""
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name], cwd=Path(__file__).parents[2])
        for name in ("left", "right")
    ]
    assert [process.wait(100) for process in processes] == [0, 0]

    with GovernedMemory.open("memory:") as memory:
        state = Sessions(memory, folder=tmp_path).load(THREAD, caller=USER)
    assert {one.slug for one in state.findings} == {
        f"{name}-{number}" for name in ("left", "right") for number in range(10)
    }


def test_threads_merge_clear_and_read_side_by_side(tmp_path: Path) -> None:
    """Whoever reads sees a whole state, whatever the others do; at the end the last clearing counts."""
    with GovernedMemory.open("memory:") as memory:
        sessions = Sessions(memory, folder=tmp_path)
        failed: list[BaseException] = []
        done = threading.Event()

        def read() -> None:
            try:
                while not done.is_set():
                    assert sessions.look(THREAD, caller=USER, aside=True).damaged is None
            except BaseException as error:
                failed.append(error)

        def write(name: str) -> None:
            try:
                for number in range(15):
                    sessions.merge(THREAD, [finding(f"{name}-{number}")], caller=USER)
                    if number % 5 == 4:
                        sessions.clear(THREAD, caller=USER)
            except BaseException as error:
                failed.append(error)

        reader = threading.Thread(target=read)
        writers = [threading.Thread(target=write, args=(name,)) for name in ("left", "right")]
        for thread in (reader, *writers):
            thread.start()
        for thread in writers:
            thread.join()
        done.set()
        reader.join()
        sessions.clear(THREAD, caller=USER)

    assert failed == []
    assert list(tmp_path.glob("*/*")) == []


def test_a_folder_that_goes_while_it_is_opened_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer may clear a thread, or sweep it, just before this one has it open."""
    opening, gone = os.open, []

    def goes_once(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if flags & os.O_DIRECTORY and Path(path).is_relative_to(tmp_path) and not gone:
            gone.append(path)
            os.rmdir(path)
        return opening(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", goes_once)
    with GovernedMemory.open("memory:") as memory:
        receipt = Sessions(memory, folder=tmp_path).merge(THREAD, [finding("plastic")], caller=USER)

    assert gone
    assert [one.slug for one in receipt.state.findings] == ["plastic"]


def test_a_folder_that_goes_while_its_file_is_read_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who looks takes no lock: a thread that is cleared under his eyes is an empty one."""
    opening, gone = os.open, []

    def goes_afterwards(path: Any, flags: int, *more: Any, **options: Any) -> int:
        descriptor = opening(path, flags, *more, **options)
        if Path(path).name == "pt.json" and not gone:
            gone.append(path)
            os.unlink(path)
            os.rmdir(Path(path).parent)
        return descriptor

    with GovernedMemory.open("memory:") as memory:
        sessions = Sessions(memory, folder=tmp_path)
        sessions.merge(THREAD, [finding("plastic")], caller=USER)
        monkeypatch.setattr(os, "open", goes_afterwards)
        looked = sessions.look(THREAD, caller=USER, aside=True)

    assert gone
    assert (looked.damaged, looked.state.findings) == (None, ())


def test_what_a_dead_writer_left_is_no_part_of_the_state(tmp_path: Path) -> None:
    """A file that was being prepared is neither read nor in the way of the next one."""
    clock = FrozenClock()
    with GovernedMemory.open("memory:", clock=clock) as memory:
        sessions = Sessions(memory, folder=tmp_path, clock=clock)
        sessions.merge(THREAD, [finding("plastic")], caller=USER)
        (file,) = tmp_path.glob("*/*/pt.json")
        left = file.with_name(".pt.json.new")
        left.write_text('{"version": 1, "half', encoding="utf-8")

        assert len(sessions.load(THREAD, caller=USER).findings) == 1
        sessions.merge(THREAD, [finding("leather")], caller=USER)

        assert not left.exists()
        assert len(sessions.load(THREAD, caller=USER).findings) == 2


def test_a_file_that_cannot_be_replaced_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the last step fails the old state stands, and the error says so."""
    with GovernedMemory.open("memory:") as memory:
        sessions = Sessions(memory, folder=tmp_path)
        sessions.merge(THREAD, [finding("plastic")], caller=USER)
        before = next(tmp_path.glob("*/*/pt.json")).read_bytes()

        def full(*words: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "replace", full)
        with pytest.raises(SessionStateError, match="no space left"):
            sessions.merge(THREAD, [finding("leather")], caller=USER)

        assert next(tmp_path.glob("*/*/pt.json")).read_bytes() == before


def test_without_its_log_nothing_is_merged(tmp_path: Path) -> None:
    """A decision that cannot be written down changes no file."""
    memory = GovernedMemory.open("memory:")
    sessions = Sessions(memory, folder=tmp_path)
    sessions.merge(THREAD, [finding("plastic")], caller=USER)
    (file,) = tmp_path.glob("*/*/pt.json")
    before = file.read_bytes()
    memory.close()

    with pytest.raises(StoreError):
        sessions.merge(THREAD, [finding("leather")], caller=USER)

    assert file.read_bytes() == before


def test_the_file_is_the_same_bytes_for_the_same_turns(tmp_path: Path) -> None:
    """With a clock and ids that are given, two runs write one file."""
    written = []
    for run in ("first", "second"):
        clock = FrozenClock()
        with GovernedMemory.open("memory:", clock=clock, ids=CountedIds()) as memory:
            sessions = Sessions(memory, folder=tmp_path / run, clock=clock, ids=_Counted())
            sessions.merge(THREAD, [finding("plastic"), finding("塑料盒")], caller=USER)
        written.append(next((tmp_path / run).glob("*/*/pt.json")).read_bytes())

    assert written[0] == written[1]
    assert json.loads(written[0])["life"] == "session-1"


class _Counted:
    def __init__(self) -> None:
        self._count = 0

    def new(self, kind: str) -> str:
        self._count += 1
        return f"{kind}-{self._count}"
