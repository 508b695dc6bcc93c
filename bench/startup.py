"""What a command costs before it does anything, against an interpreter that does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.ratios import interleaved, ratio
from bench.report import Line, Measured, Times

HELP_BOUND = 8.0
INSPECT_BOUND = 20.0
_COMMAND = Path(sys.executable).with_name("agent-runtime-ref")


def measure(*, rounds: int) -> Measured:
    """Start the command `rounds` times each way."""
    with TemporaryDirectory() as home:
        environment = {**os.environ, "AGENT_RUNTIME_HOME": home, "NO_COLOR": "1"}
        contenders: dict[str, Callable[[int], object]] = {
            "python -c pass": lambda _: _run([sys.executable, "-c", "pass"], environment),
            "--help": lambda _: _run([str(_COMMAND), "--help"], environment),
            "inspect-memory": lambda _: _run([str(_COMMAND), "inspect-memory"], environment),
        }
        timings = interleaved(contenders, range(rounds), seed="startup", warm_up=2)
    nothing = timings["python -c pass"]
    lines = [
        Line(
            "agent-runtime-ref --help / python -c pass", ratio(timings["--help"], nothing).rounds, HELP_BOUND
        ),
        Line(
            "agent-runtime-ref inspect-memory of the seeds / python -c pass",
            ratio(timings["inspect-memory"], nothing).rounds,
            INSPECT_BOUND,
        ),
    ]
    return Measured(lines, [Times(f"start: {name}", found) for name, found in timings.items()])


def _run(command: list[str], environment: dict[str, str]) -> None:
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
