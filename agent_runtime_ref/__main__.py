"""`python -m agent_runtime_ref` and the console script `agent-runtime-ref`."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from agent_runtime_ref.cli.app import main_with

__all__ = ["main", "run"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 refused, 2 usage or input, 3 internal."""
    return main_with(sys.argv[1:] if argv is None else argv)


def run() -> NoReturn:
    """Run the command that the process was started with, and end the process."""
    # A command lives for a moment; looking for garbage while modules are imported would be in vain.
    gc.set_threshold(100_000)
    _end(main())


def _end(code: int) -> NoReturn:
    """End the process without taking every module and class apart, which is a tenth of a short command.

    What others registered for the end (a telemetry SDK that still has to send) is done first.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or never there
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
