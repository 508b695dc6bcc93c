"""Servers of a test run end with it, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.postgres import require_postgres
from tests.redis_server import require_redis

CHECKOUT = Path(__file__).resolve().parents[2]
RUN = """
import sys, time
from tests.postgres import PostgresProcess
from tests.redis_server import RedisProcess
server = {"redis": RedisProcess, "postgres": PostgresProcess}[sys.argv[1]]()
server.start()
print(server._process.pid, server._folder, flush=True)
time.sleep(60)
"""
WAIT_SECONDS = 20.0


def is_there(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be noticed does not."""
    try:
        os.kill(pid, 0)
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return not Path("/proc/self").exists()


@pytest.mark.parametrize(
    ("kind", "how"),
    [("redis", signal.SIGTERM), ("redis", signal.SIGKILL), ("postgres", signal.SIGTERM)],
)
def test_a_server_ends_with_the_run_that_was_ended(kind: str, how: signal.Signals, tmp_path: Path) -> None:
    """Terminated or killed, a run leaves neither its server nor the folder."""
    (require_redis if kind == "redis" else require_postgres)()
    run = subprocess.Popen(
        [sys.executable, "-c", RUN, kind], stdout=subprocess.PIPE, text=True, cwd=CHECKOUT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert run.stdout is not None
    with run.stdout:
        pid_text, folder = run.stdout.readline().split()
    pid = int(pid_text)
    assert is_there(pid)
    assert Path(folder).is_dir()
    run.send_signal(how)
    run.wait()

    deadline = time.monotonic() + WAIT_SECONDS
    while (is_there(pid) or Path(folder).exists()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_there(pid)
    assert not Path(folder).exists()
