"""Who acts on a user's own preferences and sessions: himself, or a role that the policy knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.runtime import GovernedMemory
from agent_runtime_ref.session_state import Sessions
from tests.acceptance.command import Command
from tests.constraining import finding

PLASTIC = "dislike:material:general:plastic"
ADD = ("preferences", "add", "I always hate plastic", "--dislike", "--category", "material", "--hard")
LIKED = ("preferences", "add", "I like plastic", "--like", "--category", "material", "--slug", "plastic")
LOOKS = [
    ("preferences", "list"),
    ("preferences", "clean"),
    ("session", "show", "t-1"),
    ("preferences", "export"),
]
CHANGES = [
    LIKED,
    ("preferences", "forget", PLASTIC),
    ("preferences", "forget", "--all"),
    ("preferences", "clean", "--apply"),
    ("session", "clear", "t-1"),
]
USER = ("--user", "user-42")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Path:
    """A home with a hard dislike and one thread of user-42."""
    names = ("PREFERENCES", "USER_ID", "STORE", "SETTINGS", "SESSIONS")
    for name in (*(f"AGENT_RUNTIME_{one}" for one in names), "WORKBUDDY_USER_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AGENT_RUNTIME_HOME", str(tmp_path / "home"))
    assert command(*ADD, *USER).code == 0
    with GovernedMemory.open("memory:") as memory:
        Sessions(memory).merge("t-1", [finding("wood")], caller=Caller("local", "user-42", subject="user-42"))
    return tmp_path / "home"


def held(home: Path) -> dict[str, bytes]:
    """Return every file of the home that holds something of a user's."""
    return {str(path): path.read_bytes() for path in home.rglob("*.json")}


@pytest.mark.parametrize("words", [*LOOKS, *CHANGES], ids=lambda words: "-".join(words[:2]))
def test_another_is_refused_by_a_rule(command: Command, home: Path, words: tuple[str, ...]) -> None:
    """Exit 1 with reason and rule; nothing is said of what is kept, and nothing is changed."""
    before = held(home)
    answer = command(*words, *USER, "--principal", "eve")

    assert answer.code == 1
    assert answer.document["reasons"]
    assert answer.document["rule_ids"]
    assert "plastic" not in answer.out
    assert "wood" not in answer.out
    assert held(home) == before


def test_a_role_that_no_policy_knows_is_none(command: Command) -> None:
    """A word behind --role is no right by itself."""
    eve = (*USER, "--principal", "eve", "--role", "colleague")

    assert command("preferences", "list", *eve).document["reasons"] == ["subject_mismatch"]
    assert command("preferences", "forget", "--all", *eve).document["reasons"] == ["erasure_not_permitted"]


@pytest.mark.parametrize("words", [*LOOKS, *CHANGES], ids=lambda words: "-".join(words[:2]))
def test_an_operator_acts_for_a_user(command: Command, words: tuple[str, ...]) -> None:
    """The policy lets him look, state, and remove."""
    assert command(*words, *USER, "--principal", "op", "--role", "operator").code == 0


@pytest.mark.parametrize("words", CHANGES[2:], ids=lambda words: "-".join(words[:2]))
def test_who_may_erase_may_remove(command: Command, words: tuple[str, ...]) -> None:
    """A privacy officer removes what he may not look at."""
    officer = (*USER, "--principal", "dpo", "--role", "privacy_officer")

    assert command("preferences", "list", *officer).document["reasons"] == ["subject_mismatch"]
    assert command(*words, *officer).code == 0


def test_nothing_is_told_of_who_is_not_known(command: Command, home: Path) -> None:
    """A stranger is refused whether there is anything or not, and makes nothing."""
    before = held(home)
    for words in (LOOKS[0], LIKED, CHANGES[2], CHANGES[4]):
        assert command(*words, "--user", "nobody-yet", "--principal", "eve").code == 1
    assert held(home) == before


def test_one_name_stands_for_the_other(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The principal is the user where no user is named, whatever the environment says."""
    monkeypatch.setenv("AGENT_RUNTIME_USER_ID", "somebody-else")
    for who in (USER, ("--principal", "user-42"), (*USER, "--principal", "user-42")):
        listed = command("preferences", "list", *who, "--format", "json").document
        shown = json.loads(command("session", "show", "t-1", *who, "--format", "json").out)
        assert [one["key"] for one in listed["preferences"]] == [PLASTIC]
        assert (shown["user_id"], shown["counts"]) == ("user-42", {"negative_hard": 1})


@pytest.mark.parametrize("words", [("list",), ("clean",), ("forget", "x"), ("forget", "--all"), ("export",)])
@pytest.mark.parametrize("scheme", ["sqlite", "file"])
def test_a_named_place_that_is_not_there_is_an_error(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], scheme: str
) -> None:
    """A mistyped address is no user without preferences: by option and by variable, and nothing is made."""
    address = f"{scheme}:{tmp_path / 'nope'}"
    by_option = command("preferences", *words, "--preferences", address)
    monkeypatch.setenv("AGENT_RUNTIME_PREFERENCES", address)
    by_variable = command("preferences", *words)

    assert (by_option.code, by_variable.code) == (2, 2)
    assert f"no store at `{tmp_path / 'nope'}` (--preferences)" in by_option.err
    assert "(AGENT_RUNTIME_PREFERENCES)" in by_variable.err
    assert not (tmp_path / "nope").exists()


@pytest.mark.parametrize("scheme", ["sqlite", "file"])
def test_what_is_added_makes_the_place(command: Command, tmp_path: Path, scheme: str) -> None:
    """The first preference makes the place that was named."""
    place = ("--preferences", f"{scheme}:{tmp_path / 'new'}")

    assert command(*ADD, *place).code == 0
    assert command("preferences", "list", *place, "--format", "json").document["count"] == 1
