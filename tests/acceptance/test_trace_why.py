"""`trace inspect --record`: why a record entered an answer or did not, where the line does not say it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import GovernedMemory, PolicyDeniedError
from tests.acceptance.addresses import address
from tests.acceptance.command import Command
from tests.acceptance.replay_logs import policies_with
from tests.reviewing import OPERATOR
from tests.support import caller, candidate, note, query

__all__ = ["address"]
KEPT_OUT_LOGGED = 20


def _kept(memory: GovernedMemory, what: Any, **who: Any) -> str:
    return memory.write(what, caller=caller(**who)).record.memory_id


def _read(memory: GovernedMemory, trace_id: str, text: str | None = None, **changes: Any) -> None:
    memory.read(query(trace_id=trace_id, **changes), caller=caller(trace_id=trace_id), text=text)


def _decision(command: Command, trace_id: str, record_id: str, *where: str | Path) -> dict[str, Any]:
    words = ("trace", "inspect", trace_id, "--record", record_id, *where)
    ((found,),) = [one["decisions"] for one in command(*words, "--format", "json").document]
    told: dict[str, Any] = found
    return told


def test_what_the_line_leaves_open_is_looked_at_again(address: str, command: Command) -> None:
    """Each record as it was at that moment: kept out, behind the limit, not there yet, somebody else's."""
    with GovernedMemory.open(address) as memory:
        notes = [_kept(memory, note(f"note {number}")) for number in range(KEPT_OUT_LOGGED + 1)]
        facts = [_kept(memory, candidate(f"fact {number}")) for number in range(3)]
        theirs = _kept(memory, note("theirs", subject="person-9"), subject="person-9")
        _read(memory, "by-trust", filters={"trust_min": "medium"}, limit=2)
        _read(memory, "by-text", "fact")
        later = _kept(memory, candidate("fact of later"))

    def evaluated(trace_id: str, record_id: str) -> dict[str, Any]:
        told: dict[str, Any] = _decision(command, trace_id, record_id, "--store", address)["evaluated"]
        return told

    active = {"status": "active", "same_policies": True}
    low = {"outcome": "kept_out", "reasons": ["trust_below_minimum"], "rule_ids": ["MEM-R-204"], **active}
    assert evaluated("by-trust", notes[0]) == low
    assert evaluated("by-trust", facts[0]) == {
        "outcome": "outranked",
        "reasons": [],
        "rule_ids": [],
        "rank": 3,
        **active,
    }
    wall = {"outcome": "kept_out", "reasons": ["subject_wall"], "rule_ids": ["MEM-R-002"], **active}
    assert evaluated("by-text", theirs) == wall
    assert evaluated("by-text", notes[0])["outcome"] == "admitted"
    assert evaluated("by-text", later) == {
        "outcome": "absent",
        "status": None,
        "reasons": [],
        "rule_ids": [],
        "same_policies": True,
    }


def test_what_is_erased_cannot_be_told(address: str, command: Command) -> None:
    """A record that was forgotten since may have been there; its attributes are gone."""
    with GovernedMemory.open(address) as memory:
        gone = _kept(memory, note("likes tea", subject="person-9"), subject="person-9")
        _read(memory, "then")
        memory.forget(subject="person-9", caller=OPERATOR)
    where = ("--store", address)

    assert _decision(command, "then", gone, *where)["evaluated"]["outcome"] == "erased"
    said = command("trace", "inspect", "then", "--record", gone, *where).out
    assert "as it was then: it may have been there and is erased since, so nobody can say" in said


def test_a_refused_read_says_so_of_every_record(address: str, command: Command) -> None:
    """Nothing entered because nothing was answered; the reason is that of the whole read."""
    with GovernedMemory.open(address) as memory:
        fact = _kept(memory, candidate())
        with pytest.raises(PolicyDeniedError):
            _read(memory, "refused", purpose="marketing")

    told = _decision(command, "refused", fact, "--store", address)
    assert (told["outcome"], told["reasons"]) == ("read_refused", ["purpose_unknown"])
    assert told["rule_ids"][0].startswith("MEM-R-")
    out = command("trace", "inspect", "refused", "--record", fact, "--store", address).out
    assert "the read was refused: purpose_unknown (MEM-R-" in out


def test_a_reason_has_its_rule(tmp_path: Path, command: Command) -> None:
    """A line names the reason; the rule is added from the policies that decided, and from no others."""
    url, log = f"sqlite:{tmp_path / 'memory.db'}", tmp_path / "log.jsonl"
    with GovernedMemory.open("memory:", log=log) as memory:
        low = _kept(memory, note("low"))
        _read(memory, "then", filters={"trust_min": "medium"})
    GovernedMemory.open(url).close()
    others = policies_with(tmp_path, lambda settings: settings["limits"].update(query_max=50))

    told = _decision(command, "then", low, "--log", log)
    assert (told["outcome"], told["reason"]) == ("kept_out", "trust_below_minimum")
    assert told["rule_ids"] == ["MEM-R-204"]
    assert "rule_ids" not in _decision(command, "then", low, "--log", log, "--policies", others)
    said = command("trace", "inspect", "then", "--log", log, "--record", low).out
    assert f"`{low}` was kept out: trust_below_minimum (MEM-R-204)" in said


def test_other_policies_are_told_as_such(tmp_path: Path, command: Command) -> None:
    """Where those that decided are not at hand, the answer says that it is by others."""
    url = f"sqlite:{tmp_path / 'memory.db'}"
    with GovernedMemory.open(url) as memory:
        fact, _ = _kept(memory, candidate("one")), _kept(memory, candidate("two"))
        _read(memory, "then", limit=1)
    others = policies_with(tmp_path, lambda settings: settings["limits"].update(query_max=50))
    words = ("trace", "inspect", "then", "--record", fact, "--store", url, "--policies", others)

    said = "it ranked 2, behind what was returned, by other policies than those that decided"
    assert said in command(*words).out


def test_a_file_alone_is_not_looked_up(tmp_path: Path, command: Command) -> None:
    """Without a store the answer is what the log says, and that it does not say more."""
    log = tmp_path / "log.jsonl"
    with GovernedMemory.open("memory:", log=log) as memory:
        notes = [_kept(memory, note(f"note {number}")) for number in range(KEPT_OUT_LOGGED + 1)]
        _read(memory, "then", filters={"trust_min": "medium"})

    told = _decision(command, "then", notes[0], "--log", log)
    assert told["outcome"] == "not_in_log"
    assert "evaluated" not in told


def test_a_context_is_told_with_its_layers(tmp_path: Path, command: Command) -> None:
    """Beside the answer that held a record, the context that was built of it is named."""
    url = f"sqlite:{tmp_path / 'memory.db'}"
    with GovernedMemory.open(url) as memory:
        fact = _kept(memory, candidate())
        _read(memory, "then")
    words = ("trace", "inspect", "then", "--record", fact, "--store", url)

    (trace,) = command(*words, "--format", "json").document
    assert [one["layers"] for one in trace["contexts"]] == [["retrieved"]]
    assert f"`{fact}` entered the context, in layer retrieved" in command(*words).out


def test_events_stand_below_their_decision(tmp_path: Path, command: Command) -> None:
    """A tree: the decision, and below it what followed from it."""
    url = f"sqlite:{tmp_path / 'memory.db'}"
    with GovernedMemory.open(url) as memory:
        _kept(memory, candidate(), trace_id="then")
        _read(memory, "then")
    lines = command("trace", "inspect", "then", "--store", url).out.splitlines()

    tops = [line for line in lines if line.startswith(("├─", "└─"))]
    assert [line.split("Z  ")[1].split("  ")[0] for line in tops] == ["write: allow", "search: allow"]
    inner = [line for line in lines if line.startswith(("│  ├─", "│  └─", "   ├─", "   └─"))]
    assert [line.split("Z  ")[1].split("  ")[0] for line in inner] == [
        "memory_write_decision",
        "memory_persisted",
        "retrieval",
        "context_layers_built",
    ]


def test_who_may_not_inspect_is_told_what_the_log_says(tmp_path: Path, command: Command) -> None:
    """The look at the store is an operator's; where the policies refuse it, the log alone answers."""
    url = f"sqlite:{tmp_path / 'memory.db'}"
    with GovernedMemory.open(url) as memory:
        fact, _ = _kept(memory, candidate("one")), _kept(memory, candidate("two"))
        _read(memory, "then", limit=1)
    nobody = policies_with(tmp_path, lambda settings: settings.update(operator_roles={}))
    words = ("trace", "inspect", "then", "--record", fact, "--store", url, "--policies", nobody)
    answer = command(*words, "--format", "json")

    assert answer.code == 0
    assert "was not looked up" in answer.err
    assert "evaluated" not in answer.document[0]["decisions"][0]
