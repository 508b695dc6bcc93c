"""The file log is closed by size and by time, and its chain goes on."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest

from agent_runtime_ref.errors import StoreDamagedError
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.telemetry.logfile import LogFile, Rotation
from agent_runtime_ref.telemetry.segments import closed_segments


def body(number: int, *, at: str = "2026-11-30T09:00:00Z", more: str = "") -> str:
    """The body of a line, as the gates write them."""
    return json.dumps({"type": "decision", "timestamp": at, "n": number, "more": more})


def append_some(path: Path, name: str) -> None:
    """What each of several processes does."""
    file = LogFile(path, rotation=Rotation(max_bytes=1000))
    for number in range(25):
        file.append([body(number, more=name), body(number, more=name)])


def numbers(path: Path) -> list[list[int]]:
    """The numbers of the lines, file by file, oldest first."""
    files = [*closed_segments(path), path]
    return [[json.loads(line)["seq"] for line in file.read_text().splitlines()] for file in files]


def test_a_file_that_would_grow_too_large_is_closed_first(tmp_path: Path) -> None:
    """Its name says the number of its first line; the chain goes on, and what is appended stays together."""
    path = tmp_path / "log.jsonl"
    file = LogFile(path, rotation=Rotation(max_bytes=700))
    for number in range(0, 8, 2):
        file.append([body(number), body(number + 1)])

    assert [one.name for one in closed_segments(path)] == [
        "log.jsonl.000000000001",
        "log.jsonl.000000000003",
        "log.jsonl.000000000005",
    ]
    assert numbers(path) == [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert chain.verify(file.lines()) is None
    assert file.last_number() == 8


def test_an_append_that_is_too_large_alone_is_kept_whole(tmp_path: Path) -> None:
    """No empty files, no endless loop: an append that fits nowhere gets a file of its own."""
    path = tmp_path / "log.jsonl"
    file = LogFile(path, rotation=Rotation(max_bytes=10))
    for number in range(3):
        file.append([body(number)])

    assert numbers(path) == [[1], [2], [3]]


def test_a_file_is_closed_by_the_time_of_its_lines(tmp_path: Path) -> None:
    """A line that is too much later than the first goes into the next file; the log has its own clock."""
    path = tmp_path / "log.jsonl"
    file = LogFile(path, rotation=Rotation(max_seconds=60))
    instants = ["09:00:00Z", "09:00:59.999999Z", "09:01:00Z", "08:00:00Z", "09:02:30.5Z"]
    for number, instant in enumerate(instants):
        file.append([body(number, at=f"2026-11-30T{instant}")])

    assert numbers(path) == [[1, 2], [3, 4], [5]]


def test_lines_without_a_time_do_not_rotate_by_it(tmp_path: Path) -> None:
    """A body that says no instant is appended where it is."""
    file = LogFile(tmp_path / "log.jsonl", rotation=Rotation(max_seconds=1))
    for one in ("{}", '{"timestamp":"2026-13-40T"}', body(1)):
        file.append([one])

    assert closed_segments(file.path) == []


def test_a_process_that_ended_between_the_two_steps(tmp_path: Path) -> None:
    """Closed and no new file begun: the next one goes on with the number and the hash of the closed one."""
    path = tmp_path / "log.jsonl"
    LogFile(path).append([body(1), body(2)])
    os.rename(path, tmp_path / "log.jsonl.000000000001")
    file = LogFile(path)
    assert file.last_number() == 2
    file.append([body(3)])

    assert numbers(path) == [[1, 2], [3]]
    assert chain.verify(file.lines()) is None


def test_a_torn_line_is_repaired_before_a_file_is_closed(tmp_path: Path) -> None:
    """What is closed holds whole lines only."""
    path = tmp_path / "log.jsonl"
    LogFile(path).append([body(1)])
    with path.open("ab") as file:
        file.write(b'{"seq":2,"prev')
    LogFile(path, rotation=Rotation(max_bytes=1)).append([body(2)])

    assert numbers(path) == [[1], [2]]


def test_a_closed_file_is_never_written_over(tmp_path: Path) -> None:
    """Where a file of that name is there, something went wrong; both stay as they are."""
    path = tmp_path / "log.jsonl"
    LogFile(path).append([body(1)])
    taken = tmp_path / "log.jsonl.000000000001"
    taken.write_text("kept")
    with pytest.raises(StoreDamagedError, match="there already"):
        LogFile(path, rotation=Rotation(max_bytes=1)).append([body(2)])

    assert (taken.read_text(), numbers_of(path)) == ("kept", [1])


def numbers_of(path: Path) -> list[int]:
    """The numbers of the lines of one file."""
    return [json.loads(line)["seq"] for line in path.read_text().splitlines()]


def test_a_reader_sees_each_line_once_while_files_are_closed(tmp_path: Path) -> None:
    """A rotation in the middle of reading neither hides a line nor shows one twice."""
    path = tmp_path / "log.jsonl"
    file = LogFile(path, rotation=Rotation(max_bytes=1))
    for number in range(3):
        file.append([body(number)])
    lines = file.lines()
    seen = [next(lines)]
    file.append([body(3)])
    seen += lines

    assert [chain.head(line)[0] for line in seen] == [1, 2, 3]


def test_four_processes_rotate_one_log(tmp_path: Path) -> None:
    """All lines are kept, in one unbroken chain over many files."""
    path = tmp_path / "log.jsonl"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=append_some, args=(path, str(number))) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert [worker.exitcode for worker in workers] == [0] * 4
    assert [one for file in numbers(path) for one in file] == list(range(1, 201))
    assert chain.verify(LogFile(path).lines()) is None
    assert len(closed_segments(path)) >= 20
    assert all(file.stat().st_size <= 1000 for file in closed_segments(path))


def test_a_time_without_a_zone_does_not_rotate(tmp_path: Path) -> None:
    """It cannot be compared with one that has a zone, so the file goes on as if it said none."""
    path = tmp_path / "log.jsonl"
    file = LogFile(path, rotation=Rotation(max_seconds=1))
    file.append([body(1, at="2026-11-30T09:00:00")])
    file.append([body(2)])

    assert numbers(path) == [[1, 2]]
