"""`policy replay`: what it says of logs, spans and lines that it can make nothing of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref.resources import policies_path
from tests.acceptance.command import WHO, Command, file_of, question
from tests.acceptance.replay_logs import policies_with
from tests.acceptance.replaying.changes import counts as _counts
from tests.acceptance.replaying.changes import high_floor as _high_floor
from tests.acceptance.replaying.changes import high_only as _high_only
from tests.acceptance.replaying.changes import replayed as _replayed


@pytest.mark.parametrize("style", ["text", "markdown", "json", "sarif"])
def test_a_replay_over_nothing_warns(command: Command, tmp_path: Path, style: str) -> None:
    """An empty log says nothing about new policies: a warning, and every format for people says so, too."""
    log = tmp_path / "empty.jsonl"
    log.write_text("", encoding="utf-8")
    answer = command("policy", "replay", "--policies", policies_path(), "--log", log, "--format", style)

    assert answer.code == 0
    assert f"warning: no decision in {log}; nothing was replayed" in answer.err
    assert "nothing becomes visible" not in answer.out
    assert style == "json" or "No decision was replayed" in answer.out


def test_a_span_without_decisions_warns(command: Command, log: Path) -> None:
    """A time in which nothing was decided is told from a log without decisions."""
    words = ("policy", "replay", "--policies", policies_path(), "--log", log)
    answer = command(*words, "--since", "2100-01-01")

    assert f"warning: no decision in {log} in this span of time" in answer.err
    assert "warning" not in command(*words).err


def test_a_log_of_which_nothing_can_be_replayed_warns(command: Command, tmp_path: Path, log: Path) -> None:
    """Decisions that no policies can be asked again leave as little to say as none."""
    line = json.loads(log.read_text(encoding="utf-8").splitlines()[0])
    log.write_text(json.dumps({**line, "input_version": 99}) + "\n", encoding="utf-8")
    answer = command("policy", "replay", "--policies", policies_path(), "--log", log)

    assert f"no decision in {log} could be replayed" in answer.err


@pytest.mark.parametrize("until", ["2026-01-01", "2026-02-01"])
def test_a_reversed_span_is_refused(command: Command, log: Path, until: str) -> None:
    """Nothing can lie in it, so it is a mistake and no clean bill: code 2."""
    answer = command(
        *("policy", "replay", "--policies", policies_path(), "--log", log),
        *("--since", "2026-02-01", "--until", until),
    )

    assert (answer.code, answer.out) == (2, "")
    assert "--since must be the earlier" in answer.err


def test_a_trace_is_no_log(command: Command, tmp_path: Path) -> None:
    """Events without decisions, as --trace writes them, are refused with what to name instead."""
    trace = tmp_path / "trace.jsonl"
    asked = file_of(tmp_path / "query.yaml", question())
    command("read", "--query", asked, "--store", "seeds:", "--trace", trace, *WHO)
    assert trace.stat().st_size
    answer = command("policy", "replay", "--policies", policies_path(), "--log", trace)

    assert (answer.code, answer.out) == (2, "")
    assert f"{trace}: this is a trace" in answer.err


def test_a_damaged_line_is_named(command: Command, tmp_path: Path, log: Path) -> None:
    """A line that is no JSON, or no decision of ours, ends with code 2, its file and its number."""
    lines = log.read_text(encoding="utf-8").splitlines()
    own = json.loads(lines[0])
    del own["input"]["candidates"]
    for number, line in ((1, lines[0][:-5]), (2, json.dumps(own)), (3, '{"type":"decision"}')):
        log.write_text("\n".join([*lines[: number - 1], line, *lines[number:]]) + "\n", encoding="utf-8")
        answer = command("policy", "replay", "--policies", policies_path(), "--log", log)
        assert (answer.code, answer.out) == (2, "")
        assert f"{log}:{number}: " in answer.err


def test_a_tampered_chain_warns(command: Command, tmp_path: Path, log: Path) -> None:
    """What is replayed may not be what was decided: a warning with the place, and the answer all the same."""
    text = log.read_text(encoding="utf-8")
    log.write_text(text.replace('"confidence_millionths":300000', '"confidence_millionths":600000'), "utf-8")
    answer = command("policy", "replay", "--policies", policies_path(), "--log", log, "--format", "json")

    assert "warning: " in answer.err
    assert "the chain of the log does not hold" in answer.err
    assert _counts(answer.document) == {"newly_admitted": 1}


def test_what_cannot_be_asked_again_is_counted(command: Command, tmp_path: Path, log: Path) -> None:
    """A masked or strange input, a newer version and a failed engine are no decisions of the policies."""
    own = json.loads(log.read_text(encoding="utf-8").splitlines()[0])
    masked = {**own, "masked": ["/input/caller/principal_id"]}
    newer = {**own, "input_version": 99}
    strange = {**own, "input": {**own["input"], "caller": {"principal_id": "<nobody>", "tenant_id": 5}}}
    failed = {
        **own,
        "result": {"allow": False, "effect": "deny", "deny": [{"rule_id": "ENGINE", "reason": "x"}]},
    }
    log.write_text(
        "".join(f"{json.dumps(one)}\n" for one in (masked, newer, failed, strange)), encoding="utf-8"
    )
    _, document = _replayed(command, tmp_path, log, _high_floor)

    assert document["coverage"]["not_replayed"] == {
        "engine_failure": 1,
        "input_malformed": 1,
        "input_masked": 1,
        "input_version_newer": 1,
    }
    assert (document["decisions"], document["unchanged"]) == (4, 0)
    text = command("policy", "replay", "--policies", policies_path(), "--log", log).out
    assert "Not replayed: 1 decision: a mask took parts of the input out." in text


def test_what_is_asked_for_must_be_there(command: Command, tmp_path: Path, log: Path) -> None:
    """Neither a log nor a store, both, or a file that is not there: code 2 and one sentence."""
    base = ("policy", "replay", "--policies", policies_path())
    for words in ((), ("--log", log, "--store", "memory:"), ("--log", tmp_path / "nowhere.jsonl")):
        answer = command(*base, *words)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.count("\n") == 1


@pytest.mark.parametrize("damage", ["cut", "payload"])
def test_a_damaged_event_is_no_internal_error(
    command: Command, tmp_path: Path, log: Path, damage: str
) -> None:
    """Events that tell which record a write led to are read, too: one that is cut has its place named."""
    lines = log.read_text(encoding="utf-8").splitlines()
    at = next(number for number, line in enumerate(lines) if '"event_type":"memory_persisted"' in line)
    if damage == "cut":
        lines[at] = lines[at][:-9]
    else:
        lines[at] = json.dumps({**json.loads(lines[at]), "payload": [1]}, separators=(",", ":"))
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    answer = command("policy", "replay", "--policies", policies_path(), "--log", log)

    assert answer.code == (2 if damage == "cut" else 0)
    assert (f"decisions.jsonl:{at + 1}: line of the log not readable" in answer.err) == (damage == "cut")


def _without_a_column(line: dict[str, Any]) -> None:
    line["considered"]["columns"].remove("status")
    for row in line["considered"]["returned"]:
        del row[13]


def _caller_of_no_name(line: dict[str, Any]) -> None:
    line["input"]["caller"]["principal_id"] = {"a": 1}


@pytest.mark.parametrize("damage", [_without_a_column, _caller_of_no_name], ids=["column", "caller"])
def test_a_decision_that_is_none_of_ours_is_named(
    command: Command, tmp_path: Path, log: Path, damage: Any
) -> None:
    """Whatever is wrong with an entry: its place is told or it is counted, and nothing breaks."""
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    damage(next(line for line in lines if "considered" in line))
    log.write_text(
        "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8"
    )
    code = command(
        *("policy", "replay", "--policies", policies_with(tmp_path, _high_only), "--log", log),
        *("--format", "json"),
    )

    assert (code.code, "internal" in code.err) in {(2, False), (0, False)}
