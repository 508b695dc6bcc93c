"""Bundles that a test may change: copies of the bundled policies, and small ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_runtime_ref.resources import policies_path

_READ = """\
package memory.read

import data.memory.settings
import future.keywords.not
import rego.v1

decision := {
	"allow": allow,
	"deny": set(),
	"plan": {"complete": false, "limit": 0, "clauses": []},
	"admitted": [index | some index, _ in input.candidates; allow; not out[index]],
	"excluded": excluded,
	"obligations": [],
}

default allow := false

allow if input.query.tenant_id == input.caller.tenant_id

out[one.index] := true if some one in excluded

# METADATA
# title: A least trust
# description: A record has at least the trust of its class.
# custom:
#   rule_id: MEM-R-204
#   severity: high
#   scope: record
#   controls: [CONTROL-1]
#   attributes: [trust_rank]
#   settings: [trust_floors, trust_ranks]
excluded contains {"index": index, "rule_id": "MEM-R-204", "reason": "trust_below_minimum"} if {
	some level, classes in settings.trust_floors
	some index, candidate in input.candidates
	candidate.memory_class in classes
	not candidate.trust_rank >= settings.trust_ranks[level]
}
"""
_WRITE = """\
package memory.write

import data.memory.settings
import future.keywords.not
import rego.v1

decision := {
	"allowed": allowed,
	"deny": deny,
	"quarantine": set(),
	"obligations": set(),
	"assign": [given | some _ in input.candidates],
}

given := {"trust_level": "medium", "retention": "long_term", "ttl_days": 30}

default allowed := []

allowed := [index | some index, _ in input.candidates; not refused[index]] if input.operation == "write"

refused[one.index] := true if some one in deny

# METADATA
# title: Not too large
# description: A record is at most as large as the settings allow.
# custom:
#   rule_id: MEM-W-111
#   severity: medium
#   scope: candidate
#   controls: [CONTROL-1]
#   attributes: [size_bytes]
#   settings: [limits]
deny contains {"index": index, "rule_id": "MEM-W-111", "reason": "too_large"} if {
	some index, candidate in input.candidates
	not candidate.size_bytes <= settings.limits.size_bytes_max
}
"""
_TESTS = """\
package memory.small_test

import data.memory.read
import data.memory.write
import rego.v1

test_size if {
	found := write.decision with input as {"operation": "write", "candidates": [{"size_bytes": 1}, {}]}
	{one.rule_id | some one in found.deny} == {"MEM-W-111"}
	found.allowed == [0]
}

test_trust if {
	candidates := [{"memory_class": one, "trust_rank": 1} | some one in ["long_term", "short_term"]]
	asked := {"query": {"tenant_id": "a"}, "caller": {"tenant_id": "a"}, "candidates": candidates}
	found := read.decision with input as asked
	{one.rule_id | some one in found.excluded} == {"MEM-R-204"}
	found.admitted == [1]
}
"""
_CONTROLS = """\
controls:
  - id: CONTROL-1
    framework: A framework
    title: A control
    evidence: Two rules.
    rules: [MEM-R-204, MEM-W-111]
"""


def copied(folder: Path) -> Path:
    """Return a copy of the bundled policies below `folder`."""
    copy = folder / "policies"
    shutil.copytree(policies_path(), copy)
    return copy


def small(folder: Path) -> Path:
    """Return a bundle below `folder` of a rule for reading and one for writing, tested, under a control."""
    policies = folder / "small"
    for name, text in {
        "memory/read/read.rego": _READ,
        "memory/write/write.rego": _WRITE,
        "memory/small_test.rego": _TESTS,
        "compliance/controls.yaml": _CONTROLS,
        ".manifest": '{"revision": "small-1", "roots": ["memory"]}',
    }.items():
        (policies / name).parent.mkdir(parents=True, exist_ok=True)
        (policies / name).write_text(text, encoding="utf-8")
    for name in ("settings", "detectors"):
        (policies / "memory" / name).mkdir()
        shutil.copy(policies_path() / "memory" / name / "data.json", policies / "memory" / name / "data.json")
    return policies


def with_settings(policies: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the settings of a bundle."""
    path = policies / "memory" / "settings" / "data.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    change(settings)
    path.write_text(json.dumps(settings), encoding="utf-8")


def with_rule(policies: Path, text: str, *, package: str = "memory.write") -> None:
    """Add a module to a bundle; `text` is what follows package and imports, which take five lines."""
    head = f"package {package}\n\nimport future.keywords.not\nimport rego.v1\n\n"
    (policies / "memory/write/own.rego").write_text(head + text, encoding="utf-8")
