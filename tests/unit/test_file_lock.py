"""A file that writers take turns at."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from agent_runtime_ref.file_lock import locked


class ToldError(Exception):
    """What the tests make of an error."""


def _told(error: OSError) -> ToldError:
    return ToldError(error.strerror)


def test_makes_the_file_for_its_owner_alone(tmp_path: Path) -> None:
    """A file that was not there is made with mode 0600, and its folder where that is asked for."""
    path = tmp_path / "folder" / "file"
    with locked(path, failed=_told, makes_folder=True) as descriptor:
        os.write(descriptor, b"line\n")

    assert path.read_bytes() == b"line\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    """Without `makes_folder` an error of the system is what the caller makes of it."""
    with pytest.raises(ToldError, match="No such file"), locked(tmp_path / "none" / "file", failed=_told):
        pass


def test_a_device_is_refused() -> None:
    """What keeps nothing is no file to take turns at."""
    with pytest.raises(ToldError, match="a pipe or a device"), locked(Path(os.devnull), failed=_told):
        pass


def test_whoever_waited_gets_the_file_that_has_the_name_now(tmp_path: Path) -> None:
    """A file that was replaced while somebody waited for its lock is not written into any more."""
    path, began = tmp_path / "file", threading.Event()

    def append() -> None:
        began.set()
        with locked(path, failed=_told) as descriptor:
            os.write(descriptor, b"second\n")

    waiting = threading.Thread(target=append)
    with locked(path, failed=_told) as descriptor:
        waiting.start()
        began.wait()
        os.write(descriptor, b"first\n")
        path.rename(tmp_path / "closed")
    waiting.join()

    assert (tmp_path / "closed").read_bytes() == b"first\n"
    assert path.read_bytes() == b"second\n"
