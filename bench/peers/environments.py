"""An environment for each peer, in the user's cache: none of their packages touches the project's own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.cache import cache_folder
from bench.ratios import Took

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer: what is installed, and the script that speaks for it."""

    name: str
    packages: tuple[str, ...]
    script: str
    loads_extensions: bool = False  # needs an interpreter whose sqlite3 can


PEERS = (
    Peer(
        "langgraph SqliteStore",
        ("langgraph==1.2.24", "langgraph-checkpoint-sqlite==3.1.2"),
        script="langgraph_store.py",
        loads_extensions=True,
    ),
    Peer("mem0 (qdrant, local)", ("mem0ai==2.2.1", "qdrant-client==1.20.0"), script="mem0_store.py"),
)
_NAMES = ("python3", "/usr/bin/python3", "python3.14", "python3.13", "python3.12", "python3.11")
_LOADS_EXTENSIONS = "import sqlite3, sys; sys.exit(not hasattr(sqlite3.Connection, 'enable_load_extension'))"


class PeerProcess:
    """A peer at work: it takes one JSON line a request and answers with one, its own time among it."""

    def __init__(self, peer: Peer, folder: Path) -> None:
        folder.mkdir()
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "MEM0_TELEMETRY": "False"}
        self._process = subprocess.Popen(
            [str(_environment(peer)), str(_HERE / peer.script), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def took(self, request: dict[str, Any]) -> Took:
        """Put one request to the peer, and return what it says it took for its own part.

        Raises:
            SystemExit: the peer is gone.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit("a peer ended before its time; what it said stands above")
        return Took(**json.loads(answer))

    def close(self) -> None:
        """End the peer."""
        self._process.kill()
        self._process.communicate()


def _environment(peer: Peer) -> Path:
    """Return the interpreter of the peer's environment, made where there is none with these packages."""
    folder = cache_folder() / "peers" / peer.script.removesuffix(".py")
    python, installed = folder / "bin" / "python", folder / "installed"
    wanted = "\n".join(peer.packages)
    if installed.exists() and installed.read_text() == wanted:
        return python
    print(f"installing {', '.join(peer.packages)}", file=sys.stderr, flush=True)
    subprocess.run([_interpreter(peer), "-m", "venv", "--clear", str(folder)], check=True)
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
    subprocess.run([str(python), "-m", "pip", "install", *quiet, *peer.packages], check=True)
    installed.write_text(wanted)
    return python


def _interpreter(peer: Peer) -> str:
    """Return an interpreter that the peer can work with.

    Raises:
        SystemExit: there is none.
    """
    if not peer.loads_extensions:
        return sys.executable
    for name in (sys.executable, *_NAMES):
        found = shutil.which(name)
        if found and not subprocess.run([found, "-c", _LOADS_EXTENSIONS], check=False).returncode:
            return found
    raise SystemExit(
        f"{peer.name} needs a Python whose sqlite3 loads extensions, as Debian's does; none found"
    )
