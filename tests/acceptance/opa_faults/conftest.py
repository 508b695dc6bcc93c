"""Policies, a store and a client for tests of faulty policy servers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.policy.bundle import Bundle, load_bundle
from agent_runtime_ref.resources import policies_path
from tests.support import caller, candidate


@pytest.fixture(params=["threads", "asyncio"])
def asking(request: pytest.FixtureRequest) -> str:
    """Through which client the memory is used."""
    return str(request.param)


@pytest.fixture(scope="module", autouse=True)
def policies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The bundled policies as they are now, for every memory that is opened here."""
    folder = tmp_path_factory.mktemp("faults") / "policies"
    shutil.copytree(policies_path(), folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENT_RUNTIME_POLICIES", str(folder))
        yield folder


@pytest.fixture(scope="module")
def bundle(policies: Path) -> Bundle:
    """The policies that a server here pretends to run."""
    return load_bundle(policies)


@pytest.fixture
def kept(tmp_path: Path) -> str:
    """The address of a store with one record, which the embedded engine let in."""
    url = f"sqlite:{tmp_path / 'memory.db'}"
    with GovernedMemory.open(url) as memory:
        memory.write(candidate(), caller=caller())
    return url
