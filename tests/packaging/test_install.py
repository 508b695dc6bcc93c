"""`pip install .` as a user types it: an empty environment, nothing of ours in it before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.wheel, pytest.mark.timeout(600)]


def _run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `command` in `folder`."""
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=500, check=False)


def test_pip_install_gives_the_command(tmp_path: Path) -> None:
    """After `pip install .` into an empty environment the command runs, and the checkout has no new file."""
    checkout = Path(os.environ["AGENT_RUNTIME_CHECKOUT"])
    before = {path.name for path in checkout.iterdir()}
    scripts = tmp_path / "venv" / "bin"

    made = _run(sys.executable, "-m", "venv", str(tmp_path / "venv"), folder=tmp_path)
    assert made.returncode == 0, made.stderr
    installed = _run(str(scripts / "python"), "-m", "pip", "install", "--quiet", ".", folder=checkout)
    assert installed.returncode == 0, installed.stderr
    answer = _run(str(scripts / "agent-runtime-ref"), "--help", folder=tmp_path)

    assert answer.returncode == 0, answer.stderr
    assert {path.name for path in checkout.iterdir()} == before
