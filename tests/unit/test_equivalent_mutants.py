"""equivalent_mutants.yaml: which changes of the policies a person may explain, and which not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_runtime_ref.errors import BundleError, DocumentError
from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.policy.mutation import EQUIVALENT, MutationReport, run_mutants
from tests.tiny_bundle import ONE_SURVIVOR, RULE, tiny_bundle

ENTRY = {
    "file": "memory/tiny/tiny.rego",
    "rule": "MEM-T-001#1",
    "original": "input.limit > 100",
    "mutated": "input.limit > 101",
    "reason": "Nobody asks for a hundred and one.",
    "reviewed": "Read by the maintainer on 2026-11-30.",
}


class TestEquivalent:
    """Changes that a person has looked at."""

    def run(self, folder: Path, *entries: dict[str, str]) -> MutationReport:
        """Return what comes of a bundle with a survivor and a file that explains some."""
        bundle = tiny_bundle(folder, RULE, ONE_SURVIVOR)
        (bundle / EQUIVALENT).write_text(json.dumps({"equivalent": entries}), encoding="utf-8")
        return run_mutants(bundle)

    def test_an_entry_explains_a_survivor(self, tmp_path: Path) -> None:
        """What is explained is no survivor, and is told as equivalent."""
        report = self.run(tmp_path, ENTRY)

        assert report.survived == ()
        assert [one.reason for one in report.equivalent] == [ENTRY["reason"]]

    @pytest.mark.parametrize(
        ("entries", "problem"),
        [
            ([ENTRY | {"mutated": "input.limit > 7"}], "names no change that is tried"),
            ([ENTRY | {"rule": "MEM-T-001#2"}], "names no change that is tried"),
            ([ENTRY | {"mutated": "true"}], r"noticed by memory\.tiny_test\.test_at_the_bound, so it is not"),
            ([ENTRY, ENTRY | {"reason": "Said once more, in other words."}], "stands twice"),
        ],
    )
    def test_an_entry_that_is_wrong(
        self, tmp_path: Path, entries: list[dict[str, str]], problem: str
    ) -> None:
        """An entry that names no change, a noticed one, or one twice, is an error with its line."""
        with pytest.raises(BundleError, match=rf"{EQUIVALENT}:1: MEM-T-001#[12]: .*{problem}"):
            self.run(tmp_path, *entries)

    def test_a_sixth_entry(self, tmp_path: Path) -> None:
        """Five are the most."""
        entries = [ENTRY | {"rule": f"MEM-T-001#{number}"} for number in range(6)]

        with pytest.raises(DocumentError, match="must have at most 5 items"):
            self.run(tmp_path, *entries)

    def test_the_file_is_no_part_of_the_digest(self, tmp_path: Path) -> None:
        """What explains a test decides nothing: the bundle stays the one that was pinned."""
        bundle = tiny_bundle(tmp_path)
        before = load_bundle(bundle).digest
        (bundle / EQUIVALENT).write_text("equivalent: []\n", encoding="utf-8")

        assert load_bundle(bundle).digest == before
