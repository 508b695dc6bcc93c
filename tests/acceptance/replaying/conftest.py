"""A log to be replayed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.replay_logs import logged


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A decision log of four admitted writes, a refused one, three reads and a refused one."""
    return logged(tmp_path / "decisions.jsonl")
