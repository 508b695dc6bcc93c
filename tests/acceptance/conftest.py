"""Governed memory on every embedded store, with a clock that stands still and counted ids."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.testing import CountedIds, FrozenClock
from tests.acceptance.command import Command


@pytest.fixture(params=["memory", "sqlite"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store, once in memory and once in a file."""
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path / 'memory.db'}"


@pytest.fixture
def clock() -> FrozenClock:
    """The clock of the fixture `memory`."""
    return FrozenClock()


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Where the fixture `memory` appends its events."""
    return tmp_path / "trace.jsonl"


@pytest.fixture
def memory(store_url: str, clock: FrozenClock, trace: Path) -> Iterator[GovernedMemory]:
    """An empty governed memory."""
    with GovernedMemory.open(store_url, clock=clock, ids=CountedIds(), trace=trace) as opened:
        yield opened


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command, called in this process."""
    return Command(capsys)
