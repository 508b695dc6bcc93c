"""`run`: one agent turn from a shell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.command import Command, as_process
from tests.fault_server import FaultServer, answer, saying
from tests.turns import completion

MESSAGE = "which queue do support tickets use?"


def test_a_turn_over_the_bundled_seeds(command: Command) -> None:
    """Without any option the offline model answers from the seeds."""
    told = command("run", MESSAGE)

    assert (told.code, told.err) == (0, "")
    assert "Support tickets must use the support queue" in told.out
    assert "offline" in told.out


def test_a_turn_as_json(command: Command) -> None:
    """The document has the reply, the layers, the manifest and every event, those behind the reply too."""
    document = command("run", MESSAGE, "--format", "json").document

    assert document["status"] == "complete"
    assert [layer["name"] for layer in document["layers"]] == ["static", "session", "retrieved", "tool"]
    assert document["layers"][2]["record_ids"][0] == "mem-002"
    names = [event["event_type"] for event in document["events"]]
    assert (names[0], names[-1]) == ("run_start", "background_compaction")
    assert "context" not in document


def test_the_context_on_request(command: Command) -> None:
    """It is printed before the reply, and in JSON beside it."""
    assert command("run", MESSAGE, "--show-context").out.startswith('<context_layer name="static">')
    document = command("run", MESSAGE, "--show-context", "--format", "json").document
    assert '<context_layer name="retrieved">' in document["context"]


def test_a_refused_turn(command: Command) -> None:
    """The code is that of a refusal, and the sentence names the reason."""
    told = command("run", MESSAGE, "--purpose", "anything")

    assert (told.code, told.out) == (1, "")
    assert "purpose_unknown" in told.err


def test_a_turn_is_kept_in_a_named_store(command: Command, tmp_path: Path) -> None:
    """What was said in one process is recalled in the next."""
    where = ("--store", f"sqlite:{tmp_path / 'memory.db'}", "--tenant", "acme", "--principal", "ana")
    assert command("run", "We persist in SQLite.", *where).code == 0
    told = command("run", "What did we say last time about SQLite?", *where)

    tree = command("trace", "inspect", *where[:2]).out

    assert "We persist in SQLite." in told.out
    assert tree.index("context_layers_built") < tree.index("run_complete")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["memory.db", "memory.db.reads"]


def test_a_named_store_wants_a_tenant(command: Command, tmp_path: Path) -> None:
    """Which tenant it is cannot be guessed; nothing is made."""
    told = command("run", MESSAGE, "--store", f"sqlite:{tmp_path / 'memory.db'}")

    assert told.code == 2
    assert "--tenant" in told.err
    assert list(tmp_path.iterdir()) == []


def test_a_model_of_ones_own(command: Command) -> None:
    """An endpoint answers instead; its reply is made harmless for the terminal."""
    with FaultServer(saying(completion({"content": "red \x1b[31m alert"}))) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        told = command("run", MESSAGE, "--model", url, "--model-name", "small")

    assert (told.code, told.out) == (0, "red \\x1b[31m alert\n")


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--model", "{url}", "--model-name", "small"), 3, "status 500"),
        (("--model", "{url}"), 2, "agent.model.name, AGENT_RUNTIME_MODEL_NAME or --model-name"),
        (("--model", "ofline"), 2, "--model: must be the address of a server, such as http://127.0.0.1:8000"),
        (("--model", "ofline"), 2, "or `offline`"),
    ],
)
def test_a_model_that_cannot_answer(command: Command, options: tuple[str, ...], code: int, said: str) -> None:
    """A failing model is a failure, a mistaken setting a mistake; each in one line."""
    with FaultServer(saying(answer({}, status="500 Oops"))) as server:
        words = [one.format(url=f"http://127.0.0.1:{server.port}/v1") for one in options]
        told = command("run", MESSAGE, *words)

    assert (told.code, told.out) == (code, "")
    assert said in told.err
    assert len(told.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://user:hidden@127.0.0.1:9/v1", "must be the address of a server"),
        ("http://127.0.0.1:9/v1?key=hidden", "must be the address of a server"),
        ("http://127.0.0.1:9/hidden", "endpoint `http://127.0.0.1:9` serves models by name"),
        ("http://hidden:hidden/v1", "agent.model.endpoint"),
    ],
)
@pytest.mark.parametrize("way", ["option", "variable", "file"])
def test_the_address_of_a_model_is_not_quoted(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, said: str, way: str
) -> None:
    """Whichever way it is named: it may hold a password, or a token in its path."""
    words: list[Any] = ["--model", url] if way == "option" else []
    if way == "variable":
        monkeypatch.setenv("AGENT_RUNTIME_MODEL", url)
    if way == "file":
        settings = tmp_path / "runtime.yaml"
        settings.write_text(f"agent: {{model: {{endpoint: '{url}'}}}}\n", encoding="utf-8")
        words = ["--settings", settings]
    told = command("run", MESSAGE, *words)

    assert (told.code, told.out) == (2, "")
    assert said in told.err
    assert "hidden" not in told.err


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://user:hidden@127.0.0.1:9/hidden", "endpoint `http://127.0.0.1:9` is no address"),
        ("user:hidden@127.0.0.1", "is no address"),
        ("http://model.example/hidden", "endpoint `http://model.example` would be sent"),
    ],
)
def test_the_address_of_a_judge_is_not_quoted(
    command: Command, monkeypatch: pytest.MonkeyPatch, url: str, said: str
) -> None:
    """The variable is named in its place."""
    monkeypatch.setenv("AGENT_RUNTIME_JUDGE_URL", url)
    monkeypatch.setenv("AGENT_RUNTIME_JUDGE_MODEL", "small")
    monkeypatch.setenv("AGENT_RUNTIME_JUDGE_KEY", "hidden")
    told = command("run", MESSAGE)

    assert told.code == 2
    assert "AGENT_RUNTIME_JUDGE_URL" in told.err
    assert said in told.err
    assert "hidden" not in told.err


def test_a_message_from_standard_input() -> None:
    """`-` reads it; a blank one is a mistake."""
    assert "support queue" in as_process("run", "-", stdin=MESSAGE).out
    blank = as_process("run", "-", stdin=" \n")
    assert (blank.code, blank.out) == (2, "")
    assert "message" in blank.err


def test_what_a_user_says_of_himself_is_kept(command: Command) -> None:
    """Behind the reply the turn is curated: what always holds is a preference, the rest is of the session."""
    said = "budget 300 this time / I always hate plastic / blue today"
    assert command("run", said, "--tenant", "local", "--session", "thread-1").code == 0
    kept = command("preferences", "list", "--format", "json").document
    session = command("session", "show", "thread-1", "--format", "json").document

    assert [one["key"] for one in kept["preferences"]] == ["dislike:material:general:plastic"]
    assert "blue" in str(session)
    assert "plastic" not in str(session)


def test_work_behind_a_reply_that_fails_over_the_seeds_is_not_tried_again(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store ends with the command, and that is what is said; the line names the path that failed."""
    home = tmp_path / "home"
    home.write_text("no folder", encoding="utf-8")
    monkeypatch.setenv("AGENT_RUNTIME_SESSIONS", str(tmp_path / "sessions"))
    monkeypatch.setenv("AGENT_RUNTIME_PREFERENCES", f"file:{home}/preferences")
    told = command("run", "I always hate plastic", "--session", "s", "--principal", "ann")

    assert told.code == 0
    assert "store `seeds:` ends with this command, so say it again" in told.err
    assert "tried again by the next run" not in told.err
    assert f"path={home}/preferences" in told.err


def test_work_behind_a_reply_that_fails_over_a_lasting_store_is_tried_again(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the command promises there, the next run keeps."""
    home = tmp_path / "home"
    home.write_text("no folder", encoding="utf-8")
    where = ("--store", f"sqlite:{tmp_path / 'm.db'}", "--tenant", "acme", "--principal", "ann")
    monkeypatch.setenv("AGENT_RUNTIME_PREFERENCES", f"file:{home}/preferences")
    told = command("run", "I always hate plastic", *where)
    home.unlink()
    again = command("run", "hello", *where)
    listed = command("preferences", "list", "--tenant", "acme", "--user", "ann", "--format", "block")

    assert "tried again by the next run" in told.err
    assert again.err == ""
    assert "plastic" in listed.out


def test_a_judge_that_fails_is_told(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reply stands; that nothing was kept is said, and who did not answer, without path or key."""
    with FaultServer(saying(b"")) as server:
        port = server.port
    monkeypatch.setenv("AGENT_RUNTIME_JUDGE_URL", f"http://127.0.0.1:{port}/hidden")
    monkeypatch.setenv("AGENT_RUNTIME_JUDGE_MODEL", "small")
    told = command("run", "I always hate plastic", "--principal", "ann")

    assert told.code == 0
    assert "note: the judge failed" in told.err
    assert f"ConnectionRefusedError, from http://127.0.0.1:{port})" in told.err
    assert "hidden" not in told.err
    assert "plastic" not in told.err


def test_a_key_that_is_named_has_to_be_set(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is sent: an endpoint is not asked without the key that somebody meant it to have."""
    monkeypatch.delenv("NOPE_KEY", raising=False)
    settings = tmp_path / "runtime.yaml"
    model = "{endpoint: 'http://127.0.0.1:9/v1', name: small, key_variable: NOPE_KEY}"
    settings.write_text(f"agent:\n  model: {model}\n", encoding="utf-8")
    told = command("run", "hello", "--settings", settings)
    monkeypatch.setenv("NOPE_KEY", "k")
    asked = command("run", "hello", "--settings", settings)

    assert (told.code, told.out) == (2, "")
    assert "agent.model.key_variable names NOPE_KEY, which is not set" in told.err
    assert (asked.code, "from http://127.0.0.1:9" in asked.err) == (3, True)


def test_debug_shows_where_a_failure_behind_the_reply_comes_from(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends no command, so its traceback is shown where it is told."""
    (tmp_path / "home").write_text("no folder", encoding="utf-8")
    monkeypatch.setenv("AGENT_RUNTIME_PREFERENCES", f"file:{tmp_path}/home/preferences")
    words = ("run", "I always hate plastic", "--principal", "ann")

    assert "Traceback" in command(*words, "--debug").err
    assert "Traceback" not in command(*words).err
