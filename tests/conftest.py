"""What holds for every test: no settings of the machine, no network, no file left behind."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis.configuration
import pytest

from tests import guard
from tests.postgres import _shared_database, database, postgres
from tests.redis_server import _redis_of_the_run, durable_redis, redis_server

# Fixtures of any test that asks for them.
__all__ = [
    "_redis_of_the_run",
    "_shared_database",
    "database",
    "durable_redis",
    "postgres",
    "redis_server",
]

# How `make test-wheel` and .ci/run tell tests about tools; a test may rely on them, the package reads none.
TOOL_VARIABLES = frozenset(
    {"AGENT_RUNTIME_WHEEL", "AGENT_RUNTIME_CHECKOUT", "AGENT_RUNTIME_OPA", "AGENT_RUNTIME_OTELCOL"}
)
SETTING_PREFIXES = ("AGENT_RUNTIME_", "WORKBUDDY_", "OTEL_")
LOOPBACK_NAMES = frozenset({"localhost", "::1"})

# Hypothesis keeps tables of its own; they go where the run ends, not into the checkout.
HYPOTHESIS_FOLDER = Path(tempfile.mkdtemp(prefix="agent-runtime-hypothesis-"))
hypothesis.configuration.set_hypothesis_home_dir(HYPOTHESIS_FOLDER)
# No deadline: on a machine shared with other work it fails tests that are right.
hypothesis.settings.register_profile("local", database=None, deadline=None)
hypothesis.settings.register_profile("ci", database=None, deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") == "true" else "local")


def pytest_unconfigure() -> None:
    """Remove what Hypothesis kept during the run, and let the guard of servers go."""
    guard.close()
    shutil.rmtree(HYPOTHESIS_FOLDER, ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests of the installed wheel out of a run that has none; a skip would count as a gap."""
    if "AGENT_RUNTIME_WHEEL" in os.environ:
        return
    left_out = [item for item in items if item.get_closest_marker("wheel")]
    if left_out:
        items[:] = [item for item in items if not item.get_closest_marker("wheel")]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session", autouse=True)
def only_loopback() -> Iterator[None]:
    """Refuse every name but this machine's, before a question or a packet leaves."""
    connect, connect_ex, getaddrinfo = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def guarded(original: Callable[[socket.socket, Any], Any]) -> Callable[[socket.socket, Any], Any]:
        def checked(self: socket.socket, address: Any) -> Any:
            if self.family in (socket.AF_INET, socket.AF_INET6):
                _refuse_unless_loopback(address[0])
            return original(self, address)

        return checked

    def lookup(host: Any, *arguments: Any, **options: Any) -> Any:
        _refuse_unless_loopback(host)
        return getaddrinfo(host, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded(connect))
        patch.setattr(socket.socket, "connect_ex", guarded(connect_ex))
        patch.setattr(socket, "getaddrinfo", lookup)
        yield


def _refuse_unless_loopback(host: object) -> None:
    """Fail the test that names another machine."""
    name = host.decode() if isinstance(host, bytes) else str(host or "localhost")
    if name not in LOOPBACK_NAMES and not name.startswith("127."):
        raise AssertionError(f"a test tried to reach {name}; tests talk to this machine only")


@pytest.fixture(scope="session", autouse=True)
def machine_settings_hidden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Take the settings of whoever runs the tests away, and give them a home of their own."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(SETTING_PREFIXES) and name not in TOOL_VARIABLES:
                patch.delenv(name)
        for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "COLUMNS", "PYTHONOPTIMIZE"):
            patch.delenv(name, raising=False)
        patch.setenv("AGENT_RUNTIME_HOME", str(home))
        yield home
