"""A process that is killed in a turn: the next one that opens the same store finishes what it left."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import AgentRuntime, GovernedMemory
from agent_runtime_ref.agent import Answer, Request
from agent_runtime_ref.background import BackgroundWorker, Turn, taken_over
from agent_runtime_ref.background.pending import PendingFile, Waiting, forget_waiting
from agent_runtime_ref.background.places import pending_folder
from agent_runtime_ref.background.worker import ATTEMPTS_MAX
from agent_runtime_ref.errors import StoreError
from agent_runtime_ref.preferences import PreferenceStore
from agent_runtime_ref.testing import CountedIds
from tests.support import caller, candidate
from tests.turns import Scripted

MESSAGE = "Where do support tickets go?"

# Dies by SIGKILL at the place that its second argument names: nothing of it runs afterwards.
_CHILD = """
import os, signal, sys, threading
from agent_runtime_ref import AgentRuntime, Caller, GovernedMemory
from agent_runtime_ref.agent import Answer
from agent_runtime_ref.background import conversation_of
from agent_runtime_ref.curator import Curator

url, place, message = sys.argv[1:]
replied = threading.Event()

def die(where):
    if where == place:
        # The work behind a reply is killed once the reply is out, however the threads take turns.
        where == "model" or replied.wait(30)
        os.kill(os.getpid(), signal.SIGKILL)

class Model:
    name = "dying"
    def answer(self, request):
        die("model")
        return Answer("To the queue.")

class Curation:
    def curate_turn(self, user_text, reply, *, caller):
        die("curation")
        Curator(memory).curate_turn(user_text, reply, caller=caller)
        die("kept")

def propose(turn):
    die("candidates")
    return conversation_of(turn)

memory = GovernedMemory.open(url)
runtime = AgentRuntime.open(memory, model=Model(), curation=Curation(), propose=propose)
caller = Caller("tenant-acme", "user-42", session_id="session-001", trace_id="trace-001")
print(runtime.run(message, caller=caller).reply, flush=True)
replied.set()
runtime.drain()
"""


class Judging:
    """Keeps what it was shown."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def curate_turn(self, user_text: str, reply: str, *, caller: object) -> None:
        """Take a turn."""
        self.seen.append((user_text, reply))


def killed(url: str, place: str, message: str = MESSAGE) -> str:
    """Return what a process said before it was killed at `place`."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, url, place, message],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    return done.stdout


def logged(memory: GovernedMemory) -> Counter[str]:
    """Return how often each event is in the log."""
    lines = {line for read in (True, False) for line in memory.log_lines(read=read)}
    return Counter(one["event_type"] for one in map(json.loads, lines) if one["type"] == "event")


@pytest.mark.parametrize(
    ("kind", "place", "reply", "ends"),
    [
        ("sqlite", "model", "", "run_failed"),
        ("sqlite", "candidates", "To the queue.", "run_complete"),
        ("sqlite", "curation", "To the queue.", "run_complete"),
        ("jsonl", "curation", "To the queue.", "run_complete"),
    ],
)
def test_what_a_killed_process_left_is_done_once(
    tmp_path: Path, kind: str, place: str, reply: str, ends: str
) -> None:
    """Wherever it dies, each turn has one end, one conversation and one curation, and no file remains."""
    url = f"{kind}:{tmp_path / 'memory'}"
    assert killed(url, place).strip() == reply
    (file,) = Path(tmp_path / "memory.pending").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    judging = Judging()
    for _ in range(2):  # the second finds nothing left
        with GovernedMemory.open(url) as memory, AgentRuntime.open(memory, curation=judging) as runtime:
            assert runtime.drain()
            told = logged(memory)
    with GovernedMemory.open(url) as memory:
        hits = memory.recall("support tickets", caller=caller()).hits

    assert (told["run_start"], told["context_layers_built"], told["memory_persisted"]) == (1, 1, 1)
    assert {name: told[name] for name in ("run_complete", "run_failed") if told[name]} == {ends: 1}
    assert [hit.snippet for hit in hits] == [MESSAGE]
    assert judging.seen == [(MESSAGE, reply)]
    assert not (tmp_path / "memory.pending").exists()


def test_a_context_that_reached_a_model_is_told_after_a_crash(tmp_path: Path) -> None:
    """Which records a killed turn had shown is in the log: the event comes late, and names them."""
    url = f"sqlite:{tmp_path / 'memory'}"
    with GovernedMemory.open(url) as memory:
        record = memory.write(candidate(), caller=caller()).record
    killed(url, "model")
    with GovernedMemory.open(url) as memory:
        with AgentRuntime.open(memory) as runtime:
            assert runtime.drain()
        events = [json.loads(line) for line in memory.log_lines(read=True)]

    (built,) = [one["payload"] for one in events if one.get("event_type") == "context_layers_built"]
    assert built["record_ids"]["retrieved"] == [record.memory_id]
    (failed,) = [one["payload"] for one in events if one.get("event_type") == "run_failed"]
    assert failed["status"] == "interrupted"
    assert failed["decision_id"] == built["decision_id"]


def test_what_the_curator_kept_is_not_kept_twice(tmp_path: Path) -> None:
    """A process that dies right after a preference was written leaves it as sure as saying it once does."""
    url = f"sqlite:{tmp_path / 'memory'}"
    killed(url, "kept", "I always hate plastic.")
    with GovernedMemory.open(url) as memory:
        with AgentRuntime.open(memory) as runtime:
            assert runtime.drain()
        (once,) = PreferenceStore(memory=memory).read(caller=caller())
        with AgentRuntime.open(memory) as runtime:
            runtime.run("I always hate plastic.", caller=caller())
            assert runtime.drain()
        (twice,) = PreferenceStore(memory=memory).read(caller=caller())

    assert twice.confidence == pytest.approx(once.confidence + 0.2)
    assert once.confidence < 0.7


def test_a_living_process_takes_over_what_was_said_in_a_thread(tmp_path: Path) -> None:
    """Whoever goes on in the thread of a killed process is held to what was said there, without a restart."""
    url, seen = f"sqlite:{tmp_path / 'memory'}", []

    def answers(request: Request) -> Answer:
        seen.append(request.context.rendered())
        return Answer("yes")

    with GovernedMemory.open(url) as memory, AgentRuntime.open(memory, model=Scripted(answers)) as runtime:
        killed(url, "curation", "No plastic, please.")
        result = runtime.run("And which box?", caller=caller())
        assert runtime.drain()

    assert result.status == "complete", result.error
    assert "<session_constraints>" in seen[0]


def test_a_person_forgotten_after_the_crash_stays_forgotten(tmp_path: Path) -> None:
    """What waited about somebody is thrown away where that person was forgotten before it was done."""
    url = f"sqlite:{tmp_path / 'memory'}"
    killed(url, "candidates")
    with GovernedMemory.open(url) as memory:
        memory.forget(subject="user-42", caller=caller())
        with AgentRuntime.open(memory) as runtime:
            assert runtime.drain()
        assert memory.recall("support tickets", caller=caller()).hits == ()
    assert not (tmp_path / "memory.pending").exists()


# --- the file ----------------------------------------------------------------------------------------------


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
