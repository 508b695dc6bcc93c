"""A store's address: nothing that could be a password is repeated, and it leads to a file or is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_runtime_ref.__main__ import main
from agent_runtime_ref.errors import StoreAddressError, StoreError
from agent_runtime_ref.preferences import PreferenceStore
from agent_runtime_ref.store_address import shown
from agent_runtime_ref.stores.document import DocumentStore
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.telemetry.logfile import Rotation

MISTYPED = [
    "postgres://u:secret@h/db",
    "Postgresql://u:secret@h/db",
    "REDIS://:secret@h/0",
    "valkey://u:secret@h",
    "postgresql+psycopg://u:secret@h/db",
    "postgres:u:secret@h/db",
    "sqlite://u:secret@h/x",
    "file://u:secret@h/x",
    "jsonl://u:secret@h/x",
    "memory://u:secret@h/x",
    "u:secret@h://x",
]


@pytest.mark.parametrize("address", MISTYPED)
def test_a_mistyped_address_is_refused_without_its_password(address: str) -> None:
    """Of an address that may be a server's the scheme alone is told."""
    for rotation in (None, Rotation(max_bytes=1)):
        with pytest.raises(StoreError) as raised:
            open_store(address, rotation=rotation)
        assert "secret" not in str(raised.value)
        assert f"`{address.partition(':')[0]}:`" in str(raised.value)


@pytest.mark.parametrize("address", MISTYPED)
@pytest.mark.parametrize("command", ["inspect-memory", "migrate", "preferences"])
def test_no_command_prints_it(
    address: str, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither where an option nor where a variable names the store."""
    monkeypatch.setenv("AGENT_RUNTIME_PREFERENCES", address)
    arguments = {"preferences": ["preferences", "list"]}.get(command, [command, "--store", address])

    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert "secret" not in printed.out + printed.err


def test_a_store_of_preferences_tells_no_password() -> None:
    """Its address stands in what the commands print."""
    assert PreferenceStore("redis://u:secret@h/0").address == "redis:"


def test_the_path_of_a_file_is_shown(tmp_path: Path) -> None:
    """It is what somebody has to mend, whatever characters are in it."""
    for scheme in ("sqlite", "jsonl", "file", "seeds"):
        assert shown(f"{scheme}:{tmp_path}/a@b.db") == f"{scheme}:{tmp_path}/a@b.db"
    assert shown("nowhere") == "nowhere"
    assert shown("se/cret@h") == "..."


@pytest.mark.parametrize("scheme", ["sqlite", "jsonl", "file"])
def test_what_is_no_file_is_left_as_it_is(tmp_path: Path, scheme: str) -> None:
    """A pipe, a link to one and a circle of links are refused, and nothing is made beside them."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "circle").symlink_to("circle")
    for name in ("pipe", "link", "circle"):
        with pytest.raises(StoreAddressError):
            open_store(f"{scheme}:{tmp_path / name}")

    assert (tmp_path / "pipe").is_fifo()
    assert {one.name for one in tmp_path.iterdir()} == {"pipe", "link", "circle"}


def test_a_store_whose_file_became_a_pipe_is_not_put_in_its_place(tmp_path: Path) -> None:
    """Neither by one that is open nor by one that is opened without its address."""
    path = tmp_path / "one.json"
    store = open_store(f"file:{path}")
    path.unlink()
    os.mkfifo(path)
    for action in (store.forgets, lambda: DocumentStore(path)):
        with pytest.raises(StoreError, match="no file"):
            action()

    assert path.is_fifo()
