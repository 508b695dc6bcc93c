"""A log, a store and keys, as the commands leave them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.command import WHO, Command, fact, file_of, question
from tests.acceptance.verifying.edits import written_keys


@pytest.fixture
def log(command: Command, tmp_path: Path) -> Path:
    """A log file of two reads over the bundled seeds: 24 lines, of which a trace holds the events."""
    path = tmp_path / "log.jsonl"
    asked = file_of(tmp_path / "q.yaml", question())
    for _ in range(2):
        command("read", "--query", asked, *WHO, "--log", path, "--trace", tmp_path / "trace.jsonl")
    return path


@pytest.fixture
def store(command: Command, tmp_path: Path) -> Path:
    """A SQLite store with two writes and two reads, and a trace of the events."""
    path, trace = tmp_path / "memory.db", tmp_path / "trace.jsonl"
    for number in range(2):
        file = file_of(tmp_path / "c.yaml", fact(content=f"Invoice {number} is due."))
        command("write", "--candidate", file, *WHO, "--store", f"sqlite:{path}", "--trace", trace)
        asked = file_of(tmp_path / "q.yaml", question())
        command("read", "--query", asked, *WHO, "--store", f"sqlite:{path}", "--trace", trace)
    return path


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """An Ed25519 key for anchors, and its public part."""
    return written_keys(tmp_path, "anchor")
