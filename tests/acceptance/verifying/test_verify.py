"""`trace verify`: what somebody who can write the log cannot hide."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent_runtime_ref.telemetry.segments import closed_segments
from tests.acceptance.command import WHO, Command, file_of, question
from tests.acceptance.verifying.edits import EDITS, edited, resealed, told


def test_a_whole_log_without_anchors(command: Command, log: Path) -> None:
    """Nothing is found, and it is said that nothing vouches for the tail: in the data and beside it."""
    answer = command("trace", "verify", log)

    assert (answer.code, answer.document["lines"], answer.document["ok"]) == (0, 24, True)
    assert answer.document["findings"] == []
    assert answer.document["tail"] == "tail unverified"
    assert "tail unverified: 24 lines after line 0" in answer.err
    assert "tail unverified" in command("trace", "verify", log, "--format", "text").out


def test_exported_events_are_anchors(command: Command, log: Path, tmp_path: Path) -> None:
    """With the trace of the same reads, all is verified up to the last event."""
    answer = command("trace", "verify", log, "--anchors", tmp_path / "trace.jsonl")

    assert (answer.code, answer.err) == (0, "")
    assert (answer.document["ok"], answer.document["tail"]) == (True, "verified")
    assert answer.document["chains"] == [
        {"chain": "log", "lines": 24, "first": 1, "last": 24, "anchored": 24, "tail_lines": 0}
    ]


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_found_without_anchors_too(command: Command, log: Path, name: str) -> None:
    """Whoever does not seal the chain anew is found by the chain alone; the exit code is 1."""
    edit, expected = EDITS[name]
    edited(log, edit)
    answer = command("trace", "verify", log)

    assert answer.code == 1
    assert answer.document["ok"] is False
    assert told(answer) == expected
    assert {one["chain"] for one in answer.document["findings"]} == {"log"}


def test_a_finding_says_where_it_stands(command: Command, log: Path) -> None:
    """File and line there, beside the number that the line has in the log."""
    edited(log, EDITS["two at once"][0])
    _, changed = command("trace", "verify", log).document["findings"]
    text = command("trace", "verify", log, "--format", "text").out

    assert (changed["file"], changed["at"], changed["line"]) == (str(log), 6, 7)
    assert f"{log}:6: line 7 altered: " in text
    assert "chain log: 23 lines, does not hold" in text


def test_a_chain_that_was_sealed_anew(command: Command, log: Path, tmp_path: Path) -> None:
    """Without an anchor it fits, and is told as unverified; each exported event finds it."""
    edited(log, lambda lines: resealed(lines, 10, '"effect":"allow"', '"effect":"deny"'))
    alone = command("trace", "verify", log)
    known = command("trace", "verify", log, "--anchors", tmp_path / "trace.jsonl")

    assert (alone.code, alone.document["tail"]) == (0, "tail unverified")
    assert known.code == 1
    assert told(known) == [(11, "altered")]  # line 10 is a decision; line 11 is the next event
    assert "lines 10 to 11" in known.document["findings"][0]["detail"]


def test_a_tail_that_was_cut_off(command: Command, log: Path, tmp_path: Path) -> None:
    """No chain can show that lines are gone from its end; an anchor below them does, and says which."""
    edited(log, lambda lines: lines[:20])
    alone = command("trace", "verify", log)
    known = command("trace", "verify", log, "--anchors", tmp_path / "trace.jsonl")

    assert (alone.code, alone.document["tail"]) == (0, "tail unverified")
    assert (known.code, told(known)) == (1, [(21, "truncated")])
    assert known.document["findings"][0]["until"] == 24


def test_a_store_has_two_chains(command: Command, store: Path, tmp_path: Path) -> None:
    """Lines of writes and of reads are verified each by itself."""
    answer = command("trace", "verify", "--store", f"sqlite:{store}", "--anchors", tmp_path / "trace.jsonl")

    assert (answer.code, answer.document["tail"]) == (0, "verified")
    assert [one["chain"] for one in answer.document["chains"]] == ["writes", "reads"]
    assert answer.document["lines"] == sum(one["lines"] for one in answer.document["chains"]) == 12


ROWS: dict[str, tuple[str, str, list[tuple[int, str]]]] = {
    "changed": ("", "UPDATE log SET line=replace(line,'acme','acmE') WHERE seq=2", [(2, "altered")]),
    "removed": ("", "DELETE FROM log WHERE seq=3", [(3, "missing")]),
    "removed last": ("", "DELETE FROM log WHERE seq>4", [(5, "truncated")]),
    "removed all": (".reads", "DELETE FROM log", [(1, "truncated")]),
    "another type": (".reads", "UPDATE log SET line=x'FF00' WHERE seq=1", [(1, "altered")]),
    "no text": (".reads", "UPDATE log SET line=CAST(x'FF' AS TEXT) WHERE seq=1", [(1, "altered")]),
    "renumbered": ("", "UPDATE log SET seq=-7 WHERE seq=3", [(3, "reordered")]),
    "added": ("", "INSERT INTO log SELECT 99, line FROM log WHERE seq=1", [(1, "reordered")]),
}


@pytest.mark.parametrize("name", ROWS)
def test_an_edit_of_rows_is_found(command: Command, store: Path, tmp_path: Path, name: str) -> None:
    """Whoever opens the database itself is found like whoever edits a file."""
    suffix, statement, expected = ROWS[name]
    with closing(sqlite3.connect(f"{store}{suffix}")) as connection, connection:
        connection.execute(statement)
    answer = command("trace", "verify", "--store", f"sqlite:{store}", "--anchors", tmp_path / "trace.jsonl")

    assert answer.code == 1
    assert told(answer) == expected
    assert {one["chain"] for one in answer.document["findings"]} == {"reads" if suffix else "writes"}


def test_a_log_of_reads_that_is_gone(command: Command, store: Path, tmp_path: Path) -> None:
    """Its anchors know it; the whole of it is cut off."""
    Path(f"{store}.reads").unlink()
    answer = command("trace", "verify", "--store", f"sqlite:{store}", "--anchors", tmp_path / "trace.jsonl")

    assert (answer.code, told(answer)) == (1, [(1, "truncated")])


@pytest.fixture
def rotated(command: Command, tmp_path: Path) -> Path:
    """A log over several files."""
    log = tmp_path / "rotated.jsonl"
    file = file_of(tmp_path / "runtime.yaml", {"log": str(log), "log_rotate_bytes": 65536})
    asked = file_of(tmp_path / "q.yaml", question())
    for _ in range(14):
        command("read", "--query", asked, *WHO, "--settings", file)
    assert len(closed_segments(log)) >= 2
    return log


def test_a_rotated_log_is_one_chain(command: Command, rotated: Path) -> None:
    """All its files are verified in order; a finding names the file, and a file that is gone is missed."""
    whole = command("trace", "verify", rotated)
    first, second = closed_segments(rotated)[:2]
    begins = json.loads(second.read_text().splitlines()[0])["seq"]
    edited(second, lambda lines: [lines[0], lines[1].replace(b"acme", b"acmE", 1), *lines[2:]])
    changed = command("trace", "verify", rotated)
    first.unlink()
    gone = command("trace", "verify", rotated)

    assert (whole.code, whole.document["lines"]) == (0, 14 * 12)
    (finding,) = changed.document["findings"]
    assert (finding["file"], finding["at"], finding["line"]) == (str(second), 2, begins + 1)
    assert told(gone)[: begins - 1] == [(n, "missing") for n in range(1, begins)]


def test_closed_files_may_be_archived(
    command: Command, rotated: Path, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    """An anchor knows where each file ends: what is left verifies by it, and what was moved by itself."""
    anchor = tmp_path / "anchor.json"
    command("trace", "anchor", "--log", rotated, "-o", anchor, "--key", keys[0])
    first, second = closed_segments(rotated)[:2]
    archive = tmp_path / "archive"
    archive.mkdir()
    moved = archive / second.name
    os.rename(first, archive / first.name)
    os.rename(second, moved)
    known = ["--anchor", anchor, "--key", keys[1]]
    left = command("trace", "verify", rotated, *known)
    alone = command("trace", "verify", moved, *known)
    without = command("trace", "verify", rotated)

    signing = ["trace", "anchor", "--log", rotated, "--key", keys[0], "-o"]
    assert command(*signing, tmp_path / "2.json").code == 1
    assert command(*signing, tmp_path / "2.json", "--anchor", anchor).code == 0
    assert (left.code, left.document["tail"]) == (0, "verified")
    assert left.document["chains"][0]["first"] > 1
    assert (alone.code, alone.document["tail"]) == (0, "verified")
    assert without.code == 1
    edited(moved, lambda lines: lines[:-1])
    assert command("trace", "verify", moved, *known).document["tail"] == "tail unverified"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no log is named that outlives a command"),
        (["trace.jsonl"], "is not sealed"),
        (["none.jsonl"], "not readable"),
        (["log.jsonl", "--anchor", "anchor.json"], "name both --anchor and --key"),
        (["log.jsonl", "--key", "anchor.pub"], "name both --anchor and --key"),
        (["log.jsonl", "--anchors", "q.yaml"], "the anchors name no line"),
        (["log.jsonl", "--anchor", "q.yaml", "--key", "anchor.pub"], "is no anchor"),
        (["log.jsonl", "--store", "sqlite:memory.db"], "not both"),
    ],
)
def test_what_cannot_be_verified_is_said(
    command: Command,
    log: Path,
    keys: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    said: str,
) -> None:
    """No log, another file, half of an anchor: the command ends with 2 and never claims that all is well."""
    monkeypatch.chdir(log.parent)
    answer = command("trace", "verify", *words)

    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
