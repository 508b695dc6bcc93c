"""What the tests of `policy review` share: how it is called, and what is read from its answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.acceptance.command import Answer, Command

FRIDAY = """\
# METADATA
# title: Nothing of a Friday
# description: What a session said is not kept.
# custom:
#   rule_id: MEM-W-990
#   severity: low
#   scope: candidate
#   controls: []
#   attributes: [source]
#   settings: []
deny contains {"index": index, "rule_id": "MEM-W-990", "reason": "friday"} if {
	some index, candidate in input.candidates
	candidate.source == "session_state"
}
"""


SMALL_RULES = ["MEM-R-204", "MEM-W-111"]


def reviewed(command: Command, policies: Path, *words: str | Path) -> Answer:
    """Review policies, as JSON."""
    return command("policy", "review", "--policies", policies, "--format", "json", *words)


def rules(document: dict[str, Any]) -> dict[str, Any]:
    """Return the rules of a review by id."""
    return {rule["id"]: rule for rule in document["rules"]}


def texts(examples: list[dict[str, Any]]) -> list[str]:
    """Return what examples say."""
    return [one["text"] for one in examples]


def found(answer: Answer) -> list[tuple[str, str]]:
    """Return id and severity of each finding."""
    return [(one["id"], one["severity"]) for one in answer.document["findings"]]
