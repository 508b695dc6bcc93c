"""A folder of sessions that the user may not look into."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_runtime_ref.session_state import load, merge, save
from tests.constraining import finding

# Root may read anything unless it gives that up.
_AS_ANYBODY = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")
pytestmark = pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root, and setpriv is not installed"
)
FORGET = "forget --subject local-user --tenant local --principal dpo --store memory:".split()
COMMANDS = [
    ["session", "show", "thread-1"],
    ["session", "clear", "thread-1"],
    ["run", "hello", "--tenant", "local", "--session", "thread-1"],
    [*FORGET, "--dry-run"],
    FORGET,
    ["preferences", "export"],
]
# One process for all of them: each would have to be started without the right.
_SCRIPT = """
import contextlib, io, json, sys
from agent_runtime_ref.cli.app import main_with
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main_with(words)
    print(json.dumps([code, err.getvalue()]))
"""


@pytest.fixture(params=["", "*", "*/*"], ids=["all", "user", "thread"])
def closed(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that holds a thread and is closed, on one of its levels."""
    folder = tmp_path / "sessions"
    monkeypatch.setenv("AGENT_RUNTIME_SESSIONS", str(folder))
    monkeypatch.setenv("AGENT_RUNTIME_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AGENT_RUNTIME_STORE", raising=False)
    save(merge(load("thread-1"), [finding("plastic")]), "thread-1")
    (one,) = folder.glob(request.param) if request.param else [folder]
    one.chmod(0)
    yield one
    one.chmod(0o700)


def test_every_command_says_where_and_what_to_do(closed: Path) -> None:
    """It ends in 2: the place is at fault, and what could not be looked at is never taken for empty."""
    before = _AS_ANYBODY if os.geteuid() == 0 else ()
    # What writes opens a thread's own folder again: it is its owner.
    commands = COMMANDS if len(closed.parent.name) != 32 else [COMMANDS[at] for at in (0, 3, 5)]
    command = [*before, sys.executable, "-c", _SCRIPT, json.dumps(commands)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)

    told = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [code for code, _ in told] == [2] * len(commands)
    for _, err in told:
        assert f"session state: `{closed}" in err
        assert "permission denied; have its owner let you read and write there" in err
