"""Masking and rotation of the decision log, by settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_runtime_ref import GovernedMemory, PolicyDeniedError
from agent_runtime_ref.errors import StoreCapabilityError
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.telemetry.segments import closed_segments
from tests.acceptance.command import WHO, Command, file_of, question
from tests.support import caller, candidate, query

MASK = ["/input/query/purpose", {"op": "upsert", "path": "/input/caller/principal_id", "value": "***"}]


def _decisions(memory: GovernedMemory) -> list[dict[str, object]]:
    lines = [json.loads(line) for read in (False, True) for line in memory.log_lines(read=read)]
    return [line for line in lines if line["type"] == "decision"]


def test_masked_parts_are_in_no_decision_line(store_url: str) -> None:
    """Of reads, refusals and writes: the line says what it leaves out, and its chain holds."""
    with GovernedMemory.open(store_url, log_mask=MASK) as memory:
        memory.write(candidate(), caller=caller())
        memory.read(query(), caller=caller())
        with pytest.raises(PolicyDeniedError):
            memory.read(query(tenant_id="tenant-other"), caller=caller())
        decisions = _decisions(memory)
        faults = [chain.verify(memory.log_lines(read=read)) for read in (False, True)]

    assert faults == [None, None]
    assert len(decisions) == 3
    for line in decisions:
        assert line["input"]["caller"]["principal_id"] == "***"  # type: ignore[index]
        assert line["masked"] == ["/input/caller/principal_id"]
    assert [line.get("erased") for line in decisions] == [None, *[["/input/query/purpose"]] * 2]


def test_without_a_mask_a_line_says_nothing_of_masks(store_url: str) -> None:
    """The lists are there only where something is left out."""
    with GovernedMemory.open(store_url) as memory:
        memory.read(query(), caller=caller())
        (line,) = _decisions(memory)

    assert not {"masked", "erased"} & line.keys()


def test_a_decision_is_not_changed_by_a_mask(store_url: str) -> None:
    """What the caller gets, and what the policy sees, is the same with a mask and without."""
    with GovernedMemory.open(store_url, log_mask=MASK) as memory:
        receipt = memory.write(candidate(), caller=caller())
        result = memory.read(query(), caller=caller())

    assert (receipt.effect, len(result.hits)) == ("allow", 1)


def test_rotation_needs_a_log_file(store_url: str) -> None:
    """A setting that could not be honoured is refused, never ignored."""
    with pytest.raises(StoreCapabilityError, match="no log file"):
        GovernedMemory.open(store_url, log_rotate_bytes=65536)


def test_a_command_keeps_to_the_settings_of_its_file(command: Command, tmp_path: Path) -> None:
    """runtime.yaml says what is masked and when the log is rotated; the commands read over all files."""
    log = tmp_path / "log.jsonl"
    settings = {"log": str(log), "log_mask": MASK, "log_rotate_bytes": 65536}
    file = file_of(tmp_path / "runtime.yaml", settings)
    asked = file_of(tmp_path / "q.yaml", question())
    for _ in range(8):
        assert command("read", "--query", asked, *WHO, "--settings", file).code == 0

    assert len(closed_segments(log)) >= 1
    traces = command("trace", "inspect", "--log", log, "--format", "json").document
    lines = [line for trace in traces for line in trace["lines"]]
    assert sorted(line["seq"] for line in lines) == list(range(1, 8 * 12 + 1))


def test_a_mask_that_hides_the_decision_is_refused(command: Command, tmp_path: Path) -> None:
    """The command ends with 2 and says which entry it is."""
    file = file_of(tmp_path / "runtime.yaml", {"log_mask": ["/result/effect"]})
    answer = command("read", "--query", file_of(tmp_path / "q.yaml", question()), *WHO, "--settings", file)

    assert answer.code == 2
    assert "log_mask[0]: `/result/effect`: a line must say what was decided" in answer.err
