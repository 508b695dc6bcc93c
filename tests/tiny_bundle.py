"""The smallest bundle that loads: one rule that a test writes, with the settings that every bundle has."""

from __future__ import annotations

import shutil
from pathlib import Path

from agent_runtime_ref.resources import policies_path

HEADER = (
    "package memory.tiny\n\nimport data.memory.settings\n\nimport future.keywords.not\nimport rego.v1\n\n"
)
TEST_HEADER = "package memory.tiny_test\n\nimport data.memory.tiny\nimport rego.v1\n\n"

RULE = """deny contains {"rule_id": "MEM-T-001", "reason": "too_many"} if {
	input.limit > 100
}
"""
ABOVE = """test_above if {
	found := tiny.deny with input as {"limit": 102}
	{one.rule_id | some one in found} == {"MEM-T-001"}
}

"""
AT_THE_BOUND = """test_at_the_bound if {
	found := tiny.deny with input as {"limit": 100}
	found == set()
}

"""
JUST_ABOVE = """test_just_above if {
	found := tiny.deny with input as {"limit": 101}
	{one.rule_id | some one in found} == {"MEM-T-001"}
}

"""
# With these two the bound could be one higher, and nobody would notice.
ONE_SURVIVOR = ABOVE + AT_THE_BOUND
NO_SURVIVOR = ABOVE + AT_THE_BOUND + JUST_ABOVE


def tiny_bundle(folder: Path, rules: str = RULE, tests: str = NO_SURVIVOR) -> Path:
    """Write a bundle with one module and its tests below `folder` and return its path."""
    bundle = folder / "policies"
    (bundle / "memory" / "tiny").mkdir(parents=True)
    (bundle / "memory" / "settings").mkdir()
    (bundle / ".manifest").write_text('{"revision": "1", "roots": ["memory"]}', encoding="utf-8")
    shutil.copy(policies_path() / "memory/settings/data.json", bundle / "memory/settings/data.json")
    (bundle / "memory/tiny/tiny.rego").write_text(HEADER + rules, encoding="utf-8")
    if tests:
        (bundle / "memory/tiny/tiny_test.rego").write_text(TEST_HEADER + tests, encoding="utf-8")
    return bundle
