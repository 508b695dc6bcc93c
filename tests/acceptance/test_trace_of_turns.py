"""`trace inspect` and `trace exposure` of what turns were held to: session constraints and preferences."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from agent_runtime_ref import AgentRuntime, Caller, GovernedMemory
from agent_runtime_ref.agent import Answer
from agent_runtime_ref.preferences import PreferenceStore
from agent_runtime_ref.session_state import Sessions
from tests.acceptance.command import Command
from tests.turns import Scripted

WHO = ("--tenant", "tenant-acme")
SAID = ("No plastic this time", "I always hate wool", "and now?")


class Talk(NamedTuple):
    """A talk of three turns, where its memory is, and what the last turn was held to."""

    address: str
    preferences: str
    trace_id: str  # of the last turn
    constraint: str
    preference: str


@pytest.fixture(params=["elsewhere", "here"], scope="module")
def talk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Talk:
    """Three turns; preferences in files of their own, as they are by default, or in the same store."""
    tmp_path = tmp_path_factory.mktemp("talk")
    address, folder = f"sqlite:{tmp_path / 'memory.db'}", f"file:{tmp_path / 'preferences'}"
    who = Caller("tenant-acme", "user-42", session_id="trip", subject="user-42")
    with GovernedMemory.open(address) as memory:
        is_here = request.param == "here"
        preferences = PreferenceStore(memory=memory) if is_here else PreferenceStore(folder)
        with (
            preferences,
            AgentRuntime.open(
                memory,
                model=Scripted(Answer("ok")),
                sessions=Sessions(memory, folder=tmp_path / "sessions"),
                preferences=preferences,
            ) as runtime,
        ):
            for message in SAID:
                result = runtime.run(message, caller=who)
                assert runtime.drain()
    preference, constraint = result.layers[1].record_ids
    kept = address if is_here else folder
    return Talk(address, kept, result.trace_id, constraint, preference)


def test_why_a_constraint_stood_in_the_prompt(talk: Talk, command: Command) -> None:
    """The event of the context names its record, so both commands find it there."""
    where = ("--store", talk.address)
    said = command("trace", "inspect", talk.trace_id, "--record", talk.constraint, *where).out
    contexts = command("trace", "exposure", talk.constraint, *where).document["contexts"]

    assert f"`{talk.constraint}` entered the context, in layer session" in said
    assert [one["trace_id"] for one in contexts][-1] == talk.trace_id
    assert len(contexts) == 2  # it was said in the first turn, and shown in the two behind it


def test_what_is_kept_in_another_store_is_said_to_be_there(talk: Talk, command: Command) -> None:
    """Of a record that entered the context no line says that there was none."""
    words = ("trace", "inspect", talk.trace_id, "--record", talk.preference, "--store", talk.address)
    said = command(*words).out

    assert f"`{talk.preference}` entered the context, in layer session" in said
    assert "the tenant had no such record then" not in said
    is_elsewhere = talk.preferences != talk.address
    assert ("the one that entered the context is kept elsewhere" in said) == is_elsewhere


def test_a_look_is_no_exposure(talk: Talk, command: Command, tmp_path: Path) -> None:
    """Whoever lists, exports or forgets is handed nothing as an agent is; the block of a prompt is."""
    whose = (*WHO, "--user", "user-42", "--preferences", talk.preferences)
    assert command("preferences", "list", *whose, "--format", "json").document["count"] == 1

    def exposed() -> int:
        if talk.preferences == talk.address:
            store = talk.address
        else:
            (file,) = Path(talk.preferences.removeprefix("file:")).glob("*.json")
            store = f"file:{file}"
        return len(command("trace", "exposure", talk.preference, "--store", store).document["contexts"])

    before = exposed()
    assert command("preferences", "list", *whose, "--about", "wool").code == 0
    assert command("preferences", "export", *whose, "-o", str(tmp_path / "me.json")).code == 0
    assert command("preferences", "clean", *whose).code == 0
    as_him = ("--as", "user-42", "--purpose", "personalization", "--format", "json")
    if talk.preferences == talk.address:
        assert command("inspect-memory", *WHO, *as_him, "--store", talk.address).document["count"]
    assert command("session", "show", "trip", *WHO, "--user", "user-42").code == 0
    assert exposed() == before
    assert command("preferences", "list", *whose, "--format", "block").code == 0
    assert exposed() == before + 1


def test_the_tree_says_what_each_read_was_for_and_where_it_went(talk: Talk, command: Command) -> None:
    """Several reads of a turn differ in purpose and kinds, and each names the layer that it fed."""
    said = command("trace", "inspect", talk.trace_id, "--store", talk.address).out

    assert "for answer_generation, of long_term, profile, short_term; kind " in said
    assert "for answer_generation, of short_term; source session_state" in said
    assert f"entered the context, in layer session: {talk.constraint}" in said
    is_here = talk.preferences == talk.address
    assert (f"entered the context, in layer session: {talk.preference}" in said) == is_here
    assert ("for personalization, of profile; kind " in said) == is_here


def test_a_record_that_is_nowhere_is_said_once(talk: Talk, command: Command) -> None:
    """One sentence and the code for what is not found, whichever command is asked."""
    for words in (("inspect", "--record"), ("exposure",), ("exposure", *WHO)):
        name, *rest = words
        options = rest if rest[:1] == ["--record"] else []
        others = [] if options else rest
        answer = command("trace", name, *options, "mem-nosuch", *others, "--store", talk.address)

        assert (answer.code, answer.out) == (2, "")
        assert answer.err.count("mem-nosuch") == 1
        assert answer.err.count("\n") == 1
