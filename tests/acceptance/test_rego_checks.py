"""The checks that a real OPA makes of policies/: each finds the mistake that it is for."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_runtime_ref.resources import policies_path
from tests.opa import require_opa
from tests.rego_checks import ROOT, check_problems, unreached

pytestmark = pytest.mark.skipif(not (ROOT / ".ci" / "opa").is_file(), reason="checks of a checkout")

Edit = Callable[[str, str, str], Path]


@pytest.fixture
def edited(tmp_path: Path) -> Edit:
    """Copy the policies with one thing written otherwise."""

    def edit(name: str, old: str, new: str) -> Path:
        folder = tmp_path / "policies"
        shutil.copytree(policies_path(), folder)
        module = folder / "memory" / name
        text = module.read_text(encoding="utf-8")
        assert old in text
        module.write_text(text.replace(old, new), encoding="utf-8")
        return folder

    return edit


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("read/read.rego", "input.query.limit <=", "input.query.limt <=", "input.query.limt"),
        ("read/filters.rego", "candidate.expires_ns >", "candidate.expires >", "candidate.expires"),
        ("write/contents.rego", "candidate.tombstoned ==", "candidate.tombstonned ==", "tombstonned"),
        ("write/records.rego", "replaces.trust_rank", "replaces.trust", "replaces.trust"),
        ("review/review.rego", "queue.written_by.principal >", "queue.writer.principal >", "queue.writer"),
        ("read/read.rego", "settings.purposes", "settings.purpose", "settings.purpose"),
    ],
)
def test_a_misspelt_name_is_found(edited: Edit, name: str, old: str, new: str, told: str) -> None:
    """A rule that reads what neither the input nor the settings have fails the check, with file and name."""
    problems = "\n".join(check_problems(require_opa(), edited(name, old, new)))

    assert f"memory/{name}" in problems
    assert "undefined ref" in problems
    assert told in problems


def test_a_built_in_beyond_the_subset_is_found(edited: Edit) -> None:
    """A rule that uses what not every engine has fails the check."""
    folder = edited("read/filters.rego", "day_ns := 86400000000000", 'day_ns := count(uuid.rfc4122("a"))')

    assert "uuid.rfc4122" in "\n".join(check_problems(require_opa(), folder))


def test_the_bundled_policies_pass() -> None:
    """As they are, the policies read only what there is, and use only what every engine has."""
    assert list(check_problems(require_opa(), policies_path())) == []


def test_a_line_that_no_test_reaches_is_named() -> None:
    """A line that is not covered is told by file and row, tests themselves left out."""
    part = {"start": {"row": 7}, "end": {"row": 8}}
    report = {
        "files": {
            "memory/read/read.rego": {"covered": [part], "not_covered": [part]},
            "memory/read/read_test.rego": {"not_covered": [part]},
        }
    }

    assert list(unreached(report)) == ["memory/read/read.rego:7: no test reaches this line"]
    assert list(unreached({"files": {}})) == ["the coverage report names no line of any policy"]
