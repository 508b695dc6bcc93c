"""A real Chromium without a window, spoken to over a pipe in its own protocol; no server is needed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_READ_BYTES = 1 << 16


def find_browser() -> str | None:
    """Return the path of a Chromium; None where this machine has none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One tab of a headless Chromium; what it asks the network for is noted."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._number = 0
        self._held = b""
        self.requests: list[str] = []
        self.problems: list[str] = []  # what the console says: errors, and what the page's policy refuses

    def __enter__(self) -> Browser:
        """Start it, with a profile that goes with it."""
        self._profile = tempfile.mkdtemp(prefix="browser-")
        told, self._tell = os.pipe()
        self._hear, heard = os.pipe()
        self._process = subprocess.Popen(
            [
                "bash", "-c", 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"', "browser", str(told), str(heard),
                self._program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--disable-background-networking", "--disable-component-update", "--no-first-run",
                "--hide-scrollbars", f"--user-data-dir={self._profile}", "--remote-debugging-pipe",
                "about:blank",
            ],
            pass_fds=(told, heard),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self._profile, "TMPDIR": self._profile},
        )  # fmt: skip
        os.close(told)
        os.close(heard)
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(one["targetId"] for one in targets if one["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.page(f"{domain}.enable")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it and remove its profile."""
        try:
            self.call("Browser.close")
            self._process.wait(timeout=20)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait(timeout=20)
        finally:
            os.close(self._tell)
            os.close(self._hear)
            shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method: str, **parameters: Any) -> Any:
        """Return the result of a command to the browser."""
        return self._send({"method": method, "params": parameters})

    def page(self, method: str, **parameters: Any) -> Any:
        """Return the result of a command to the tab."""
        return self._send({"method": method, "params": parameters, "sessionId": self._session})

    def size(self, width: int, height: int) -> None:
        """Give the tab a size in CSS pixels."""
        self.page(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def prefer(self, scheme: str, *, media: str = "screen") -> None:
        """Prefer a light or dark scheme, on a screen or on paper."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.page("Emulation.setEmulatedMedia", media=media, features=features)

    def open(self, file: Path) -> None:
        """Open a file and wait until it is loaded."""
        self.requests.clear()
        self.problems.clear()
        self.page("Page.navigate", url=file.resolve().as_uri())
        self._until(lambda message: message.get("method") == "Page.loadEventFired")

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        answer = self.page("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def screenshot(self, *, clip: dict[str, float] | None = None) -> str:
        """Return a PNG in base64 of the window, or of a part of the page."""
        options = {} if clip is None else {"clip": {**clip, "scale": 1}, "captureBeyondViewport": True}
        return str(self.page("Page.captureScreenshot", **options)["data"])

    def _send(self, message: dict[str, Any]) -> Any:
        self._number += 1
        number = self._number
        os.write(self._tell, json.dumps({"id": number, **message}).encode() + b"\0")
        answer = self._until(lambda one: one.get("id") == number)
        assert "error" not in answer, (message["method"], answer["error"])
        return answer["result"]

    def _until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            while b"\0" not in self._held:
                block = os.read(self._hear, _READ_BYTES)
                assert block, "the browser ended"
                self._held += block
            raw, _, self._held = self._held.partition(b"\0")
            message: dict[str, Any] = json.loads(raw)
            self._note(message)
            if wanted(message):
                return message

    def _note(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif message.get("method") == "Log.entryAdded":
            self.problems.append(parameters["entry"]["text"])
        elif message.get("method") == "Runtime.exceptionThrown":
            self.problems.append(parameters["exceptionDetails"]["text"])
