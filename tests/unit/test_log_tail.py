"""A log is read on from where it was left, also over a rotation."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_runtime_ref.telemetry import chain, tail
from agent_runtime_ref.telemetry.logfile import LogFile, Rotation
from agent_runtime_ref.telemetry.tail import LogTail
from tests.exporting import decision_body


def numbers(read: LogTail, after: int = 0) -> list[int | None]:
    """The numbers of the lines behind one."""
    return [chain.number(line) for line in read(after)]


def test_it_goes_on_without_reading_again_what_it_has_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second look reads the new lines only; the whole log is walked once."""
    walks: list[int] = []
    raw_lines = tail.raw_lines
    monkeypatch.setattr(tail, "raw_lines", lambda *a: walks.append(1) or raw_lines(*a))
    log = LogFile(tmp_path / "log.jsonl")
    log.append([decision_body(number) for number in range(3)])
    read = LogTail(log.path)

    first = numbers(read)
    log.append([decision_body(number) for number in range(2)])

    assert (first, numbers(read, 3), numbers(read, 5), len(walks)) == ([1, 2, 3], [4, 5], [], 1)


def test_what_was_not_dealt_with_is_read_again(tmp_path: Path) -> None:
    """A batch that failed begins behind the same line as before."""
    log = LogFile(tmp_path / "log.jsonl")
    log.append([decision_body(number) for number in range(5)])
    read = LogTail(log.path)

    assert numbers(read) == [1, 2, 3, 4, 5]
    assert numbers(read, 2) == [3, 4, 5]
    assert numbers(read, 0) == [1, 2, 3, 4, 5]
    assert numbers(read, 4) == [5]


def test_a_rotation_in_between_loses_no_line(tmp_path: Path) -> None:
    """The file is another one by then, under the same name."""
    log = LogFile(tmp_path / "log.jsonl", rotation=Rotation(max_bytes=600))
    read, seen = LogTail(log.path), []
    for number in range(12):
        log.append([decision_body(number)])
        if number % 3 == 2:
            seen += numbers(read, len(seen))

    assert seen == list(range(1, 13))


def test_another_file_in_its_place_is_not_read_from_the_middle(tmp_path: Path) -> None:
    """A log that was put back from a backup is walked again."""
    log = LogFile(tmp_path / "log.jsonl")
    log.append([decision_body(number) for number in range(4)])
    read = LogTail(log.path)
    numbers(read)
    text = log.path.read_text()
    log.path.write_text("".join(f"{line}  \n" for line in text.splitlines()))

    assert numbers(read, 2) == [3, 4]


def test_a_line_that_is_being_written_is_left_for_the_next_look(tmp_path: Path) -> None:
    """Half a line is none."""
    log = LogFile(tmp_path / "log.jsonl")
    log.append([decision_body(1)])
    read = LogTail(log.path)
    numbers(read)
    line = chain.seal(decision_body(2), 2, chain.head(log.path.read_text().splitlines()[0])[1])[0]
    with log.path.open("a") as file:
        file.write(line[:40])
        file.flush()
        half = numbers(read, 1)
        file.write(f"{line[40:]}\n")

    assert (half, numbers(read, 1)) == ([], [2])


def test_a_look_at_the_last_line_again_does_not_lose_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An export makes sure of the line that it delivered last, at every look, before it reads on."""
    walks: list[int] = []
    raw_lines = tail.raw_lines
    monkeypatch.setattr(tail, "raw_lines", lambda *a: walks.append(1) or raw_lines(*a))
    log = LogFile(tmp_path / "log.jsonl")
    log.append([decision_body(number) for number in range(4)])
    read = LogTail(log.path)

    numbers(read)
    for end in range(4, 8):
        for _ in range(3):
            assert next(read(end - 1)) is not None
            assert numbers(read, end) == []
        log.append([decision_body(end + 1)])
        assert next(read(end - 1)) is not None
        assert numbers(read, end) == [end + 1]

    assert len(walks) == 1
