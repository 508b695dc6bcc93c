"""`inspect-memory --as-of`: what a principal would have been shown at an instant."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.clock import timestamp
from agent_runtime_ref.testing import FrozenClock
from tests.acceptance.addresses import address
from tests.acceptance.command import Answer, Command
from tests.acceptance.replay_logs import policies_with
from tests.reviewing import ATTACK, OPERATOR
from tests.support import TENANT, caller, candidate, note, query

__all__ = ["address"]
START_US = 1_700_000_000_000_000  # in 2023: what is asked about must lie behind the clock of the machine
GIT = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


class Story:
    """A memory whose clock is moved, and what user-42 read at each moment."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.clock = FrozenClock(START_US)
        self.memory = GovernedMemory.open(address, clock=self.clock)
        self.moments: dict[str, tuple[str, list[str]]] = {}

    def write(self, content: str, **changes: Any) -> str:
        """Keep a fact and return its id."""
        return self.memory.write(candidate(content, **changes), caller=caller()).record.memory_id

    def moment(self, name: str, **changes: Any) -> None:
        """Remember the instant, and what is shown at it."""
        found = self.memory.read(query(limit=100, **changes), caller=caller(), operation="list")
        self.moments[name] = timestamp(self.clock.now_us()), [hit.record.memory_id for hit in found.hits]
        self.clock.advance(days=1)


@pytest.fixture
def story(address: str) -> Iterator[Story]:
    """A story in each durable store."""
    told = Story(address)
    with told.memory:
        yield told


@pytest.fixture
def at(command: Command, story: Story) -> Any:
    """The command, asked about a moment of the story."""

    def asked(moment: str, *words: str | Path, purpose: str = "answer_generation") -> Answer:
        instant = story.moments[moment][0] if moment in story.moments else moment
        who = ("--tenant", TENANT, "--as", "user-42", "--purpose", purpose)
        return command("inspect-memory", *who, "--as-of", instant, "--store", story.address, *words)

    return asked


def _ids(answer: Answer) -> list[str]:
    assert answer.code == 0, answer.err
    return [one["memory_id"] for one in answer.document["records"]]


def test_says_what_was_read_then(story: Story, at: Any) -> None:
    """At every moment of a record's life the answer is that of the read at that moment, in its order."""
    story.moment("nothing yet")
    first = story.write("The queue is Q1", key="queue")
    story.memory.write(note("short of time"), caller=caller())
    story.moment("a fact and a note")
    story.write("The queue is Q2", key="queue", revision_mode="replace")
    story.moment("replaced")
    held = story.write(ATTACK)
    story.moment("in quarantine")
    story.memory.release(held, caller=OPERATOR, reason="SEC-1")
    story.moment("released")
    rejected = story.write(f"{ATTACK} Now.")
    story.moment("another in quarantine")
    story.memory.reject(rejected, caller=OPERATOR, reason="SEC-2")
    story.moment("rejected")
    story.clock.advance(days=40)
    story.moment("the note has expired")

    for moment, (_, then) in story.moments.items():
        assert (moment, _ids(at(moment))) == (moment, then)
    assert first in story.moments["a fact and a note"][1]
    assert [len(then) for _, then in story.moments.values()] == [0, 2, 2, 2, 3, 3, 3, 2]


def test_explains_what_was_kept_out(story: Story, at: Any) -> None:
    """With --explain each record that was there is listed with its status then and the rules."""
    old = story.write("The queue is Q1", key="queue")
    held = story.write(ATTACK)
    story.moment("before")
    story.write("The queue is Q2", key="queue", revision_mode="replace")
    story.memory.release(held, caller=OPERATOR, reason="SEC-1")
    story.moment("after")

    before = {one["memory_id"]: one for one in at("before", "--explain").document["records"]}
    after = {one["memory_id"]: one for one in at("after", "--explain").document["records"]}
    assert {name: one["status"] for name, one in before.items()} == {old: "active", held: "quarantined"}
    assert before[old]["decision"] == {"effect": "allow", "reasons": [], "rule_ids": []}
    assert before[held]["decision"] == {
        "effect": "deny",
        "reasons": ["status_not_active"],
        "rule_ids": ["MEM-R-202"],
    }
    assert after[old]["status"] == "superseded"
    assert after[held]["decision"]["effect"] == "allow"


def test_what_is_erased_is_unknowable(story: Story, at: Any) -> None:
    """Of what was rejected or forgotten since only the id is known; what was gone already is left out."""
    about = caller(subject="person-9")
    gone = story.memory.write(note("likes tea", subject="person-9"), caller=about).record.memory_id
    held = story.write(ATTACK)
    story.moment("both there")
    story.memory.reject(held, caller=OPERATOR, reason="SEC-1")
    story.moment("one rejected")
    story.memory.forget(subject="person-9", caller=OPERATOR)
    story.moment("both gone")

    def unknowable(moment: str) -> list[str]:
        return [one["record_id"] for one in at(moment).document["as_of"]["unknowable"]]

    assert unknowable("both there") == sorted([gone, held])
    assert unknowable("one rejected") == [gone]
    assert unknowable("both gone") == []
    assert "1 record may have been there and are erased" in at("one rejected", "--format", "table").err


def test_a_record_that_was_removed_alone_is_gone_from_then_on(story: Story, at: Any) -> None:
    """Of two that say the same one is merged away: what it was before is unknown, after that it was gone."""
    both = {story.write("The queue is Q1"), story.write("The queue is Q1", provenance="another_rule")}
    story.moment("both there")
    story.memory.compact(caller=caller())
    story.moment("merged")
    (kept,) = story.moments["merged"][1]

    before, after = at("both there").document, at("merged").document
    assert [one["record_id"] for one in before["as_of"]["unknowable"]] == [*(both - {kept})]
    assert after["as_of"]["unknowable"] == []
    assert [one["memory_id"] for one in after["records"]] == [kept]


def test_under_other_policies(story: Story, at: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """A folder or a git revision decides instead of the policies in force, which decide who may look."""
    story.memory.write(note("short of time"), caller=caller())
    fact = story.write("The queue is Q1")
    story.moment("then")

    def no_short_term(settings: dict[str, Any]) -> None:
        settings["purposes"]["answer_generation"]["classes"] = {"long_term": True}
        settings["operator_roles"] = {}

    policies = policies_with(tmp_path, no_short_term)
    assert len(_ids(at("then"))) == 2
    assert _ids(at("then", "--policies", policies)) == [fact]

    for words in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message", "policies")):
        subprocess.run(["git", *words], cwd=tmp_path / "new-policies", check=True, env={**os.environ, **GIT})
    monkeypatch.chdir(policies)
    answer = at("then", "--policies", "HEAD")
    assert _ids(answer) == [fact]
    told = answer.document["as_of"]["policies"]
    assert told["name"] == "HEAD"
    assert told["digest"] != told["digest_in_force"] == story.memory.bundle.digest


def test_what_would_have_been_refused(story: Story, at: Any) -> None:
    """A purpose that the policies do not know would have been shown nothing; the exit code is 1."""
    story.write("The queue is Q1")
    story.moment("then")
    answer = at("then", purpose="marketing")

    assert answer.code == 1
    assert answer.document["records"] == []
    assert [one["reason"] for one in answer.document["as_of"]["denied"]] == ["purpose_unknown"]
    assert "nothing would have been shown: purpose_unknown" in answer.err


def test_the_look_is_decided_and_logged(story: Story, at: Any) -> None:
    """An as-of answer shows content, so each of its looks is an inspection in the log."""
    story.write("The queue is Q1")
    story.moment("then")
    before = _looks(story.memory)
    assert at("then").code == 0
    assert _looks(story.memory) > before


def _looks(memory: GovernedMemory) -> int:
    lines = (line for read in (False, True) for line in memory.log_lines(read=read))
    return sum('"operation":"inspect"' in line for line in lines)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--as-of", "2023-11-15"), "name it with --as"),
        (("--as-of", "9999-01-01", "--as", "u", "--purpose", "planning"), "has not come yet"),
        (("--as-of", "yesterday", "--as", "u", "--purpose", "planning"), "`yesterday` is no date"),
        (("--as-of", "2023-11-15T10:00:00", "--as", "u", "--purpose", "planning"), "no instant with a zone"),
    ],
)
def test_mistakes_are_one_sentence(
    words: tuple[str, ...], sentence: str, command: Command, tmp_path: Path
) -> None:
    """Each exits 2, and says what to do."""
    url = f"sqlite:{tmp_path / 'memory.db'}"
    GovernedMemory.open(url).close()
    answer = command("inspect-memory", *words, "--tenant", TENANT, "--store", url)

    assert (answer.code, answer.out) == (2, "")
    assert sentence in answer.err


def test_seeds_have_no_past(command: Command) -> None:
    """A store that begins and ends with the command has no earlier instant; one has to be named."""
    words = ("inspect-memory", "--as", "u", "--purpose", "planning", "--as-of", "2023-11-15")
    assert command(*words, "--tenant", TENANT).code == 2


def test_nothing_to_show_is_said(story: Story, at: Any) -> None:
    """Before the first record there is a heading, and a line that says that this is all."""
    before = timestamp(START_US)
    story.clock.advance(days=1)
    story.write("later")

    answer = at(before, "--format", "table")

    assert answer.code == 0
    assert "no record would have been shown" in answer.err


def test_what_a_session_asked_for_is_said_to_be_left_out(story: Story, at: Any) -> None:
    """Its records have a subject of their own, behind the wall of the principal's."""
    story.write("a fact")
    story.moment("now")

    assert "what was asked for in sessions" in at("now").document["as_of"]["not_covered"][0]
    assert "not looked at: what was asked for in sessions" in at("now", "--format", "table").err
