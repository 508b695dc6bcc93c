"""Other policies than the bundled ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.differing.changes import CONTROLS, FILTERS
from tests.acceptance.differing.changes import changed as _changed
from tests.acceptance.replay_logs import policies_with


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Policies with other settings, a rule retitled and rewritten, one gone, and one control more."""
    path = policies_with(tmp_path, _changed)
    rules = path / FILTERS
    text = rules.read_text(encoding="utf-8")
    assert "# title: Only active records" in text
    text = text.replace("# title: Only active records", "# title: Only live records")
    start = text.index("# METADATA\n# title: A summary never stands")
    rules.write_text(
        text[:start].replace('candidate.status == "active"', 'candidate.status == "live"'), "utf-8"
    )
    controls = path / CONTROLS
    added = (
        "  - id: NEW-1\n    framework: House\n    title: New\n    evidence: None.\n    rules: [MEM-R-202]\n"
    )
    controls.write_text(controls.read_text(encoding="utf-8").rstrip("\n") + "\n" + added, encoding="utf-8")
    return path
