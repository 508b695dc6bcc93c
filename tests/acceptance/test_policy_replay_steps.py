"""`policy replay` over a store in which every kind of step was taken, not reads and writes alone."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import GovernedMemory, PolicyDeniedError
from agent_runtime_ref.enforcement.removals import Meant
from agent_runtime_ref.resources import policies_path
from agent_runtime_ref.testing import CountedIds, FrozenClock
from tests.acceptance.command import Command
from tests.acceptance.replay_logs import policies_with
from tests.reviewing import OPERATOR, REVIEWER
from tests.support import caller, candidate, note, query

NOBODY = caller(principal_id="anonymous")


def _merge(memory: GovernedMemory, clock: FrozenClock) -> None:
    """Keep two facts three times each, ask for their compaction as nobody, and then as somebody."""
    for one in ("first_rule", "second_rule", "third_rule"):
        memory.write(candidate(provenance=one), caller=caller())
        clock.advance(seconds=1)
    assert len(memory.compact(caller=NOBODY).refused) == 1
    assert len(memory.compact(caller=caller()).removed) == 2


def _review(memory: GovernedMemory) -> None:
    """Put two notes into quarantine, be refused twice, and take each out in another way."""
    first, second, third = (
        memory.write(note(text), caller=caller()).record.memory_id for text in ("one", "two", "three")
    )
    memory.quarantine([first, second], caller=OPERATOR, reason="SEC-1")
    for ids, who in (([first, second], OPERATOR), ([third], caller())):
        with suppress(PolicyDeniedError):
            memory.quarantine(ids, caller=who, reason="SEC-1")
    memory.release(first, caller=REVIEWER, reason="SEC-2")
    memory.reject(second, caller=REVIEWER, reason="SEC-3")


def _turns(memory: GovernedMemory) -> None:
    """Begin a turn that is admitted and carried out, and one that is refused."""
    memory.begin_run("a note", caller=caller(), purpose="answer_generation", limit=5).retrieve()
    assert (
        memory.begin_run("a note", caller=caller(), purpose="small_talk", limit=5).decision.effect == "deny"
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a SQLite store with a decision of every operation in its log."""
    url, clock = f"sqlite:{tmp_path_factory.mktemp('steps') / 'memory.db'}", FrozenClock()
    with GovernedMemory.open(url, clock=clock, ids=CountedIds()) as memory:
        _merge(memory, clock)
        _review(memory)
        # The two that came last, of all that the reader is let see: not those that the store puts first.
        memory.choose(query(limit=2), lambda found: [len(found) - 1, len(found) - 2], caller=caller())
        memory.latest_profile(caller=caller())
        _turns(memory)
        gone = memory.write(candidate("Mine alone", subject="user-42"), caller=caller()).record.memory_id
        assert len(memory.remove(Meant("long_term", record_ids=(gone,)), caller=caller())) == 1
    return url


def _decided(store: str) -> Counter[str]:
    """Return how many decisions of each operation the log of a store holds."""
    with GovernedMemory.open(store) as memory:
        lines = [json.loads(line) for read in (False, True) for line in memory.log_lines(read=read)]
    return Counter(one["input"]["operation"] for one in lines if one["type"] == "decision")


def _replayed(command: Command, policies: Path, store: str) -> dict[str, Any]:
    answer = command("policy", "replay", "--policies", policies, "--store", store, "--format", "json")
    found: dict[str, Any] = answer.document
    return found


def test_every_operation_is_replayed_and_the_same_policies_change_nothing(
    command: Command, store: str
) -> None:
    """A line of each operation is counted and decided as it was; none is left out."""
    decided = _decided(store)
    document = _replayed(command, policies_path(), store)

    assert decided.keys() >= {"write", "delete", "quarantine", "release", "reject", "search"}
    assert (document["decisions"], document["unchanged"]) == (decided.total(), decided.total())
    assert (document["changes"], document["coverage"]["not_replayed"]) == ([], {})


def test_a_choice_is_not_rebuilt(command: Command, store: str) -> None:
    """What a reader chose among is not in its line, so the report covers what it names and says so."""
    coverage = _replayed(command, policies_path(), store)["coverage"]

    assert coverage["considered_logged"] < coverage["considered"]


def test_a_choice_loses_what_is_kept_out_now(command: Command, tmp_path: Path, store: str) -> None:
    """A record that a reader chose and would not be let see is newly hidden."""

    def high(settings: dict[str, Any]) -> None:
        settings["trust_floors"] = {"medium": ["profile"], "high": ["short_term", "long_term"]}

    document = _replayed(command, policies_with(tmp_path, high), store)
    chosen = next(
        decision for decision in _reads(store) if decision["considered"].get("order") == "reader"
        and len(decision["considered"]["returned"]) == 2
    )  # fmt: skip
    hidden = {one["record_id"] for one in document["changes"] if one["decision_id"] == chosen["decision_id"]}

    assert hidden == {row[0] for row in chosen["considered"]["returned"]}


def _reads(store: str) -> list[dict[str, Any]]:
    with GovernedMemory.open(store) as memory:
        lines = [json.loads(line) for line in memory.log_lines(read=True)]
    return [one for one in lines if one["type"] == "decision" and "considered" in one]


def test_other_reviewers_change_each_step_of_a_review(command: Command, tmp_path: Path, store: str) -> None:
    """Where nobody that there was may review, each step that was taken is newly refused."""

    def auditors(settings: dict[str, Any]) -> None:
        settings["review"]["roles"] = {"auditor": True}

    document = _replayed(command, policies_with(tmp_path, auditors), store)

    assert document["newly_refused"] == 4  # two put into quarantine, one released, one rejected
    assert {rule for one in document["changes"] for rule in one["rule_ids"]} == {"MEM-W-401"}


def test_a_removal_of_several_that_was_refused_is_one_change(
    command: Command, tmp_path: Path, store: str
) -> None:
    """Records that go together are refused together, and what lets them go now counts once."""
    policies = policies_with(tmp_path, lambda _: None)
    rules = policies / "memory" / "write" / "callers.rego"
    text = rules.read_text(encoding="utf-8")
    before, permitted, after = text.partition("\tcandidate.repeats == true\n")
    assert permitted
    rules.write_text(
        before + permitted + after.replace("\tinput.caller.anonymous == false\n", "", 1), "utf-8"
    )
    document = _replayed(command, policies, store)

    assert [(one["change"], one["was"], one["now"]) for one in document["changes"]] == [
        ("newly_admitted", "deny", "allow")
    ]
    assert document["unchanged"] == document["decisions"] - 1
