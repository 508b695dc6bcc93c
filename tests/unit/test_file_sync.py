"""A file that holds a line has its name on disk: no power cut takes the name of what was acknowledged."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from agent_runtime_ref.export import AllowList, FileSender
from agent_runtime_ref.export.outgoing import outgoing
from agent_runtime_ref.remote_memory import MemoryKind, MemorySource, RemoteMemoryStore
from agent_runtime_ref.telemetry.chain import Position
from agent_runtime_ref.telemetry.logfile import LogFile, Rotation
from tests.exporting import event_body, sealed


@pytest.fixture
def lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of files that got bytes before a folder with their name in it was forced to disk."""
    write, fsync = os.write, os.fsync
    named: set[int] = set()
    found: list[str] = []

    def synced(descriptor: int) -> None:
        fsync(descriptor)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            named.update(one.stat().st_ino for one in tmp_path.iterdir())

    def written(descriptor: int, data: bytes) -> int:
        inode = os.fstat(descriptor).st_ino
        if inode not in named:
            found.extend(one.name for one in tmp_path.iterdir() if one.stat().st_ino == inode)
        return write(descriptor, data)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "write", written)
    return found


@pytest.mark.parametrize("wait", [True, False])
def test_a_log_has_its_name_before_its_first_line(tmp_path: Path, lost: list[str], wait: bool) -> None:
    """Also the file that is begun when one is closed, and also where the first line is not waited for."""
    log = LogFile(tmp_path / "log.jsonl", rotation=Rotation(max_bytes=300))
    for number in range(4):
        log.append([f'{{"n":{number}}}'], wait=wait)

    assert len(list(tmp_path.iterdir())) > 1
    assert lost == []


def test_remote_memory_has_its_name_before_its_first_line(tmp_path: Path, lost: list[str]) -> None:
    """A memory that was acknowledged is not lost with the name of its file."""
    source = MemorySource("t-42", "conversation_transcript", "Decision", "2026-08-01T12:00:00Z")
    store = RemoteMemoryStore(tmp_path / "memory.jsonl", user_id="alice")
    store.append(kind=MemoryKind.CONVERSATION, content="Opens at nine.", summary="Opens.", source=source)

    assert lost == []


def test_exported_events_have_their_file_before_they_count(tmp_path: Path, lost: list[str]) -> None:
    """What was delivered is not delivered again, so the file must still be there."""
    sender = FileSender(tmp_path / "events.jsonl")
    (line,) = sealed(event_body(1))
    sender.send([outgoing(line, Position("log", 1, "0" * 64), AllowList())])
    sender.close()

    assert lost == []
