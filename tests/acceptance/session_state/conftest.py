"""Sessions over one memory, with a folder for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.session_state import Sessions
from agent_runtime_ref.testing import FrozenClock
from tests.acceptance.session_state.threads import Told
from tests.support import events


@pytest.fixture(scope="module")
def clock() -> FrozenClock:
    """One clock for all of this; it only ever goes on."""
    return FrozenClock()


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where every event goes."""
    return tmp_path_factory.mktemp("session-state") / "trace.jsonl"


@pytest.fixture(scope="module")
def memory(clock: FrozenClock, trace: Path) -> Iterator[GovernedMemory]:
    """One memory for all of this: every test has a folder, and so lives, of its own."""
    with GovernedMemory.open("memory:", clock=clock, trace=trace) as opened:
        yield opened


@pytest.fixture
def told(trace: Path) -> Told:
    """What is told from now on."""
    before = len(events(trace)) if trace.exists() else 0
    return lambda: events(trace)[before:]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where sessions lie."""
    return tmp_path / "sessions"


@pytest.fixture
def sessions(memory: GovernedMemory, folder: Path, clock: FrozenClock) -> Sessions:
    """Sessions over the fixture `memory`."""
    return Sessions(memory, folder=folder, clock=clock)
