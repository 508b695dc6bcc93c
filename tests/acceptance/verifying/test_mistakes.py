"""What the `trace` commands say of logs that are empty, and of files that are no logs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.command import WHO, Command, fact, file_of, question
from tests.acceptance.verifying.edits import edited
from tests.unit.test_log_reader import OPA


def test_an_emptied_log_is_never_verified(
    command: Command, log: Path, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    """Nothing in it is wrong, and nothing vouches for it; an anchor of what it was finds all of it gone."""
    anchor = tmp_path / "anchor.json"
    command("trace", "anchor", "--log", log, "-o", anchor, "--key", keys[0])
    log.write_bytes(b"")
    alone = command("trace", "verify", log)
    known = command("trace", "verify", log, "--anchor", anchor, "--key", keys[1], "--format", "text")

    assert (alone.code, alone.document["tail"]) == (0, "tail unverified")
    assert "it is empty, and no anchor says whether it ever had a line" in alone.err
    assert known.code == 1
    assert "line 1 to 24 truncated" in known.out
    assert "verified up to" not in known.out
    assert "it is empty, and an anchor knows lines of it" in known.out


def test_an_empty_log_is_not_signed(command: Command, tmp_path: Path, keys: tuple[Path, Path]) -> None:
    """An anchor of no line would prove nothing, and look as if it did."""
    empty = tmp_path / "log.jsonl"
    empty.touch()
    answer = command("trace", "anchor", "--log", empty, "-o", tmp_path / "a.json", "--key", keys[0])

    assert (answer.code, answer.out) == (2, "")
    assert "has no line, so there is nothing to sign" in answer.err
    assert not (tmp_path / "a.json").exists()


def test_a_log_that_does_not_hold_is_never_called_verified(
    command: Command, log: Path, tmp_path: Path
) -> None:
    """How far anchors reach is told in other words where something is wrong before their last one."""
    edited(log, lambda lines: [*lines[:5], *lines[6:]])
    out = command("trace", "verify", log, "--anchors", tmp_path / "trace.jsonl", "--format", "text").out

    assert "line 6 missing" in out
    assert "does not hold; checked against the anchors up to line 24" in out
    assert "verified up to" not in out


def test_the_tail_is_told_once(command: Command, log: Path) -> None:
    """In the text where there is one, else beside the data."""
    text, data = command("trace", "verify", log, "--format", "text"), command("trace", "verify", log)

    assert (text.out.count("tail unverified"), text.err) == (1, "")
    assert data.err.count("tail unverified") == 1


@pytest.mark.parametrize(
    "words",
    [
        ("trace", "verify"),
        ("trace", "inspect", "--log"),
        ("policy", "replay", "--policies", "policies", "--log"),
    ],
)
def test_a_store_is_no_log(command: Command, tmp_path: Path, words: tuple[str, ...]) -> None:
    """Its file is recognised, and it is said how a store is named."""
    store = tmp_path / "memory.db"
    candidate = file_of(tmp_path / "fact.yaml", fact())
    command("write", "--candidate", candidate, *WHO, "--store", f"sqlite:{store}")
    answer = command(*words, store)

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"{store}: ")
    assert f"--store sqlite:{store}" in answer.err


@pytest.mark.parametrize("scheme", ["sqlite", "jsonl", "file"])
def test_the_address_of_a_store_is_no_log_file(command: Command, scheme: str) -> None:
    """It is not looked for as a file of that name without a word about the option that takes it."""
    answer = command("trace", "verify", f"{scheme}:memory.db")

    assert (answer.code, answer.out) == (2, "")
    assert f"it is the address of a store, which is named with --store {scheme}:memory.db" in answer.err


def test_a_file_without_a_line_of_a_log_is_no_log(command: Command, tmp_path: Path) -> None:
    """A document that is named by mistake is not reported as a log that was tampered with."""
    answer = command("trace", "verify", file_of(tmp_path / "fact.yaml", fact()))

    assert (answer.code, answer.out) == (2, "")
    assert "is no decision log" in answer.err
    assert "altered" not in answer.err


def test_a_log_with_one_line_left_is_one(command: Command, log: Path) -> None:
    """Whatever else became of its lines, it is told what."""
    edited(log, lambda lines: [b"x\n" * 23, lines[-1]])
    answer = command("trace", "verify", log)

    assert answer.code == 1
    assert {one["kind"] for one in answer.document["findings"]} == {"altered"}


def test_nothing_to_inspect_is_said(command: Command, tmp_path: Path) -> None:
    """A file without a decision does not look like a command that did nothing."""
    empty = tmp_path / "log.jsonl"
    empty.touch()
    answer = command("trace", "inspect", "--log", empty)

    assert (answer.code, answer.out) == (0, "")
    assert answer.err == f"note: no decision and no event in `{empty}`\n"


def test_a_missing_log_is_named_once(command: Command, tmp_path: Path) -> None:
    """The place stands before the sentence, and nowhere else."""
    answer = command("trace", "inspect", "--log", tmp_path / "nope.jsonl")

    assert answer.err == f"{tmp_path / 'nope.jsonl'}: log not readable: no such file or directory\n"


CANDIDATES = {"operation": "write", "candidates": [{}], "caller": {"principal_id": "user-42"}}
HELD = {"allowed": [0], "deny": [], "quarantine": [{"index": 0, "reason": "odd", "rule_id": "MEM-W-201"}]}
MIXED = {"allowed": [0, 1], "deny": [{"index": 2, "reason": "no", "rule_id": "MEM-W-101"}], "quarantine": []}


@pytest.mark.parametrize(
    ("result", "effect"),
    [
        (HELD, "quarantine"),
        (MIXED, "allow and deny"),
        ({**MIXED, "allowed": []}, "deny"),
        (OPA["result"], "allow"),
    ],
)
def test_a_server_knows_who_asked_by_the_question(
    command: Command, tmp_path: Path, result: dict[str, object], effect: str
) -> None:
    """Not the address of whoever sent it is told but the principal, and what became of the write."""
    path = tmp_path / "opa.log"
    path.write_text(json.dumps(OPA | {"input": CANDIDATES, "result": result}) + "\n")

    assert f"write: {effect}  by user-42\n" in command("trace", "inspect", "--log", path).out


def test_a_log_is_not_begun_in_a_file_that_is_something_else(command: Command, tmp_path: Path) -> None:
    """It is left as it is to the last byte, a last line without its end included."""
    other = tmp_path / "fact.yaml"
    other.write_text("kind: note\ncontent: text without a line end")
    answer = command("read", "--query", file_of(tmp_path / "q.yaml", question()), *WHO, "--log", other)

    assert answer.code == 2
    assert f"`{other}` is no decision log" in answer.err
    assert "backup" not in answer.err
    assert other.read_text() == "kind: note\ncontent: text without a line end"


def test_a_document_is_no_store(command: Command, tmp_path: Path) -> None:
    """It is not called a damaged store that a backup would help."""
    other = file_of(tmp_path / "fact.yaml", fact())
    answer = command("quarantine", "list", "--store", f"sqlite:{other}")

    assert answer.code == 2
    assert f"`{other}` is no store: the file is no SQLite database; name another file" in answer.err


def test_a_key_of_the_wrong_kind_is_told_as_that(
    command: Command, log: Path, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    """A public key need not be hidden before it is said that it cannot sign, and a private one is none."""
    private, public = keys
    public.chmod(0o644)
    anchor = tmp_path / "anchor.json"
    signing = command("trace", "anchor", "--log", log, "-o", anchor, "--key", public)
    command("trace", "anchor", "--log", log, "-o", anchor, "--key", private)
    verifying = command("trace", "verify", log, "--anchor", anchor, "--key", private)

    assert (signing.code, verifying.code) == (2, 2)
    assert f"key `{public}` is a public one, and no private key" in signing.err
    assert f"key `{private}` is a private one; give its public part" in verifying.err
