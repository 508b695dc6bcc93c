"""What somebody who does not know the commands yet gets wrong, and what is said about it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from tests.acceptance.command import WHO, Command, fact, file_of

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
