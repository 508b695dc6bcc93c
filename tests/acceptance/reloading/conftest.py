"""Two bundles that answer differently, and a memory that follows a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.policy.build import write_bundle
from tests.reloading import Policies, built_policies, fill


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Policies:
    """Two bundles that answer differently."""
    return built_policies(tmp_path_factory.mktemp("policies") / "strict")


@pytest.fixture
def archive(policies: Policies, tmp_path: Path) -> Path:
    """Where the policies come from; the open ones at first."""
    path = tmp_path / "bundle.tar.gz"
    write_bundle(policies.open, path)
    return path


@pytest.fixture
def memory(archive: Path, tmp_path: Path) -> Iterator[GovernedMemory]:
    """A memory that holds two records of medium trust, and keeps its log in a file."""
    with GovernedMemory.open("memory:", policies=archive, trace=tmp_path / "trace.jsonl") as opened:
        fill(opened)
        yield opened
