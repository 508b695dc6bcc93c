"""`policy replay`: what other policies would have made of recorded decisions."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.cli.policy import replay as replay_command
from agent_runtime_ref.enforcement.attributes import Inspection
from agent_runtime_ref.resources import policies_path
from agent_runtime_ref.testing import FrozenClock
from tests.acceptance.command import Command
from tests.acceptance.replay_logs import as_opa_logs, filled, policies_with
from tests.acceptance.replaying.changes import COUNTS
from tests.acceptance.replaying.changes import counts as _counts
from tests.acceptance.replaying.changes import high_floor as _high_floor
from tests.acceptance.replaying.changes import high_only as _high_only
from tests.acceptance.replaying.changes import replayed as _replayed
from tests.support import caller, candidate, note, query


def _no_floor(settings: dict[str, Any]) -> None:
    settings["classes"]["long_term"]["confidence_floor_millionths"] = 0


def _marketing(settings: dict[str, Any]) -> None:
    settings["purposes"]["marketing"] = settings["purposes"]["planning"]


def _nothing(_: dict[str, Any]) -> None:
    return None


def test_the_same_policies_change_nothing(command: Command, tmp_path: Path, log: Path) -> None:
    """All decisions are unchanged, and the exit code is 0."""
    code, document = _replayed(command, tmp_path, log, _nothing)

    assert (code, document["decisions"], document["unchanged"]) == (0, 9, 9)
    assert (_counts(document), document["changes"]) == ({}, [])


def test_a_higher_floor_hides_records(command: Command, tmp_path: Path, log: Path) -> None:
    """Each record that is no longer returned is newly hidden, by the rule that keeps it out; code 0."""
    code, document = _replayed(command, tmp_path, log, _high_only)

    assert (code, _counts(document)) == (0, {"newly_hidden": 7})
    assert document["unchanged"] == 6
    first = document["changes"][0]
    assert {name: first[name] for name in ("tenant_id", "principal_id", "was", "now", "rule_ids")} == {
        "tenant_id": "tenant-acme",
        "principal_id": "user-42",
        "was": "returned",
        "now": "kept_out",
        "rule_ids": ["MEM-R-204"],
    }
    assert document["by_rule"][0] == {
        "rule_id": "MEM-R-204",
        **dict.fromkeys(COUNTS, 0),
        "newly_hidden": 7,
    }
    assert [row["tenant_id"] for row in document["by_tenant"]] == ["tenant-acme"]


def test_a_lower_floor_exposes_records(command: Command, tmp_path: Path, log: Path) -> None:
    """A record that was kept out and would be returned is newly exposed, and the exit code is 1."""
    policies = policies_with(tmp_path, _high_only)
    strict = tmp_path / "strict.jsonl"
    with GovernedMemory.open("memory:", log=strict, policies=policies, clock=FrozenClock()) as memory:
        kept = memory.write(candidate("Invoices go out on Monday"), caller=caller()).record
        memory.read(query(), caller=caller())
    code, document = _replayed(command, tmp_path, strict, _nothing)

    assert (code, _counts(document)) == (1, {"newly_exposed": 1})
    (change,) = document["changes"]
    assert (change["record_id"], change["was"], change["now"]) == (kept.memory_id, "kept_out", "returned")
    assert change["rule_ids"] == ["MEM-R-204"]


def test_what_is_admitted_pushes_another_out(command: Command, tmp_path: Path) -> None:
    """Within the limit a record that is let in takes the place of the last one, which is newly hidden."""
    strict, clock = tmp_path / "strict.jsonl", FrozenClock()
    policies = policies_with(
        tmp_path, lambda one: one.update(provenance_classes=["short_term", "long_term", "profile"])
    )
    with GovernedMemory.open("memory:", log=strict, policies=policies, clock=clock) as memory:
        older = memory.write(note("The caller waits"), caller=caller()).record
        clock.advance(seconds=1)
        newer = memory.write(note("The caller waits still", provenance="unknown"), caller=caller()).record
        memory.read(query(limit=1), caller=caller())
    code, document = _replayed(command, tmp_path, strict, _nothing)

    seen = [(one["record_id"], one["was"], one["now"], one["rule_ids"]) for one in document["changes"]]
    assert seen == [
        (newer.memory_id, "kept_out", "returned", ["MEM-R-206"]),
        (older.memory_id, "returned", "outranked", []),
    ]
    assert code == 1


def test_where_rank_is_not_known_what_is_admitted_counts(command: Command, tmp_path: Path) -> None:
    """An older line has no score: with a text, an admitted record is exposed whatever the limit."""
    strict = tmp_path / "strict.jsonl"
    policies = policies_with(tmp_path, _high_only)
    with GovernedMemory.open("memory:", log=strict, policies=policies, clock=FrozenClock()) as memory:
        memory.write(candidate("Refunds take a week"), caller=caller())
        memory.write(candidate("Refunds take two"), caller=caller())
        memory.read(query(limit=1), caller=caller(), text="refunds")
    (read,) = [one for one in map(json.loads, strict.read_text("utf-8").splitlines()) if "considered" in one]
    for name, index in (("columns", -1), ("kept_out", -2)):
        rows = read["considered"][name]
        for row in [rows] if name == "columns" else rows:
            del row[index]
    strict.write_text(f"{json.dumps(read)}\n", encoding="utf-8")
    code, document = _replayed(command, tmp_path, strict, _nothing)

    assert (code, _counts(document)) == (1, {"newly_exposed": 2})


def test_a_refused_read_that_is_answered_now_says_what_is_not_known(
    command: Command, tmp_path: Path, log: Path
) -> None:
    """From a log alone nothing is known of its records: one exposure without a record, and a sentence."""
    code, document = _replayed(command, tmp_path, log, _marketing)

    assert (code, _counts(document)) == (1, {"newly_exposed": 1})
    (change,) = document["changes"]
    assert (change["record_id"], change["was"], change["now"]) == (None, "denied", "allowed")
    assert change["rule_ids"] == ["MEM-R-104"]
    assert document["coverage"]["reads_unknown"] == 1


def test_a_refused_read_is_rebuilt_from_a_store(command: Command, tmp_path: Path) -> None:
    """With --store the records that it would have shown are named, as they were then."""
    address = f"sqlite:{tmp_path / 'memory.db'}"
    filled(address).close()
    answer = command(
        *("policy", "replay", "--policies", policies_with(tmp_path, _marketing)),
        *("--store", address, "--format", "json"),
    )

    assert (answer.code, _counts(answer.document)) == (1, {"newly_exposed": 4})
    assert {one["was"] for one in answer.document["changes"]} == {"denied"}
    assert None not in {one["record_id"] for one in answer.document["changes"]}
    assert answer.document["coverage"]["reads_rebuilt"] == 3


def test_a_replay_of_a_store_is_an_inspection_on_record(command: Command, tmp_path: Path) -> None:
    """The look at the records is decided by the policies in force and stands in the log of reads."""
    address = f"sqlite:{tmp_path / 'memory.db'}"
    filled(address).close()
    words = ("policy", "replay", "--policies", policies_path(), "--store", address, "--format", "json")
    first, second = command(*words).document, command(*words).document

    assert (first["decisions"], second["decisions"]) == (9, 9)
    assert first["coverage"] == second["coverage"]
    traces = command("trace", "inspect", "--store", address, "--format", "json").document
    operations = [
        line["input"]["operation"] for trace in traces for line in trace["lines"] if "input" in line
    ]
    assert operations.count("inspect") == 2
    assert second["unchanged"] == 9


def test_what_an_operator_looked_at_is_replayed(command: Command, tmp_path: Path) -> None:
    """An inspection that showed records is a decision like others, whatever its caller calls its session."""
    address = f"sqlite:{tmp_path / 'memory.db'}"
    with filled(address) as memory:
        operator = caller(roles=("operator",), principal_id="ada", session_id="policy-replay")
        memory.inspect(Inspection(principal_id="ada", limit=10), caller=operator)
        memory.survey(caller=operator)
    words = ("policy", "replay", "--policies", policies_path(), "--store", address, "--format", "json")

    assert command(*words).document["decisions"] == 10


def test_progress_is_told_from_the_first_decision_on(
    command: Command, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits sees each count as it comes, however few decisions there are."""
    told: list[int] = []
    monkeypatch.setattr(replay_command, "_progress", lambda: nullcontext(told.append))
    command("policy", "replay", "--policies", policies_path(), "--log", log)
    assert told[:3] == [1, 2, 3]

    shown: list[int] = []
    seldom = replay_command._seldom(shown.append)
    for count in range(1, 1001):
        seldom(count)
    assert shown[0] == 1
    assert len(shown) < 1000


def test_erased_records_are_counted_as_unknowable(command: Command, tmp_path: Path) -> None:
    """What was forgotten since could have been in a read; what would have become of it, nobody can tell."""
    address = f"sqlite:{tmp_path / 'memory.db'}"
    with filled(address) as memory:
        memory.write(candidate("Prefers tea", subject="user-42"), caller=caller())
        memory.read(query(), caller=caller())
        memory.forget(subject="user-42", caller=caller())
    answer = command(
        "policy", "replay", "--policies", policies_path(), "--store", address, "--format", "json"
    )

    assert answer.document["coverage"]["unknowable"] == {"records": 1, "reads": 1}
    assert answer.document["unchanged"] == answer.document["decisions"]


def test_writes_are_admitted_and_refused(command: Command, tmp_path: Path, log: Path) -> None:
    """A lower floor admits what was refused, a higher one refuses what was admitted and names the record."""
    code, lower = _replayed(command, tmp_path, log, _no_floor)
    assert (code, _counts(lower)) == (0, {"newly_admitted": 1})
    (change,) = lower["changes"]
    assert (change["was"], change["now"], change["rule_ids"]) == ("deny", "allow", ["MEM-W-108"])

    code, higher = _replayed(command, tmp_path, log, _high_floor)
    assert (code, _counts(higher)) == (0, {"newly_refused": 3})
    assert [one["record_id"] for one in higher["changes"]] == ["mem-000001", "mem-000002", "mem-000003"]
    assert {one["now"] for one in higher["changes"]} == {"deny"}


def test_another_trust_or_retention_is_counted(command: Command, tmp_path: Path, log: Path) -> None:
    """A write that is kept as before, with another trust, is unchanged and counted as reassigned."""
    _, document = _replayed(
        command, tmp_path, log, lambda one: one["sources"]["trusted_service"].update(trust_max="low")
    )

    assert (document["unchanged"], document["reassigned"]) == (9, 3)


def test_time_is_bounded(command: Command, tmp_path: Path, log: Path) -> None:
    """--since counts from that instant on, --until stops before it; a date is its first moment."""
    at = json.loads(log.read_text(encoding="utf-8").splitlines()[0])["timestamp"]
    for options, decisions in (
        (("--since", at), 9),
        (("--until", at), 0),
        (("--since", "2000-01-01", "--until", "2100-01-01"), 9),
        (("--since", "2100-01-01"), 0),
    ):
        assert _replayed(command, tmp_path, log, _high_only, *options)[1]["decisions"] == decisions

    answer = command("policy", "replay", "--policies", policies_path(), "--log", log, "--since", "yesterday")
    assert (answer.code, "`yesterday` is no date" in answer.err) == (2, True)


def test_the_log_of_an_opa_server_is_read(command: Command, tmp_path: Path, log: Path) -> None:
    """Its questions and answers are replayed by the same command; nothing changes under the same policies."""
    opa = as_opa_logs(log, tmp_path / "opa.jsonl")
    code, same = _replayed(command, tmp_path, opa, _nothing)
    assert (code, same["unchanged"], same["decisions"]) == (0, 12, 12)

    code, changed = _replayed(command, tmp_path, opa, _high_only)
    assert (code, _counts(changed)) == (0, {"newly_hidden": 7})


def test_text_says_what_it_covers(command: Command, tmp_path: Path, log: Path) -> None:
    """Counts first, then who and what, and at the end how many of the considered records the log names."""
    answer = command("policy", "replay", "--policies", policies_with(tmp_path, _high_only), "--log", log)

    assert answer.out.startswith("9 decisions replayed, 6 unchanged\n  7 newly hidden\n")
    assert "  MEM-R-204: 7 newly hidden\n" in answer.out
    assert answer.out.endswith("The answer covers 9 of 9 records that 4 reads considered.\n")


def test_sarif_names_rule_and_place(command: Command, tmp_path: Path, log: Path) -> None:
    """One result for each rule and kind of change; an exposure is an error, what is hidden a note."""
    policies = policies_with(tmp_path, lambda one: (_high_only(one), _marketing(one)))
    answer = command("policy", "replay", "--policies", policies, "--log", log, "--format", "sarif")
    (run,) = answer.document["runs"]

    assert answer.document["version"] == "2.1.0"
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    seen = {(one["ruleId"], one["level"], one["properties"]["count"]) for one in run["results"]}
    assert seen == {("MEM-R-104", "error", 1), ("MEM-R-204", "note", 7)}
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"].endswith(".rego")
        assert place["region"]["startLine"] >= 1
        assert len(result["partialFingerprints"]) == 1
        assert result["message"]["text"]


def test_markdown_is_escaped_and_bounded(command: Command, tmp_path: Path, log: Path) -> None:
    """Names out of a log stand in a table as text, at most fifty changes; counts come first."""
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    read = next(line for line in lines if line["type"] == "decision" and "considered" in line)
    evil = "a|b`<img src=x>@team [x](http://y)\n# head \u202e"
    read["decision_id"] = evil
    log.write_text("".join(f"{json.dumps(read)}\n" for _ in range(20)), encoding="utf-8")
    answer = command(
        *("policy", "replay", "--policies", policies_with(tmp_path, _high_only)),
        *("--log", log, "--format", "markdown"),
    )

    assert answer.out.startswith("## What this change of policies would have changed\n\nReplayed over 20 ")
    rows = [line for line in answer.out.splitlines() if line.startswith("| newly hidden | mem")]
    assert len(rows) == 50
    assert "10 more are in the JSON report." in answer.out
    for forbidden in ("<img", "@team", "](", "\u202e", "\n# head"):
        assert forbidden not in answer.out
    assert r"a\|b\`&lt;img" in rows[0]


def test_sarif_leaves_no_rule_out(command: Command, tmp_path: Path, log: Path, monkeypatch: Any) -> None:
    """Of more rules than are named the changes stand together; an exposure among them is an error."""
    from agent_runtime_ref.replay.formats import sarif

    monkeypatch.setattr(sarif, "_RULES_MAX", 0)
    policies = policies_with(tmp_path, _high_only)
    answer = command("policy", "replay", "--policies", policies, "--log", log, "--format", "sarif")
    (run,) = answer.document["runs"]

    assert [(one["ruleId"], one["properties"]["count"]) for one in run["results"]] == [("UNNAMED", 7)]
