"""`trace inspect` over the decision log of an OPA server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.command import Command
from tests.unit.test_log_reader import OPA, SERVER

READ: dict[str, Any] = OPA | {
    "decision_id": "read-1",
    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    "path": "memory/read/decision",
    "timestamp": "2026-11-30T09:31:53.1Z",
    "erased": ["/input/caller/principal_id"],
    "input": {"operation": "search", "candidates": [{"record_id": "mem-001"}, {"record_id": "mem-002"}]},
    "result": {
        "allow": True,
        "admitted": [0],
        "excluded": [{"index": 1, "rule_id": "MEM-R-204", "reason": "trust_below_minimum"}],
    },
}
UNDEFINED = {name: value for name, value in OPA.items() if name not in ("result", "bundles")} | {
    "decision_id": "none-1",
    "timestamp": "2026-11-30T09:31:54Z",
}


@pytest.fixture(params=["console", "upload"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The same decisions as OPA prints them, and as it uploads them."""
    path = tmp_path / "opa.log"
    if request.param == "upload":
        path.write_text(json.dumps([OPA, READ, UNDEFINED], indent=1))
    else:
        path.write_text("".join(json.dumps(one) + "\n" for one in (SERVER, OPA, READ, UNDEFINED)))
    return path


def test_shows_the_decisions_of_a_server(command: Command, log: Path) -> None:
    """Each by its trace, else by its own id; what a mask left out is said."""
    answer = command("trace", "inspect", "--log", log)

    assert (answer.code, answer.err) == (0, "")
    assert "2026-11-30T09:31:52.926568506Z  write: allow  by 127.0.0.1:38266" in answer.out
    assert "4bf92f3577b34da6a3ce929d0e0e4736" in answer.out
    assert "search: allow" in answer.out
    assert "erased: /input/caller/principal_id" in answer.out
    assert "write: undefined" in answer.out
    assert "decision read-1, policy 1.0.0" in answer.out
    assert "decision none-1, policy unknown" in answer.out


def test_says_what_became_of_a_record(command: Command, log: Path) -> None:
    """The question names the records, and the answer says which of them it keeps out."""
    out = command("trace", "inspect", "--log", log, "--record", "mem-002").out
    document = command("trace", "inspect", "--log", log, "--record", "mem-001", "--format", "json").document

    assert "`mem-002` was kept out: trust_below_minimum" in out
    outcomes = [one for trace in document for one in trace["decisions"]]
    assert [(one["decision_id"], one["outcome"]) for one in outcomes] == [("read-1", "admitted")]


def test_json_keeps_what_opa_wrote(command: Command, log: Path) -> None:
    """Every field of an entry is there as it was."""
    (trace,) = command("trace", "inspect", READ["trace_id"], "--log", log, "--format", "json").document

    assert {name: trace["lines"][0][name] for name in READ} == READ


def test_damage_is_placed(command: Command, tmp_path: Path) -> None:
    """A line that is no JSON ends in 2, with its place."""
    path = tmp_path / "opa.log"
    path.write_text(json.dumps(OPA) + "\n" + json.dumps(OPA)[:-5] + "\n")
    answer = command("trace", "inspect", "--log", path)

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"{path}:2: ")
