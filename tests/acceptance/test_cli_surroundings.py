"""What stands around the command: a terminal, a pipe, a full disk, a plain locale."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.acceptance.command import WHO, Command, as_process


def test_errors_cannot_act_on_a_terminal(command: Command) -> None:
    """What the user typed, and what a file is called, is quoted without control characters."""
    for words in (["\x1b[2Jx"], ["read", "--query", "\x1b]0;x\x07", *WHO], ["inspect-memory", "\x9bm"]):
        answer = command(*words)
        assert answer.code == 2
        assert not set(answer.err) & set("\x1b\x07\x9b")


def test_a_reader_that_leaves_early_is_no_error() -> None:
    """`| head` ends the command quietly."""
    words = [sys.executable, "-m", "agent_runtime_ref", "inspect-memory", "--format", "jsonl"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()

    assert (process.wait(timeout=60), said) == (141, b"")


def test_a_full_disk_is_said() -> None:
    """Output that cannot be written is an error and not a success."""
    full = Path("/dev/full")
    if not full.exists():
        return
    for word in ("inspect-memory", "--version"):
        with full.open("w") as target:
            words = [sys.executable, "-m", "agent_runtime_ref", word]
            done = subprocess.run(
                words, stdout=target, stderr=subprocess.PIPE, text=True, timeout=60, check=False
            )
        assert done.returncode == 3
        assert "not written: no space left" in done.stderr
        assert "internal error" not in done.stderr
        assert done.stderr.count("\n") == 1


def test_works_as_a_process_in_a_plain_locale() -> None:
    """Where the terminal knows only ASCII, JSON still holds every character, as escapes."""
    answer = as_process("inspect-memory", "--tenant", "tenant-acme", PYTHONIOENCODING="ascii")

    assert answer.code == 0
    assert answer.document["count"] == 3
