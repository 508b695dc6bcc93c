"""A reviewer's own rule takes effect on every store without a change of Python."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.resources import policies_path
from agent_runtime_ref.testing import CountedIds, FrozenClock
from tests.support import caller, candidate, events, note, query

IN_THE_PLAN = """
# METADATA
# title: Tool output stays out of answers
# custom:
#   rule_id: MEM-R-290
#   severity: medium
#   scope: record
#   controls: [OWASP-ASI06]
#   attributes: [source]
#   settings: []
clauses contains {
	"role": "filter",
	"rule_id": "MEM-R-290",
	"reason": "tool_output",
	"any_of": [{"attribute": "source", "operator": "ne", "value": "external_tool"}],
	"classes": null,
	"passed": null,
}

excluded contains {"index": index, "rule_id": "MEM-R-290", "reason": "tool_output"} if {
	some index, candidate in input.candidates
	candidate.source == "external_tool"
}
"""

NOT_IN_THE_PLAN = """
# METADATA
# title: Tool output stays out of answers
# custom:
#   rule_id: MEM-R-290
#   severity: medium
#   scope: record
#   controls: [OWASP-ASI06]
#   attributes: [source]
#   settings: []
excluded contains {"index": index, "rule_id": "MEM-R-290", "reason": "tool_output"} if {
	some index, candidate in input.candidates
	candidate.source == "external_tool"
}

incomplete contains "MEM-R-290"
"""


@pytest.mark.parametrize("rule", [IN_THE_PLAN, NOT_IN_THE_PLAN], ids=["in the plan", "judged one by one"])
def test_one_more_rule_changes_what_every_store_answers(store_url: str, tmp_path: Path, rule: str) -> None:
    """The new rule keeps records out, is counted under its reason, raises no alarm and shifts the limit."""
    folder = tmp_path / "policies"
    shutil.copytree(policies_path(None), folder)
    module = folder / "memory" / "read" / "filters.rego"
    module.write_text(module.read_text(encoding="utf-8") + rule, encoding="utf-8")
    trace = tmp_path / "trace.jsonl"
    clock = FrozenClock()
    with GovernedMemory.open(store_url, clock=clock, ids=CountedIds()) as memory:
        if store_url == "memory:":
            memory.close()
    with GovernedMemory.open(
        store_url, policies=folder, clock=clock, ids=CountedIds(), trace=trace
    ) as memory:
        memory.write(candidate("the queue fact"), caller=caller())
        for number in range(9):
            memory.write(note(f"queue note {number} of a tool", source="external_tool"), caller=caller())
        memory.write(note("queue note of the session"), caller=caller())

        with_text = memory.read(query(limit=3), caller=caller(), text="queue")
        without = memory.read(query(limit=3), caller=caller())

    expected = ["the queue fact", "queue note of the session"]
    assert [hit.record.content for hit in with_text.hits] == expected
    assert [hit.record.content for hit in without.hits] == expected
    assert with_text.exclusions == without.exclusions == {"tool_output": 9}
    assert not with_text.underfilled
    assert "plan_mismatch" not in {event["event_type"] for event in events(trace)}
