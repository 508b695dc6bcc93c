"""`python -m agent_runtime_ref` and the console script `agent-runtime-ref`."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

from agent_runtime_ref.cli.app import main_with

__all__ = ["main", "run"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 refused, 2 usage or input, 3 internal."""
    return main_with(sys.argv[1:] if argv is None else argv)


def run() -> None:
    """Run the command that the process was started with, and end the process."""
    # A command lives for a moment; looking for garbage while modules are imported is a tenth of that.
    gc.set_threshold(100_000)
    sys.exit(main())


if __name__ == "__main__":
    run()
