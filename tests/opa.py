"""A real OPA server on loopback, for tests of what only a real one shows.

The binary is that of AGENT_RUNTIME_OPA, the one in the cache, or `opa` on PATH, at least 1.21.3; where there
is none, `.ci/opa build` makes one, once, with the Go toolchain. Without either the tests are skipped with
that reason, and in CI (`CI=true`) they fail.
"""

from __future__ import annotations

import http.client
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest

OLDEST = (1, 21, 3)
START_SECONDS = 60.0
_BUILD_SECONDS = 900.0
_CHECKOUT = Path(os.environ.get("AGENT_RUNTIME_CHECKOUT") or Path(__file__).resolve().parents[1])
_REQUESTS = re.compile(
    r'^http_request_duration_seconds_count\{code="\d+",handler="(?P<handler>[^"]+)",'
    r'method="(?P<method>\w+)"\} (?P<count>\S+)$',
    re.MULTILINE,
)


class NoOpaError(Exception):
    """There is no OPA to test with; the text says why."""


@cache
def opa_binary() -> Path:
    """Return a binary that is recent enough, building it if need be.

    Raises:
        NoOpaError: there is none.
    """
    found = _found()
    told = subprocess.run([found, "version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"^Version: (\d+)\.(\d+)\.(\d+)", told, re.MULTILINE)
    if version is None or tuple(map(int, version.groups())) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise NoOpaError(f"{found} is {told.splitlines()[0]!r}; {oldest} is the oldest that will do")
    return found


def _found() -> Path:
    named = os.environ.get("AGENT_RUNTIME_OPA")
    if named:
        return Path(named)
    tool = _CHECKOUT / ".ci" / "opa"
    if tool.is_file():
        answer = subprocess.run([tool, "find"], capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            return Path(answer.stdout.strip())
    on_path = shutil.which("opa")
    if on_path:
        return Path(on_path)
    if not tool.is_file() or shutil.which("go") is None:
        raise NoOpaError("no opa binary, and no Go toolchain to build one with (.ci/opa build)")
    built = subprocess.run(
        [tool, "build"], capture_output=True, text=True, check=False, timeout=_BUILD_SECONDS
    )
    if built.returncode != 0:
        raise NoOpaError(f"opa could not be built: {built.stderr.strip()[-300:]}")
    return Path(built.stdout.strip())


def require_opa() -> Path:
    """Return the binary, or skip the test; in CI, fail it."""
    try:
        return opa_binary()
    except NoOpaError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"in CI the tests with a real OPA must run: {error}")
        pytest.skip(str(error))


class OpaProcess:
    """A server of ours; a context manager that ends it. It may be killed and started again at its address."""

    def __init__(self, *arguments: str | Path, scheme: str = "http", ready: str = "/health?bundles") -> None:
        self._arguments: Sequence[str | Path] = arguments
        self._scheme = scheme
        self._ready = ready
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def of(cls, policies: Path) -> OpaProcess:
        """Return a server, not yet started, that decides by the bundle at `policies`."""
        return cls("--bundle", policies)

    @property
    def url(self) -> str:
        """Its address."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    @property
    def engine(self) -> str:
        """The engine that asks it."""
        return f"opa:{self.url}"

    def start(self) -> None:
        """Start it, and return when it has its policies."""
        assert self._process is None
        command = [
            opa_binary(), "run", "--server", "--addr", f"127.0.0.1:{self.port}", "--log-level", "error",
            "--skip-version-check", "--shutdown-grace-period", "1", *self._arguments,
        ]  # fmt: skip
        with TemporaryFile() as said:
            self._process = subprocess.Popen(command, stdout=said, stderr=said)
            end = time.monotonic() + START_SECONDS
            while not self._is_ready():
                if self._process.poll() is not None or time.monotonic() > end:
                    self.kill()
                    said.seek(0)
                    raise RuntimeError(f"opa did not start: {said.read(2_000).decode(errors='replace')}")
                time.sleep(0.05)

    def bundle_is(self, policies: Path) -> None:
        """Let the next start decide by another bundle."""
        self._arguments = ("--bundle", policies)

    def kill(self) -> None:
        """End it at once, in the middle of whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def requests(self) -> dict[tuple[str, str], int]:
        """Return how many requests it has answered, by handler and method."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        finally:
            connection.close()
        counts: dict[tuple[str, str], int] = {}
        for match in _REQUESTS.finditer(text):
            key = match["handler"], match["method"]
            counts[key] = counts.get(key, 0) + int(float(match["count"]))
        return counts

    def _is_ready(self) -> bool:
        if self._scheme == "https":
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
            return False
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", self._ready)
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def __enter__(self) -> OpaProcess:
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.kill()


def free_port() -> int:
    """Return a port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
