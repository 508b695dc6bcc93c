"""The decision log as a file."""

from __future__ import annotations

import errno
import multiprocessing
import os
from pathlib import Path

import pytest

from agent_runtime_ref.errors import DecisionLogError, DocumentUnreadableError, StoreDamagedError
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.telemetry.logfile import LogFile
from agent_runtime_ref.telemetry.segments import raw_lines


def append_some(path: Path, name: str) -> None:
    """What each of several processes does."""
    file = LogFile(path)
    for number in range(20):
        file.append([f'{{"by":"{name}","number":{number}}}'])


def test_reopening_continues_the_chain(tmp_path: Path) -> None:
    """A second process goes on where the first one ended, in a file that only its owner reads."""
    path = tmp_path / "log.jsonl"
    LogFile(path).append(['{"a":1}', '{"b":2}'])
    LogFile(path).append(['{"c":3}'])

    assert chain.verify(LogFile(path).lines()) is None
    assert LogFile(path).last_number() == 3
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_torn_last_line_is_cut_off_and_reported(tmp_path: Path) -> None:
    """Half a line was never acknowledged: it goes, whole lines stay."""
    path = tmp_path / "log.jsonl"
    LogFile(path).append(['{"a":1}'])
    with path.open("ab") as file:
        file.write(b'{"seq":2,"prev')
    reopened = LogFile(path)
    reopened.append(['{"b":2}'])

    assert reopened.repaired_bytes == 14
    assert [chain.body(line) for line in reopened.lines()] == ['{"a":1}', '{"b":2}']
    assert chain.verify(reopened.lines()) is None


def test_a_last_line_longer_than_the_first_look(tmp_path: Path) -> None:
    """Where a line is larger than expected, the search for its beginning goes on."""
    path = tmp_path / "log.jsonl"
    LogFile(path).append([f'{{"a":"{"x" * 400_000}"}}'])
    LogFile(path).append(['{"b":2}'])

    assert chain.verify(LogFile(path).lines()) is None


def test_a_foreign_file_is_left_alone(tmp_path: Path) -> None:
    """A file whose first line is no log line is reported, not written to."""
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n")
    with pytest.raises(StoreDamagedError, match="is no decision log"):
        LogFile(path)

    assert path.read_text() == "dear diary\n"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """A log that cannot be written says so when it is opened."""
    with pytest.raises(DecisionLogError):
        LogFile(tmp_path / "none" / "log.jsonl")


def test_four_processes_append_to_one_chain(tmp_path: Path) -> None:
    """All lines are kept, in one unbroken chain."""
    path = tmp_path / "log.jsonl"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=append_some, args=(path, str(number))) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert [worker.exitcode for worker in workers] == [0] * 4
    assert len(list(LogFile(path).lines())) == 80
    assert chain.verify(LogFile(path).lines()) is None


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    """A pipe or a device keeps nothing that a chain could go on from; neither is waited for."""
    path = Path("/dev/null")
    if kind == "pipe":
        path = tmp_path / "pipe"
        os.mkfifo(path)
    with pytest.raises(DecisionLogError, match="no file"):
        LogFile(path)
    with pytest.raises(DocumentUnreadableError, match="is a pipe or a device"):
        list(raw_lines(path))


@pytest.mark.parametrize("broken", ["write", "ftruncate"])
def test_a_disk_that_fails_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """Where taking back what was written fails too, the first failure is the one that is told."""
    file = LogFile(tmp_path / "log.jsonl")
    file.append(['{"a":1}'])
    if broken == "ftruncate":
        with file.path.open("ab") as raw:
            raw.write(b"torn")

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC if broken == "write" else errno.EIO, "it broke")

    monkeypatch.setattr(os, "ftruncate", fail)
    monkeypatch.setattr(os, "write", fail)
    with pytest.raises(DecisionLogError, match="it broke"):
        file.append(['{"b":2}'])
    assert file.repaired_bytes == 0
