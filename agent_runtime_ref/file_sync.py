"""Bytes and names that are on disk when a call returns: what a file needs beside `os.fsync`."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["sync_folder", "write_all"]


def sync_folder(folder: Path) -> None:
    """Wait until a new name is on disk; some file systems cannot be asked, and keep names in order."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Write `data` as a whole; a full disk takes a part of it, and says so only when it is asked again.

    Raises:
        OSError: some of it was not written.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
