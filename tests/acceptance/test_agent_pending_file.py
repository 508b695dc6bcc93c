"""The file in which a process keeps what waits behind its replies."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.background import BackgroundWorker, Turn, taken_over
from agent_runtime_ref.background.pending import PendingFile, Waiting, forget_waiting
from agent_runtime_ref.background.places import pending_folder
from agent_runtime_ref.background.worker import ATTEMPTS_MAX
from agent_runtime_ref.errors import StoreError
from agent_runtime_ref.testing import CountedIds
from tests.support import caller

MESSAGE = "Where do support tickets go?"


def turn(turn_id: str = "turn-1", **changes: Any) -> Turn:
    """Return a turn that waits."""
    base: dict[str, Any] = {
        "turn_id": turn_id,
        "caller": caller(roles=("reader",)),
        "purpose": "answer_generation",
        "message": MESSAGE,
        "reply": "Grüße, 世界",
        "status": "complete",
        "at_us": 1,
        "decision_id": "dec-1",
        "mark": "subject:0",
    }
    return Turn(**(base | changes))


def waiting(folder: Path) -> list[Any]:
    """Return what waits in the files of the dead, and give the files up again."""
    found = []
    for file in taken_over(folder):
        found += [(one.turn, dict(one.built or {}), sorted(one.done), one.attempts) for one in file.waiting]
        file.close()
    return found


def test_a_file_gives_back_what_was_put_into_it(tmp_path: Path) -> None:
    """Turns come back as they were, with what has been done about them; finished ones do not."""
    folder = tmp_path / "pending"
    file = PendingFile.in_folder(folder, CountedIds())
    for name in ("turn-1", "turn-2", "turn-3"):
        file.put(turn(name), {"record_ids": {"retrieved": ["mem-1"]}})
    file.put(turn("turn-2", status="failed", reply=""), None)
    file.mark("turn-2", done="candidates")
    file.mark("turn-2", attempts=3)
    file.finish("turn-1")
    file.close()  # as a process that dies lets go of it

    assert waiting(folder) == [
        (turn("turn-2", status="failed", reply=""), {}, ["candidates"], 3),
        (turn("turn-3"), {"record_ids": {"retrieved": ["mem-1"]}}, [], 0),
    ]


def test_the_file_of_a_living_process_is_left_alone(tmp_path: Path) -> None:
    """Two runtimes over one store do not do each other's work."""
    file = PendingFile.in_folder(tmp_path, CountedIds())
    file.put(turn(), None)

    assert waiting(tmp_path) == []
    file.close()
    assert len(waiting(tmp_path)) == 1


def test_a_file_is_empty_when_nothing_waits(tmp_path: Path) -> None:
    """What people said does not stay there."""
    file = PendingFile.in_folder(tmp_path / "pending", CountedIds())
    file.put(turn(), None)
    assert file.path.stat().st_size > 0
    file.finish("turn-1")

    assert file.path.stat().st_size == 0
    file.close()
    assert not (tmp_path / "pending").exists()


def test_what_waits_about_a_person_is_thrown_away(tmp_path: Path) -> None:
    """The words of the forgotten are in no file any more, and what waits about others is as it was."""
    folder = tmp_path / "pending"
    file = PendingFile.in_folder(folder, CountedIds())
    other = turn("turn-2", caller=caller(principal_id="user-7", roles=("reader",)), message="about cheese")
    file.put(turn("turn-1"), None)
    file.put(other, {"retrieved_items": 1})
    file.mark("turn-2", done="candidates")
    assert forget_waiting(folder, "tenant-acme", "user-42") == 0  # its process lives
    file.close()

    assert forget_waiting(folder, "tenant-b", "user-42") == 0
    ended: list[str] = []

    def end(one: Waiting) -> None:
        ended.append(one.turn.turn_id)
        raise StoreError("memory:", "down")  # it goes all the same

    assert forget_waiting(folder, "tenant-acme", "user-42", end=end) == 1
    assert ended == ["turn-1"]
    assert not any(MESSAGE in path.read_text(encoding="utf-8") for path in folder.iterdir())
    assert waiting(folder) == [(other, {"retrieved_items": 1}, ["candidates"], 0)]


def test_a_line_that_was_being_written_is_no_promise(tmp_path: Path) -> None:
    """The end of a file that was cut in the middle of a line is passed over, the rest is not."""
    file = PendingFile.in_folder(tmp_path, CountedIds())
    file.put(turn("turn-1"), None)
    file.put(turn("turn-2"), None)
    file.close()
    os.truncate(file.path, file.path.stat().st_size - 5)

    assert [one[0].turn_id for one in waiting(tmp_path)] == ["turn-1"]
    assert list(tmp_path.glob("*.damaged")) == []


def test_a_disk_that_is_full_costs_no_other_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be written whole is taken away, so that the next line stands by itself."""
    file = PendingFile.in_folder(tmp_path, CountedIds())
    file.put(turn("turn-1"), None)
    writes, room = os.write, [9]

    def filling(descriptor: int, data: bytes) -> int:
        if not room:
            raise OSError(errno.ENOSPC, "no space left on device")
        return writes(descriptor, data[: room.pop()])

    monkeypatch.setattr(os, "write", filling)
    with pytest.raises(StoreError, match="no space left"):
        file.put(turn("turn-2"), None)
    monkeypatch.undo()
    file.put(turn("turn-3"), None)
    file.close()

    assert [one[0].turn_id for one in waiting(tmp_path)] == ["turn-1", "turn-3"]
    assert list(tmp_path.glob("*.damaged")) == []


def test_a_damaged_line_is_kept_aside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file on disk is not trusted: what is no turn of ours is told, kept aside, and hinders nobody."""
    file = PendingFile.in_folder(tmp_path, CountedIds())
    file.put(turn("turn-1"), None)
    file.close()
    good = file.path.read_bytes()
    document = json.loads(good)
    document["turn"]["status"] = "made_up"
    lines = [b"\xff\xfe", b"[]", b"7", json.dumps(document).encode(), b'{"turn": {}}', good.strip()]
    file.path.write_bytes(b"\n".join(lines) + b"\n")

    assert [one[0].turn_id for one in waiting(tmp_path)] == ["turn-1"]
    assert len(list(tmp_path.glob("*.damaged"))) == 1
    assert "pending_work_damaged" in capsys.readouterr().err


def test_only_what_cannot_be_read_is_kept_aside(tmp_path: Path) -> None:
    """A turn that is understood is worked on, and its words stand nowhere but in its own file."""
    file = PendingFile.in_folder(tmp_path, CountedIds())
    file.put(turn("turn-1"), None)
    file.close()
    file.path.write_bytes(b"\xff\xfe\n" + file.path.read_bytes() + b"[]\n")

    assert [one[0].turn_id for one in waiting(tmp_path)] == ["turn-1"]
    (aside,) = tmp_path.glob("*.damaged")
    assert aside.read_bytes() == b"\xff\xfe\n[]\n"
    assert stat.S_IMODE(aside.stat().st_mode) == 0o600


def test_what_nobody_can_read_goes_when_somebody_is_forgotten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be the forgotten person's: lines that lie aside, or still in a file, go for all, aloud."""
    file = PendingFile.in_folder(tmp_path, CountedIds())
    other = turn("turn-2", caller=caller(principal_id="user-7", roles=("reader",)), message="about cheese")
    file.put(turn("turn-1"), None)
    file.put(other, None)
    file.close()
    his, others = file.path.read_bytes().splitlines(keepends=True)
    file.path.write_bytes(his.replace(b'"complete"', b'"made_up"') + others)
    (tmp_path / "turn-2.pending").write_bytes(b"broken " + his + others)  # as if it lay aside as well
    (tmp_path / "earlier.damaged").write_bytes(his)

    assert forget_waiting(tmp_path, "tenant-acme", "user-42") == 0
    assert not any(MESSAGE in path.read_text(encoding="utf-8") for path in tmp_path.iterdir())
    assert list(tmp_path.glob("*.damaged")) == []
    assert {one[0].message for one in waiting(tmp_path)} == {"about cheese"}
    assert "pending_work_damaged_removed" in capsys.readouterr().err


@pytest.mark.parametrize("left", ["finished", "torn"])
def test_what_is_left_of_a_turn_goes_with_its_person(tmp_path: Path, left: str) -> None:
    """Also where nothing waits of it any more, or never did: the file has its words until it is empty."""
    file = PendingFile.in_folder(tmp_path, CountedIds())
    other = turn("turn-2", caller=caller(principal_id="user-7", roles=("reader",)), message="about cheese")
    file.put(other, None)
    file.put(turn("turn-1"), None)
    if left == "finished":
        file.finish("turn-1")
    file.close()
    if left == "torn":
        os.truncate(file.path, file.path.stat().st_size - 5)

    assert forget_waiting(tmp_path, "tenant-acme", "user-42") == 0
    assert not any(MESSAGE in path.read_text(encoding="utf-8") for path in tmp_path.iterdir())
    assert [one[0] for one in waiting(tmp_path)] == [other]


def test_a_turn_is_put_aside_again_and_again(tmp_path: Path) -> None:
    """What fails in every process lies aside in one file, and costs each process one round of attempts."""
    url = f"sqlite:{tmp_path / 'memory.db'}"
    tried: list[str] = []

    def job(one: object) -> None:
        tried.append("once")
        raise ValueError

    with GovernedMemory.open(url) as memory:
        folder = pending_folder(memory)
        assert folder is not None
        file = PendingFile.in_folder(folder, CountedIds())
        file.put(turn(mark=memory.subject_mark(caller=turn().caller)), None)
        file.close()
        for _ in range(3):
            worker = BackgroundWorker(memory, jobs=[("job", job)])
            assert worker.take_over(taken_over(folder)) == 1
            for _ in range(2 * ATTEMPTS_MAX):
                worker.drain()
            worker.close()

            assert [path.name for path in folder.iterdir()] == ["turn-1.pending"]
    assert len(tried) <= 3 * ATTEMPTS_MAX
