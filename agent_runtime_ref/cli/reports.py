"""Reports that go to a file or to standard output, as `-o` says."""

from __future__ import annotations

from pathlib import Path

from agent_runtime_ref.cli.output import write
from agent_runtime_ref.errors import UsageError

STDOUT = "-"


def print_report(name: str | None, text: str) -> None:
    """Write a report to the file called `name`; to standard output where there is none or it is `-`.

    Raises:
        UsageError: the file cannot be written.
    """
    if name in (None, STDOUT):
        write(text)
        return
    try:
        Path(str(name)).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        reason = (error.strerror or "it cannot be opened").lower()
        raise UsageError(f"report not written to `{name}`: {reason}; name another file") from error
