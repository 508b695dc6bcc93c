"""A process that is killed in a turn: the next one that opens the same store finishes what it left."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from agent_runtime_ref import AgentRuntime, GovernedMemory
from agent_runtime_ref.agent import Answer, Request
from agent_runtime_ref.preferences import PreferenceStore
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
