"""Reports that go to a file or to standard output, as `-o` says."""

from __future__ import annotations

import os
from pathlib import Path

from agent_runtime_ref.cli.output import write
from agent_runtime_ref.errors import UsageError

STDOUT = "-"


def require_target(name: str | None) -> None:
    """Return if a report can be written where it is to go; asked before the work that the report is about.

    Raises:
        UsageError: it cannot.
    """
    if name is None or name == STDOUT:
        return
    path = Path(name)
    reason = None
    if not name or "\0" in name:
        reason = "that is no name of a file"
    elif path.is_dir():
        reason = "it is a folder"
    elif not path.absolute().parent.is_dir():
        reason = "its folder is not there"
    elif not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        reason = "this user may not write there"
    if reason is not None:
        raise UsageError(f"report not written to `{name}`: {reason}; name another file")


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
