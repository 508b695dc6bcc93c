"""The log that a command reads and decides nothing about: opened without policies and engine."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from agent_runtime_ref.cli.options import is_volatile, require_store_file, settings_of
from agent_runtime_ref.errors import UsageError

if TYPE_CHECKING:
    from agent_runtime_ref.runtime import LogReader


def opened_log(args: argparse.Namespace) -> tuple[LogReader, Path | None]:
    """Return the log of a store or in a file, to be closed, and the file that it lies in; None where in none.

    Raises:
        UsageError: none is named that outlives a command, or there is none.
    """
    from agent_runtime_ref.runtime import LogReader

    settings = settings_of(args)
    if args.store is not None and args.log is not None:
        raise UsageError("a log is in a store or in a file: name --store or --log, not both")
    if args.store is None and settings.log is not None:
        path = Path(settings.log)
        if not path.absolute().parent.is_dir():
            raise UsageError(f"log `{path}` cannot be read: there is no folder `{path.absolute().parent}`")
        return LogReader.of_file(path), path
    if is_volatile(settings.store):
        raise UsageError("no log is named that outlives a command: name --log FILE, or --store sqlite:FILE")
    require_store_file(settings.store)
    scheme, _, name = settings.store.partition(":")
    return LogReader.of_store(settings.store), Path(name) if scheme in ("sqlite", "jsonl", "file") else None
