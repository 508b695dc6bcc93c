"""The shopping agent of the tutorial: what it shows, and that the page and the program are one."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agent_runtime_ref import Caller, GovernedMemory
from agent_runtime_ref.session_state import Enforced, Sessions
from agent_runtime_ref.testing import FrozenClock
from tests.docs.pages import CHECKOUT, blocks

PROGRAM = CHECKOUT / "docs/tutorial/shopping_agent.py"
PAGE = PROGRAM.with_name("shopping-agent.md")
FIRST = "A toiletry bag for the trip: no plastic this time, and under $50."
SECOND = "And something for the shower?"


@pytest.fixture(scope="module")
def shop() -> ModuleType:
    """The program, as a module."""
    spec = importlib.util.spec_from_file_location("shopping_agent", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class DefiantModel:
    """Passes on the opposite of what the user said, or nothing of it."""

    def __init__(self, **passed: Any) -> None:
        self.passed = passed

    def answer(self, prompt: str, message: str, results: list[Enforced]) -> dict[str, Any]:
        """Call the tool once, then name everything that came back."""
        if results:
            return {"reply": ", ".join(item["name"] for item in results[-1].items)}
        return {"call": {"kind": "shower caddy", **self.passed}}


def shopper(thread: str = "thread-1") -> Caller:
    """Return the user, in a thread."""
    return Caller("tenant-acme", "user-42", session_id=thread, subject="user-42")


@pytest.mark.parametrize(
    "passed", [{}, {"exclude": []}, {"budget": "$1000"}, {"exclude": ["bamboo"], "budget": 10_000}]
)
def test_the_first_turn_counts_in_the_second_whatever_the_model_passes(
    shop: ModuleType, tmp_path: Path, passed: dict[str, Any]
) -> None:
    """No plastic and at most fifty dollars; what the model passes can only take more away."""
    with GovernedMemory.open("memory:") as memory:
        sessions = Sessions(memory, folder=tmp_path)
        shop.Agent(sessions, shop.ForgetfulModel()).turn(FIRST, shopper())
        reply, kept_out = shop.Agent(sessions, DefiantModel(**passed)).turn(SECOND, shopper())

    assert reply == ("" if passed.get("exclude") else "Plastic-free bamboo caddy")
    reasons = {verdict.item["name"]: verdict.reasons for verdict in kept_out}
    assert "dislike:material:plastic" in reasons["塑料沐浴架 (shower caddy)"]
    assert "budget:max" in reasons["Solid teak caddy"]


def test_another_thread_and_the_next_day_know_nothing_of_it(shop: ModuleType, tmp_path: Path) -> None:
    """The same user elsewhere, and the same thread a day later, begin with nothing."""
    clock = FrozenClock()
    with GovernedMemory.open("memory:", clock=clock) as memory:
        agent = shop.Agent(Sessions(memory, folder=tmp_path, clock=clock), shop.ForgetfulModel())
        agent.turn(FIRST, shopper())

        assert agent.turn(SECOND, shopper("thread-2"))[1] == []
        assert len(agent.turn(SECOND, shopper())[1]) == 3
        clock.advance(days=1)
        assert agent.turn(SECOND, shopper())[1] == []


def test_turns_side_by_side_keep_to_their_own(shop: ModuleType, tmp_path: Path) -> None:
    """Two users shop at the same time; one of them minds plastic, the other silk."""
    minds = {"left": "no plastic", "right": "no steel"}
    found: dict[str, list[list[str]]] = {}
    with GovernedMemory.open("memory:") as memory:
        sessions = Sessions(memory, folder=tmp_path)

        def shopping(name: str) -> None:
            agent = shop.Agent(sessions, DefiantModel())
            caller = Caller("tenant-acme", name, session_id="thread-1", subject=name)
            agent.turn(f"{minds[name]}, please", caller)
            turns = [agent.turn(SECOND, caller)[1] for _ in range(3)]
            found[name] = [[verdict.item["name"] for verdict in kept_out] for kept_out in turns]

        threads = [threading.Thread(target=shopping, args=(name,)) for name in minds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert found == {"left": [["塑料沐浴架 (shower caddy)"]] * 3, "right": [["Steel caddy"]] * 3}


def test_the_program_prints_what_the_page_says(tmp_path: Path) -> None:
    """Run as a program, from a checkout, it prints the page's last block and leaves nothing behind."""
    ran = subprocess.run(
        [sys.executable, PROGRAM],
        cwd=tmp_path,
        env={
            "PYTHONPATH": str(CHECKOUT),
            "PYTHONIOENCODING": "utf-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": str(tmp_path),
        },
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    (said,) = [block.text for block in blocks(PAGE) if block.language == "text"]
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.split() == said.split()
    assert list(tmp_path.iterdir()) == []


def test_the_page_shows_the_whole_program() -> None:
    """Its blocks, one after the other, are the program: whoever reads the page has read all of it."""
    shown = [block.text for block in blocks(PAGE) if block.language == "python"]
    program = PROGRAM.read_text(encoding="utf-8")
    body = program[program.index("\nimport re") : program.index('if __name__ == "__main__":')]

    assert "".join(shown[:-1]).split() == body.split()
    assert shown[-1] == 'main(Path("sessions"))\n'
