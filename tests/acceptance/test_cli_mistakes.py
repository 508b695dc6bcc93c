"""What somebody who does not know the commands yet gets wrong, and what is said about it."""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
import socket
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.resources import policies_path
from tests.acceptance.command import WHO, Command, fact, file_of, on_terminal, question

FORGET = ("forget", "--subject", "person-7", "--tenant", "tenant-acme", "--principal", "dpo")


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without variables that name a store or settings."""
    for name in ("STORE", "SETTINGS"):
        monkeypatch.delenv(f"AGENT_RUNTIME_{name}", raising=False)


def test_what_changes_a_store_is_told_which(command: Command, tmp_path: Path) -> None:
    """A write or a forget of seeds that end with the command would look done; it is refused as usage."""
    candidate = file_of(tmp_path / "c.yaml", fact())
    settings = file_of(tmp_path / "runtime.yaml", {"engine": "embedded"})
    for words in (FORGET, ("write", "--candidate", candidate, *WHO), (*FORGET, "--settings", settings)):
        answer = command(*words)
        assert (answer.code, answer.out) == (2, "")
        assert "name it with --store" in answer.err


def test_a_store_may_be_named_in_three_ways(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An option, a settings file or a variable; seeds that are named are used, with a note."""
    settings = file_of(tmp_path / "runtime.yaml", {"store": "memory:"})
    for words in ((*FORGET, "--store", "seeds:"), (*FORGET, "--settings", settings)):
        answer = command(*words)
        assert answer.code == 0
        assert "ends with this command" in answer.err
    monkeypatch.setenv("AGENT_RUNTIME_STORE", "memory:")
    assert command(*FORGET).code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("forget", "--subject", "", *WHO, "--store", "memory:"),
        ("forget", "--subject", "p", "--tenant", " ", "--principal", "dpo", "--store", "memory:"),
        ("write", "--candidate", "c", "--tenant", "t", "--principal", "", "--store", "memory:"),
        ("read", "--query", "q", *WHO, "--subject", ""),
        ("inspect-memory", "--tenant", ""),
        ("inspect-memory", "--as", "", "--purpose", "planning"),
        ("quarantine", "list", "--tenant", ""),
    ],
    ids=lambda words: words[0],
)
def test_an_empty_name_names_nobody(command: Command, words: tuple[str, ...]) -> None:
    """An empty variable in a script must not become a person or a tenant."""
    answer = command(*words)

    assert (answer.code, answer.out) == (2, "")
    assert "must not be empty" in answer.err


def test_the_receipt_of_a_forget_says_where_and_when(command: Command, tmp_path: Path) -> None:
    """Filed alone, it still names the store, the tenant and the time."""
    store = f"sqlite:{tmp_path / 'memory.db'}"
    command("write", "--candidate", file_of(tmp_path / "c.yaml", fact()), *WHO, "--store", store)
    receipt = command(*FORGET, "--store", store).document

    assert (receipt["store"], receipt["tenant_id"]) == (store, "tenant-acme")
    assert datetime.fromisoformat(receipt["at"]).tzinfo is not None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("inspect-memory", "--kind", "gossip", "--tenant", "t-9"), "with --tenant t-9, --kind gossip"),
        (("inspect-memory", "--store", "memory:"), "nothing found in `memory:`"),
        (("quarantine", "list", "--tenant", "t-9"), "nothing of tenant t-9 is in quarantine"),
    ],
)
def test_nothing_found_is_said(command: Command, words: tuple[str, ...], said: str) -> None:
    """An empty answer names what was looked for, so that a misspelt filter is seen."""
    answer = command(*words)

    assert (answer.code, answer.document["count"]) == (0, 0)
    assert said in answer.err


def test_more_is_said_only_where_there_is_more(command: Command) -> None:
    """Of three records two are shown with a note, three without one."""
    two, three = command("inspect-memory", "--limit", "2"), command("inspect-memory", "--limit", "3")

    assert (two.document["count"], three.document["count"]) == (2, 3)
    assert "there are more" in two.err
    assert three.err == ""


@pytest.mark.parametrize("words", [("inspect-memory",), ("quarantine", "list")])
def test_a_limit_above_the_maximum_names_it(command: Command, words: tuple[str, ...]) -> None:
    """The number that the policy sets is told."""
    answer = command(*words, "--limit", "1000000")
    most = load_bundle().settings["limits"]["inspection_max"]

    assert (answer.code, answer.out) == (2, "")
    assert f"the maximum that the policy sets, {most}" in answer.err


def test_ids_are_never_broken() -> None:
    """At 80 columns long ids get a block a record; a dumb terminal gets plain columns."""
    for columns in (80, 30):
        written = on_terminal("inspect-memory", "--explain", columns=columns, NO_COLOR="1")
        for word in ("record: mem-001", "language_preference", "tenant-acme"):
            assert word in written
    plain = on_terminal("inspect-memory", columns=80, TERM="dumb")
    assert plain.startswith("record   tenant       class")
    assert "\x1b" not in plain
    assert "─" not in plain


def test_one_record_is_one_record() -> None:
    """The caption counts as people do."""
    assert "1 record in seeds:" in on_terminal("inspect-memory", "--memory-class", "profile", NO_COLOR="1")


def test_a_closed_output_is_said() -> None:
    """Closed before the command began: a sentence and code 3."""
    line = f"exec {shlex.quote(sys.executable)} -m agent_runtime_ref inspect-memory >&-"
    done = subprocess.run(["sh", "-c", line], stderr=subprocess.PIPE, text=True, timeout=60, check=False)

    assert done.returncode == 3
    assert done.stderr.startswith("agent-runtime-ref: standard output not written: it is closed")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("setting", ["log", "trace"])
def test_a_file_that_cannot_be_written_is_configuration(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    """By option or by variable, it is told before anything is decided."""
    query = file_of(tmp_path / "q.yaml", question())
    option = command("read", "--query", query, *WHO, f"--{setting}", tmp_path)
    monkeypatch.setenv(f"AGENT_RUNTIME_{setting.upper()}", str(tmp_path / "gone" / "x.jsonl"))
    variable = command("inspect-memory")

    monkeypatch.delenv(f"AGENT_RUNTIME_{setting.upper()}")
    if setting == "log":
        assert command("inspect-memory", "--log", "/dev/null").code == 2
    assert (option.code, variable.code) == (2, 2)
    assert "it is a folder" in option.err
    assert "there is no folder" in variable.err


def test_help_is_a_command_too(command: Command) -> None:
    """`help` and `help COMMAND` print what `--help` prints."""
    assert command("help") == command("--help")
    assert command("help", "forget") == command("forget", "--help")
    assert command("help").code == 0


def test_a_misspelt_command_is_guessed(command: Command) -> None:
    """What is close is suggested; for anything else the commands are listed."""
    near, far = command("inspect-memry"), command("xyz")

    assert (near.code, far.code) == (2, 2)
    assert "did you mean `inspect-memory`?" in near.err
    assert "inspect-memory" in far.err


@pytest.mark.parametrize(
    ("words", "help_of"),
    [
        (("read", "--query", "q", *WHO, "--odd"), "read"),
        (("trace", "verify", "--odd"), "trace verify"),
        (("policy", "test", "one", "two"), "policy test"),
        (("--odd", "lint"), "lint"),
    ],
)
def test_a_wrong_option_leads_to_the_help_of_its_command(
    command: Command, words: tuple[str, ...], help_of: str
) -> None:
    """Not to that of the program, which has none of the options."""
    answer = command(*words)

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.endswith(f"; see `agent-runtime-ref {help_of} --help`\n")


def test_descriptions_fit_a_narrow_terminal(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words go on with the next line; examples, which are copied, stay as they are."""
    monkeypatch.setenv("COLUMNS", "60")
    lines = command("trace", "verify", "--help").out.splitlines()
    described = lines[lines.index("") + 1 : lines.index("positional arguments:")]

    assert max(map(len, described)) <= 60
    assert "  agent-runtime-ref trace verify decisions.jsonl --anchors trace.jsonl" in lines


@pytest.mark.parametrize(
    "words",
    [
        ("write", *WHO, "--store", "memory:", "--candidate"),
        ("read", *WHO, "--query"),
        ("policy", "decide", "read", "--input"),
        ("inspect-memory", "--settings"),
    ],
    ids=lambda words: words[0],
)
def test_an_empty_file_is_said_to_be_empty(command: Command, tmp_path: Path, words: tuple[str, ...]) -> None:
    """It has no wrong type: there is nothing in it."""
    empty = tmp_path / "empty.yaml"
    empty.write_text("# nothing yet\n")
    answer = command(*words, empty)

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"{empty}:1:1: ")
    assert answer.err.endswith(": is empty\n")


def test_settings_that_are_malformed_are_placed(command: Command, tmp_path: Path) -> None:
    """File and line of the value that is wrong; without the file, that it is missing, and what was meant."""
    folder = tmp_path / "policies"
    shutil.copytree(policies_path(), folder)
    data = folder / "memory" / "settings" / "data.json"
    text = data.read_text()
    number = next(n for n, line in enumerate(text.splitlines(), 1) if '"query_max"' in line)
    data.write_text(re.sub(r'"query_max": [0-9]+', '"query_max": "many"', text))
    wrong = command("inspect-memory", "--policies", folder)
    above = command("inspect-memory", "--policies", tmp_path)
    data.unlink()
    gone = command("inspect-memory", "--policies", folder)

    assert (wrong.code, above.code, gone.code) == (2, 2, 2)
    assert f"{data}:{number}: policy_settings $.limits.query_max" in wrong.err
    assert f"did you mean {folder}?" in above.err
    assert f"{data} is missing" in gone.err


def test_what_is_no_bundle_is_said(command: Command, tmp_path: Path) -> None:
    """A document, an empty file and half an archive, in words of this program."""
    document = file_of(tmp_path / "fact.yaml", fact())
    empty, half = tmp_path / "empty", tmp_path / "half.tar.gz"
    empty.touch()
    half.write_bytes(gzip.compress(bytes(range(256)) * 8)[:-12])

    for path, said in (
        (document, "is no bundle: neither a folder nor a .tar.gz archive"),
        (empty, "is empty"),
        (half, "is cut off or damaged"),
    ):
        answer = command("inspect-memory", "--policies", path)
        assert (answer.code, answer.out) == (2, "")
        assert f"{path} {said}" in answer.err


def test_policies_without_a_gate_are_told_as_that(command: Command, tmp_path: Path) -> None:
    """The rule that is missing is named, in no words of the engine."""
    folder = tmp_path / "policies"
    shutil.copytree(policies_path(), folder)
    shutil.rmtree(folder / "memory" / "read")
    answer = command("inspect-memory", "--policies", folder)

    assert answer.code == 2
    assert "`memory.read` fails on the trial input {}: " in answer.err
    assert "the policies have no rule `data.memory.read.decision`" in answer.err


def test_settings_under_another_name_are_checked(command: Command, tmp_path: Path) -> None:
    """A file that was named and has the settings of a runtime is one, misspelt ones included."""
    file = file_of(tmp_path / "production.yaml", {"store": "memory:", "engin": "embedded"})
    foreign = file_of(tmp_path / "other.yaml", {"store": "memory:", "colour": "blue"})

    assert "LINT-C-011" in command("lint", file).out
    assert "not checked" in command("lint", foreign).out


def test_an_engine_that_is_down_is_named_with_what_was_tried(command: Command) -> None:
    """Seed records are written first, which nobody asked for by name."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # taken, and nobody listens
        address = f"http://127.0.0.1:{bound.getsockname()[1]}"
        answer = command("inspect-memory", "--engine", f"opa:{address}")

    assert answer.code == 3
    said = f"while seed records were loaded: no connection to {address}: connection refused"
    assert f"engine_unreachable ({said})" in answer.err
