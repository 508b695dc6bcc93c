"""The lock files: what they pin, and that they say nothing of the machine they were made on."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
LOCKS = ("runtime", "dev")
PIN = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>[A-Za-z0-9.]+)(?P<rest>.*)$")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}$")
NAME = re.compile(r"^[A-Za-z0-9._-]+")


def _requirements(lock: str) -> dict[str, tuple[str, list[str]]]:
    """Name to (version, hash options) of every requirement of `lock`."""
    text = (CHECKOUT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
    joined = re.sub(r"\s*\\\n\s*", " ", text)
    found: dict[str, tuple[str, list[str]]] = {}
    for line in joined.splitlines():
        if line.startswith("#"):
            continue
        pin = PIN.match(line)
        assert pin is not None, f"not a pinned requirement: {line}"
        hashes = [word for word in pin["rest"].split() if word.startswith("--hash")]
        found[pin["name"]] = (pin["version"], hashes)
    return found


def _declared(lock: str) -> set[str]:
    """Names that pyproject.toml asks for, of which `lock` must have each."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = list(project["project"]["dependencies"])
    if lock == "dev":
        wanted += project["dependency-groups"]["dev"] + project["build-system"]["requires"]
        wanted += [line for extra in project["project"]["optional-dependencies"].values() for line in extra]
    names = (NAME.match(line) for line in wanted)
    return {re.sub(r"[._-]+", "-", name[0]).lower() for name in names if name}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_requirement_has_hashes(lock: str) -> None:
    """pip can check each package that it installs against a hash of the lock."""
    requirements = _requirements(lock)

    unchecked = [
        name for name, (_, hashes) in requirements.items() if not hashes or not all(map(HASH.match, hashes))
    ]
    assert requirements
    assert unchecked == []


@pytest.mark.parametrize("lock", LOCKS)
def test_no_address_and_no_path_in_a_lock(lock: str) -> None:
    """A lock works behind any registry, so it names none, and no folder of a machine."""
    text = (CHECKOUT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")

    assert re.findall(r"://|--index-url|--find-links|/home/|/root/|/tmp/|file:", text) == []


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_holds_what_the_project_declares(lock: str) -> None:
    """Whoever adds a dependency also runs `make lock`."""
    assert _declared(lock) - set(_requirements(lock)) == set()


def test_both_locks_pin_the_same_versions() -> None:
    """What is tested is what is installed at run time."""
    development = _requirements("dev")

    assert {name: development[name] for name in _requirements("runtime")} == _requirements("runtime")
