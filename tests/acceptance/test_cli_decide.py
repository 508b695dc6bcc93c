"""`policy decide`: what the policies answer to a document, with no store in play."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref.resources import policies_path
from tests.acceptance.command import Command, fact, file_of
from tests.unit.policy_documents import CANDIDATE, READ, write_document

WRITE_INPUT: dict[str, Any] = json.loads(write_document(1))


def test_policy_decide_answers_without_a_store(command: Command, tmp_path: Path) -> None:
    """An input that is permitted ends in 0, with the plan that the policy made."""
    answer = command("policy", "decide", "read", "--input", file_of(tmp_path / "in.json", READ))

    assert (answer.code, answer.document["effect"], answer.document["reasons"]) == (0, "allow", [])
    assert answer.document["plan"]["clauses"]
    assert answer.document["policy_digest"].startswith("sha256:")


@pytest.mark.parametrize(
    ("gate", "question", "reason"),
    [
        ("read", {**READ, "operation": "peek"}, "operation_unknown"),
        ("write", {**WRITE_INPUT, "operation": "peek"}, "operation_unknown"),
        ("write", {**WRITE_INPUT, "caller": {**WRITE_INPUT["caller"], "tenant_id": "b"}}, "tenant_mismatch"),
    ],
)
def test_policy_decide_denies_with_1(
    command: Command, tmp_path: Path, gate: str, question: dict[str, Any], reason: str
) -> None:
    """What no rule permits is a deny, with reasons."""
    answer = command("policy", "decide", gate, "--input", file_of(tmp_path / "in.yaml", question))

    assert (answer.code, answer.document["effect"]) == (1, "deny")
    assert reason in answer.document["reasons"]


@pytest.mark.parametrize(
    ("gate", "question", "sentence"),
    [
        ("read", {"operation": "search"}, "policy_read_input $.now_ns: is required"),
        (
            "read",
            {**READ, "query": {**READ["query"], "limit": "3"}},
            "policy_read_input $.query.limit: must be an integer",
        ),
        (
            "write",
            {**WRITE_INPUT, "candidates": []},
            "policy_write_input $.candidates: must hold at least one candidate",
        ),
        (
            "write",
            {**WRITE_INPUT, "candidates": [{**CANDIDATE, "lineage": None}]},
            "policy_write_input $.candidates[0].lineage: must be a mapping",
        ),
        ("write", fact(), "policy_write_input $.operation: is required"),
    ],
)
def test_what_is_no_policy_input_is_no_deny(
    command: Command, tmp_path: Path, gate: str, question: dict[str, Any], sentence: str
) -> None:
    """A document that its schema refuses is a mistake of usage, told with path and sentence."""
    path = file_of(tmp_path / "in.json", question)
    answer = command("policy", "decide", gate, "--input", path)

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"{path}:")
    assert answer.err.endswith(f": {sentence}\n")
    assert answer.err.count("\n") == 1


def test_no_engine_is_asked_what_the_schema_refuses(command: Command, tmp_path: Path) -> None:
    """The document is refused before any engine is opened: even where there is none to be had."""
    path = file_of(tmp_path / "in.json", {**READ, "candidates": [None]})
    answer = command("policy", "decide", "read", "--input", path, "--policies", tmp_path / "none")

    assert answer.code == 2
    assert answer.err.endswith("policy_read_input $.candidates[0]: must be a mapping\n")


@pytest.mark.parametrize(
    ("obligation", "reason"), [("notify", "obligation_unknown"), (None, "not_permitted")]
)
def test_policy_decide_knows_what_the_gate_cannot_do(
    command: Command, tmp_path: Path, obligation: str | None, reason: str
) -> None:
    """An unknown duty, and an answer that permits nothing, end in the deny that the gate would make."""
    policies = tmp_path / "policies"
    shutil.copytree(policies_path(), policies)
    shutil.rmtree(policies / "memory" / "write")
    duties = [] if obligation is None else [{"index": 0, "type": obligation, "findings": []}]
    (policies / "memory" / "write.rego").write_text(
        "package memory.write\n\nimport rego.v1\n\n"
        'allowed := [0 | input.caller.principal_id == "p"; input.operation == "write"]\n\n'
        'decision := {"allowed": allowed, "deny": [], "quarantine": [], '
        f'"obligations": {json.dumps(duties)}, "assign": assign}}\n'
        'assign := [{"trust_level": "low", "retention": "notes", "ttl_days": 1} | input.candidates[_]]\n',
        encoding="utf-8",
    )
    asks = {**WRITE_INPUT["caller"], "principal_id": "p" if obligation else "q"}
    path = file_of(tmp_path / "in.json", {**WRITE_INPUT, "caller": asks})
    answer = command("policy", "decide", "write", "--input", path, "--policies", policies)

    assert (answer.code, answer.document["effect"]) == (1, "deny")
    assert (answer.document["reasons"], answer.document["rule_ids"]) == ([reason], ["GATE"])


@pytest.mark.parametrize(
    ("line", "place"),
    [("x :=\n", "4:1: expecting expression"), ("deny contains y\n", "3:15: var y is unsafe")],
)
def test_broken_rego_is_told_with_its_place(command: Command, tmp_path: Path, line: str, place: str) -> None:
    """A policy that does not parse or compile is configuration: file, line, column, and code 2."""
    policies = tmp_path / "policies"
    shutil.copytree(policies_path(), policies)
    (policies / "memory" / "read" / "own.rego").write_text(f"package memory.read\nimport rego.v1\n{line}")
    answer = command("inspect-memory", "--policies", policies)

    assert (answer.code, answer.out) == (2, "")
    assert f"memory/read/own.rego:{place}" in answer.err
    assert answer.err.count("\n") == 1


def test_policy_decide_says_why(command: Command, tmp_path: Path) -> None:
    """Reasons and rules stand beside the engine's own answer."""
    foreign = {**READ, "query": {**READ["query"], "tenant_id": "b"}}
    document = command("policy", "decide", "read", "--input", file_of(tmp_path / "in.json", foreign)).document

    assert (document["reasons"], document["rule_ids"]) == (["tenant_mismatch"], ["MEM-R-101"])
    assert document["deny"] == [{"reason": "tenant_mismatch", "rule_id": "MEM-R-101"}]
