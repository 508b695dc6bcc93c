"""Ends servers of a test run that could not end them itself: it was terminated, or killed.

A process of its own reads which servers run and which folders they have. When the run is gone, for whatever
reason, its end of the pipe closes; whatever is still named then is ended and removed.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

_PROGRAM = """
import os, shutil, signal, sys, time
left = {}
for line in sys.stdin:
    word, pid, how, folder = line.rstrip("\\n").split(" ", 3)
    if word == "watch":
        left[int(pid)] = int(how), folder
    else:
        left.pop(int(pid), None)

def is_there(pid):
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as stat:  # one that has ended may wait for ever to be noticed
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return not os.path.exists("/proc/self")
    except OSError:
        return False

for pid, (how, _) in left.items():
    if is_there(pid):
        os.kill(pid, how)
    deadline = time.monotonic() + 5
    while is_there(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    if is_there(pid):
        os.kill(pid, signal.SIGKILL)
for _, folder in left.values():
    shutil.rmtree(folder, ignore_errors=True)
"""


@cache
def _pipe() -> subprocess.Popen[str]:
    # In a session of its own: what ends the run by its terminal or its group must not end this first.
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _PROGRAM],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
        cwd="/", start_new_session=True,
    )  # fmt: skip


def _say(word: str, pid: int, how: int, folder: Path) -> None:
    pipe = _pipe().stdin
    assert pipe is not None
    pipe.write(f"{word} {pid} {int(how)} {folder}\n")
    pipe.flush()


def watch(pid: int, folder: Path, *, how: int) -> None:
    """End this server by the signal `how`, and remove its folder, should the run be gone before it does."""
    _say("watch", pid, how, folder)


def forget(pid: int, folder: Path) -> None:
    """The server has ended."""
    _say("forget", pid, 0, folder)


def close() -> None:
    """End the guard, which has nothing left to do; without it a run leaves a process until it has ended."""
    if _pipe.cache_info().currsize:
        _pipe().communicate()
        _pipe.cache_clear()
