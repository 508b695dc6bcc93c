"""The fixture for tests with a real OPA: too old a binary, or none, is a skip, and in CI a failure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.opa import opa_binary, require_opa


@pytest.fixture
def old_opa(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A binary that says it is an OPA whose signatures could be side-stepped."""
    script = tmp_path / "opa"
    script.write_text("#!/bin/sh\necho 'Version: 1.21.2'\n")
    script.chmod(0o755)
    monkeypatch.setenv("AGENT_RUNTIME_OPA", str(script))
    opa_binary.cache_clear()
    yield
    opa_binary.cache_clear()


@pytest.mark.usefixtures("old_opa")
def test_without_a_usable_opa_the_tests_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason names the version found and the oldest that will do."""
    monkeypatch.delenv("CI", raising=False)

    with pytest.raises(pytest.skip.Exception, match=r"1\.21\.2.*1\.21\.3 is the oldest"):
        require_opa()


@pytest.mark.usefixtures("old_opa")
def test_in_ci_the_tests_must_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """There a skip would hide that nothing was tested."""
    monkeypatch.setenv("CI", "true")

    with pytest.raises(pytest.fail.Exception, match="must run"):
        require_opa()
