"""Policies, and servers that run them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_runtime_ref.resources import policies_path
from tests.opa import OpaProcess, require_opa


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled policies, in a folder that nobody else looks at."""
    require_opa()
    folder = tmp_path_factory.mktemp("opa") / "policies"
    shutil.copytree(policies_path(), folder, ignore=shutil.ignore_patterns("*_test.rego"))
    return folder


@pytest.fixture(scope="module")
def server(policies: Path) -> Iterator[OpaProcess]:
    """A server that runs them, for tests that leave it alone."""
    with OpaProcess.of(policies) as running:
        yield running


@pytest.fixture
def own_server(policies: Path) -> Iterator[OpaProcess]:
    """A server that runs them, for tests that do not."""
    with OpaProcess.of(policies) as running:
        yield running
