"""An auditor's copy of a SQLite store: files and folder that the user may read and not write."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.errors import StoreError
from agent_runtime_ref.stores.sqlite import SqliteStore
from tests.support import caller, candidate, query

# Root may write anything unless it gives that up.
_GIVEN_UP = "-dac_override,-dac_read_search"
_AS_ANYBODY = ("setpriv", f"--bounding-set={_GIVEN_UP}", "--inh-caps=-all")
pytestmark = pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root, and setpriv is not installed"
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A store that has one record, which was read once, and the record's id; nothing of it may be written."""
    folder = tmp_path_factory.mktemp("copy")
    path = folder / "memory.db"
    with GovernedMemory.open(f"sqlite:{path}") as memory:
        kept = memory.write(candidate("a fact"), caller=caller()).record.memory_id
        memory.read(query(), caller=caller())
    for one in folder.iterdir():
        one.chmod(0o444)
    folder.chmod(0o555)
    yield path, kept
    folder.chmod(0o755)


def _ran(*words: str | Path) -> subprocess.CompletedProcess[str]:
    before = _AS_ANYBODY if os.geteuid() == 0 else ()
    command = [*before, sys.executable, "-m", "agent_runtime_ref", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_its_logs_are_verified_and_shown(copy: tuple[Path, str]) -> None:
    """Nothing has to be written for that, and nothing is."""
    path, kept = copy
    before = sorted(one.name for one in path.parent.iterdir())
    verified = _ran("trace", "verify", "--store", f"sqlite:{path}")
    shown = _ran("trace", "inspect", "--store", f"sqlite:{path}", "--record", kept)

    assert verified.returncode == 0, verified.stderr
    document = json.loads(verified.stdout)
    assert document["ok"] is True
    assert [one["chain"] for one in document["chains"] if one["lines"]] == ["writes", "reads"]
    assert shown.returncode == 0, shown.stderr
    assert f"`{kept}` was returned, rank 1" in shown.stdout
    assert sorted(one.name for one in path.parent.iterdir()) == before


def test_what_is_decided_has_to_be_logged_somewhere(copy: tuple[Path, str]) -> None:
    """A look that policies decide about writes its line; the sentence says what to do."""
    path, _ = copy
    answer = _ran("inspect-memory", "--store", f"sqlite:{path}")

    assert (answer.returncode, answer.stdout) == (3, "")
    assert "this user may only read it; make a copy with all files of the store in a folder" in answer.stderr


def test_a_file_that_may_not_be_written_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever writes all the same gets the sentence, not that of SQLite."""
    path = tmp_path / "memory.db"
    SqliteStore(path).close()
    may = os.access
    monkeypatch.setattr(os, "access", lambda name, mode: mode != os.W_OK and may(name, mode))
    store = SqliteStore(path)
    with pytest.raises(StoreError, match="this user may only read it; make a copy"):
        store.append_lines(["{}"], read=False)
    store.close()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["memory.db"]
