"""Decisions read back from logs of ours and of OPA."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref.errors import DocumentUnreadableError
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.telemetry.reader import read_decisions
from agent_runtime_ref.telemetry.segments import closed_name, raw_lines
from tests.support import read_log

OWN = {
    "type": "decision",
    "event_id": "evt-1",
    "input_version": 1,
    "decision_id": "dec-1",
    "trace_id": "trace-001",
    "timestamp": "2026-11-30T09:00:00Z",
    "path": "memory/read/decision",
    "bundles": {"memory": {"revision": "1.0.0", "digest": "sha256:ab"}},
    "requested_by": "user-42",
    "input": {"operation": "search"},
    "result": {"allow": True, "effect": "allow"},
    "considered": {"returned": []},
    "masked": ["/input/caller/principal_id"],
}
EVENT = {"type": "event", "event_id": "evt-2", "event_type": "retrieval", "payload": {"decision_id": "dec-1"}}
# As `opa run --server --set decision_logs.console=true` of 1.22.3 prints it, shortened.
OPA = {
    "bundles": {"/policies": {"revision": "1.0.0"}},
    "decision_id": "15842990-6187-4811-a184-6a7282b5b17f",
    "input": {"operation": "write", "candidates": [{}]},
    "labels": {"id": "e9c9c153-2777-4820-bd5e-c517bfd5128f", "version": "1.22.3"},
    "level": "info",
    "metrics": {"timer_rego_query_eval_ns": 7944},
    "msg": "Decision Log",
    "path": "memory/write/decision",
    "req_id": 1,
    "requested_by": "127.0.0.1:38266",
    "result": {"allowed": [0]},
    "time": "2026-11-30T09:31:52Z",
    "timestamp": "2026-11-30T09:31:52.926568506Z",
    "type": "openpolicyagent.org/decision_logs",
}
SERVER = {"level": "info", "msg": "Initializing server.", "time": "2026-11-30T09:31:50Z"}


def _sealed(*documents: dict[str, Any]) -> Iterator[str]:
    bodies = [json.dumps(one, separators=(",", ":")) for one in documents]
    yield from (line for _, line in chain.seal_all(bodies, seq=0, prev_hash=chain.GENESIS))


def test_own_lines_give_their_decisions() -> None:
    """Sealed decision lines are read with all that they tell; event lines are skipped."""
    (one,) = read_decisions(_sealed(EVENT, OWN), source="decisions.jsonl")

    assert (one.own, one.gate, one.source, one.line) == (True, "read", "decisions.jsonl", 2)
    assert (one.revision, one.digest, one.requested_by) == ("1.0.0", "sha256:ab", "user-42")
    assert one.considered == {"returned": []}
    assert one.masked == ("/input/caller/principal_id",)
    assert one.document["seq"] == 2


def test_the_console_of_an_opa_server_is_read() -> None:
    """Decisions between other messages of the server are found; what OPA does not log is None."""
    (one,) = read_decisions(map(json.dumps, (SERVER, OPA, SERVER)))

    assert (one.own, one.gate, one.line) == (False, "write", 2)
    assert (one.revision, one.digest, one.trace_id, one.considered) == ("1.0.0", None, None, None)
    assert one.result == {"allowed": [0]}


@pytest.mark.parametrize("indent", [None, 2])
def test_an_uploaded_list_is_read(indent: int | None) -> None:
    """The list that OPA uploads is taken apart entry by entry, on one line or laid out for people."""
    text = json.dumps([OPA, OPA | {"decision_id": "second"}], indent=indent)

    assert [one.decision_id for one in read_decisions(text.splitlines())] == [OPA["decision_id"], "second"]


def test_an_undefined_answer_has_an_empty_result() -> None:
    """OPA leaves the result out where the query was undefined."""
    undefined = {name: value for name, value in OPA.items() if name != "result"}
    (one,) = read_decisions([json.dumps(undefined | {"path": "/memory/read/nothing"})])

    assert (one.result, one.path) == ({}, "memory/read/nothing")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "it is no JSON"),
        ("{} x", "it is no JSON"),
        ('{"a": NaN}', "it is no JSON"),
        ("[" * 100_000, "no JSON object"),
        ('{"a":' * 100_000, "it is no JSON"),
        ("7", "no JSON object"),
        ('{"trace_id": "t"}', "neither a decision nor an event"),
        ('{"decision_id": 7}', "its decision_id is no text"),
        ('{"decision_id": "d", "input": 7}', "its input is no JSON object"),
        ('[{"a":', "does not end"),
        ("[] []", "something follows"),
        ("[7]", "no JSON object"),
    ],
)
def test_a_damaged_line_is_placed(text: str, reason: str) -> None:
    """What is no line of a log is refused with the name of the log and the number of the line."""
    with pytest.raises(DocumentUnreadableError, match=reason) as refused:
        list(read_decisions([json.dumps(OPA), text], source="opa.log"))

    assert (refused.value.source, refused.value.line) == ("opa.log", 2)


def test_rotated_files_are_read_in_order(tmp_path: Path) -> None:
    """Closed segments come first, by the numbers of their lines, and a line is placed in its own file."""
    path = tmp_path / "log.jsonl"
    lines = [f"{line}\n" for line in _sealed(*({**OWN, "decision_id": f"dec-{n}"} for n in range(5)))]
    closed_name(path, 1).write_text("".join(lines[:2]))
    closed_name(path, 3).write_text("".join(lines[2:4]))
    path.write_text(lines[4])
    path.with_name("log.jsonl.bak").write_text("no segment\n")

    found = list(read_log(path))
    assert [one.decision_id for one in found] == [f"dec-{n}" for n in range(5)]
    assert [one.line for one in found] == [1, 2, 1, 2, 1]
    path.unlink()
    assert len(list(read_log(path))) == 4


def test_a_gzipped_upload_is_read(tmp_path: Path) -> None:
    """OPA packs what it uploads; a packed file that is cut short is refused."""
    path = tmp_path / "upload.json.gz"
    packed = gzip.compress(json.dumps([OPA, OPA]).encode())
    path.write_bytes(packed)
    assert len(list(read_log(path))) == 2

    path.write_bytes(packed[:-12])
    with pytest.raises(DocumentUnreadableError, match="not readable"):
        list(read_log(path))


@pytest.mark.parametrize("name", ["nothing.jsonl", "none/log.jsonl", "."])
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    """A log that is not there, or is a folder, is refused with its name."""
    with pytest.raises(DocumentUnreadableError, match="not readable"):
        list(raw_lines(tmp_path / name))


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    """A line of other bytes is refused with its place."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(json.dumps(OPA).encode() + b"\n\xff\xfe\n")
    with pytest.raises(DocumentUnreadableError, match="no UTF-8") as refused:
        list(read_log(path))

    assert refused.value.line == 2
