"""What a command costs before it does anything, against an interpreter that does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.ratios import interleaved
from bench.report import Line, Measured, Times

HELP_BOUND = 8.0
INSPECT_BOUND = 20.0
_NOTHING = "python -c pass"
_SCRIPT = Path(sys.executable).with_name("agent-runtime-ref")
# Without an installation the module is the same command.
_COMMAND = [str(_SCRIPT)] if _SCRIPT.exists() else [sys.executable, "-m", "agent_runtime_ref"]


def measure(*, rounds: int) -> Measured:
    """Start the command `rounds` times each way."""
    with TemporaryDirectory() as home:
        # Installed packages come with their bytecode; the warm-up makes it here, whatever the caller set.
        environment = {**os.environ, "AGENT_RUNTIME_HOME": home, "PYTHONPYCACHEPREFIX": home}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        contenders: dict[str, Callable[[int], object]] = {
            _NOTHING: lambda _: _run([sys.executable, "-c", "pass"], environment),
            "--help": lambda _: _run([*_COMMAND, "--help"], environment),
            "inspect-memory": lambda _: _run([*_COMMAND, "inspect-memory"], environment),
        }
        timings = interleaved(contenders, range(rounds), seed="startup", warm_up=2)
    lines = [
        Line(
            "agent-runtime-ref --help / python -c pass", timings.ratio("--help", _NOTHING).rounds, HELP_BOUND
        ),
        Line(
            "agent-runtime-ref inspect-memory of the seeds / python -c pass",
            timings.ratio("inspect-memory", _NOTHING).rounds,
            INSPECT_BOUND,
        ),
    ]
    return Measured(lines, [Times(f"start: {name}", found) for name, found in timings.wall.items()])


def _run(command: list[str], environment: dict[str, str]) -> None:
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
