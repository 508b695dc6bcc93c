"""Real collectors on loopback: the OpenTelemetry Collector, and rotel from a wheel.

The first is that of AGENT_RUNTIME_OTELCOL or the one in the cache; where there is none, `.ci/otelcol build`
makes one, once, with the Go toolchain. The second comes with the development packages of Linux. Without
either the tests are skipped with that reason, and in CI (`CI=true`) they fail.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.opa import free_port
from tests.otlp_receiver import Receiver, records_of

START_SECONDS = 30.0
_BUILD_SECONDS = 900.0
_CHECKOUT = Path(os.environ.get("AGENT_RUNTIME_CHECKOUT") or Path(__file__).resolve().parents[1])


class NoCollectorError(Exception):
    """There is no collector to test with; the text says why."""


@cache
def otelcol_binary() -> Path:
    """Return the OpenTelemetry Collector, building it if need be.

    Raises:
        NoCollectorError: there is none.
    """
    tool = _CHECKOUT / ".ci" / "otelcol"
    if not tool.is_file():
        raise NoCollectorError("no .ci/otelcol, which finds or builds the OpenTelemetry Collector")
    for step, seconds in (("find", 60.0), ("build", _BUILD_SECONDS)):
        if step == "build" and shutil.which("go") is None:
            raise NoCollectorError("no OpenTelemetry Collector, and no Go toolchain to build one with")
        answer = subprocess.run([tool, step], capture_output=True, text=True, check=False, timeout=seconds)
        if answer.returncode == 0:
            return Path(answer.stdout.strip())
    raise NoCollectorError(f"the OpenTelemetry Collector was not built: {answer.stderr.strip()[-300:]}")


@cache
def rotel_binary() -> Path:
    """Return rotel's agent.

    Raises:
        NoCollectorError: it is not installed, or does not start on this machine.
    """
    spec = find_spec("rotel")
    if spec is None or spec.origin is None:
        raise NoCollectorError("rotel is not installed: it has no wheel for this Python or platform")
    agent = Path(spec.origin).parent / "rotel-agent"
    told = subprocess.run([agent, "--help"], capture_output=True, text=True, check=False, env={})
    if told.returncode != 0:
        raise NoCollectorError(f"rotel does not start here: {told.stderr.strip()[-200:]}")
    return agent


class Collector:
    """A collector of ours; a context manager that ends it. It may be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.output = folder / "collected.jsonl"  # OTLP/JSON, a request a line
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address for OTLP/HTTP."""
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str | Path]:
        """How it is started."""
        raise NotImplementedError

    def start(self) -> None:
        """Start it, and return when it listens."""
        assert self._process is None
        said = self.folder / "collector.log"
        with said.open("ab") as log:
            self._process = subprocess.Popen(self.command(), stdout=log, stderr=log, env={})
        end = time.monotonic() + START_SECONDS
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > end:
                self.kill()
                raise RuntimeError(f"the collector did not start: {said.read_text()[-2_000:]}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Ask it to end, and wait until what it took is written."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(timeout=30)
            self._process = None

    def kill(self) -> None:
        """End it at once, in the middle of whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def records(self) -> list[dict[str, Any]]:
        """Return the log records that it has written, in the order in which they came."""
        text = self.output.read_text(encoding="utf-8") if self.output.exists() else ""
        return records_of([line for line in text.splitlines(keepends=True) if line.endswith("\n")])

    def _listens(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False

    def __enter__(self) -> Collector:
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.kill()


class Otelcol(Collector):
    """The OpenTelemetry Collector with its file exporter."""

    def command(self) -> list[str | Path]:
        """How it is started."""
        http = {"endpoint": f"127.0.0.1:{self.port}"}
        spans = str(self.folder / "spans.jsonl")
        config = self.folder / "otelcol.json"
        config.write_text(
            json.dumps(
                {
                    "receivers": {"otlp": {"protocols": {"http": http}}},
                    "exporters": {
                        "file": {"path": str(self.output), "append": True},
                        "file/spans": {"path": spans, "append": True},
                    },
                    "service": {
                        "telemetry": {"metrics": {"level": "none"}},
                        "pipelines": {
                            "logs": {"receivers": ["otlp"], "exporters": ["file"]},
                            "traces": {"receivers": ["otlp"], "exporters": ["file/spans"]},
                        },
                    },
                }
            )
        )
        return [otelcol_binary(), "--config", config]


class Rotel(Collector):
    """Rotel, which hands on what it gets to a receiver of ours, and that one writes it down."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._behind = Receiver()

    def command(self) -> list[str | Path]:
        """How it is started."""
        return [
            rotel_binary(), "start", "--exporter", "otlp", "--otlp-exporter-protocol", "http",
            "--otlp-exporter-endpoint", self._behind.url, "--disable-batching",
            "--otlp-http-endpoint", f"127.0.0.1:{self.port}",
            "--otlp-grpc-endpoint", f"127.0.0.1:{free_port()}",
            "--pid-file", self.folder / "rotel.pid", "--log-file", self.folder / "rotel.log",
        ]  # fmt: skip

    def records(self) -> list[dict[str, Any]]:
        """Return the log records that came through, in the order in which they came."""
        lines = list(self._behind.lines)
        self.output.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return records_of(lines)

    def __enter__(self) -> Collector:
        self._behind.__enter__()
        return super().__enter__()

    def __exit__(self, *unused: Any) -> None:
        super().__exit__(*unused)
        self._behind.__exit__(*unused)


def a_collector(folder: Path) -> Collector:
    """Return a collector, not yet started: the first kind that there is; skip the test without one.

    In CI there must be one.
    """
    problems = []
    for binary, kind in ((otelcol_binary, Otelcol), (rotel_binary, Rotel)):
        try:
            binary()
            return kind(folder)
        except NoCollectorError as error:
            problems.append(str(error))
    reason = "; ".join(problems)
    if os.environ.get("CI") == "true":
        pytest.fail(f"in CI the tests with a real collector must run: {reason}")
    pytest.skip(reason)
