"""The built wheel: what is inside, and that it works where nothing else of the project is.

`make test-wheel` runs this against the installed wheel, in a folder that has the tests but not the package.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import agent_runtime_ref

pytestmark = pytest.mark.wheel

DATA_FOLDERS = ("policies", "schemas", "configs")


def _checkout() -> Path:
    """The checkout that the wheel was built from."""
    return Path(os.environ["AGENT_RUNTIME_CHECKOUT"])


def _wheel() -> zipfile.ZipFile:
    """The wheel under test."""
    return zipfile.ZipFile(os.environ["AGENT_RUNTIME_WHEEL"])


def _run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the installed command in `folder`."""
    command = Path(sys.executable).with_name("agent-runtime-ref")
    return subprocess.run(
        [str(command), *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


def test_package_under_test_is_the_installed_one() -> None:
    """No test of this run reads the package out of the checkout by accident."""
    package = Path(agent_runtime_ref.__file__).resolve()

    assert not package.is_relative_to(_checkout())
    assert package.is_relative_to(Path(sys.prefix).resolve())


@pytest.mark.parametrize("folder", DATA_FOLDERS)
def test_wheel_holds_every_data_file(folder: str) -> None:
    """Policies, schemas and configs are in the wheel, byte for byte, dot files included."""
    here = _checkout() / folder
    expected = {
        f"agent_runtime_ref/_data/{folder}/{path.relative_to(here).as_posix()}": path.read_bytes()
        for path in here.rglob("*")
        if path.is_file()
    }

    with _wheel() as wheel:
        actual = {
            name: wheel.read(name)
            for name in wheel.namelist()
            if name.startswith(f"agent_runtime_ref/_data/{folder}/")
        }

    assert expected
    assert actual == expected


def test_wheel_holds_nothing_else() -> None:
    """Tests, caches and benches stay at home."""
    with _wheel() as wheel:
        names = wheel.namelist()

    outside = [name for name in names if not name.startswith(("agent_runtime_ref/", "agent_runtime_ref-"))]
    assert outside == []
    assert [name for name in names if "__pycache__" in name or name.endswith(".pyc")] == []


def test_wheel_names_licence_and_pythons() -> None:
    """An installer learns the licence and the Pythons from the metadata alone."""
    about = metadata.metadata("agent-runtime-ref")

    assert about["License-Expression"] == "Apache-2.0"
    assert set(about["Requires-Python"].split(",")) == {">=3.11", "<3.15"}


def test_help_works_outside_the_checkout(tmp_path: Path) -> None:
    """`agent-runtime-ref --help` answers on standard output in an empty folder, and leaves it empty."""
    answer = _run("--help", folder=tmp_path)

    assert answer.returncode == 0, answer.stderr
    assert "inspect-memory" in answer.stdout
    assert list(tmp_path.iterdir()) == []


def test_bundled_seeds_are_found_outside_the_checkout(tmp_path: Path) -> None:
    """Policies, schemas and seeds come out of the wheel; the command needs nothing beside it."""
    answer = _run("inspect-memory", "--format", "json", folder=tmp_path)

    assert answer.returncode == 0, answer.stderr
    assert "mem-001" in answer.stdout
    assert list(tmp_path.iterdir()) == []
