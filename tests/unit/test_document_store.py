"""The store in one JSON file: what a process leaves that ends in the middle, damage, and who owns it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref.errors import StoreDamagedError, StoreForeignError, StoreVersionError
from agent_runtime_ref.stores.base import Change, WriteBatch
from agent_runtime_ref.stores.document import DocumentStore
from agent_runtime_ref.stores.jsonl import files
from agent_runtime_ref.testing import make_record
from agent_runtime_ref.testing.conformance_base import TENANT


class Ended(BaseException):
    """The process ends here."""


def put(store: DocumentStore, memory_id: str, line: str = "1") -> None:
    """Commit one record with one log line."""
    body = json.dumps({"event_id": f"evt-{line}", "kind": "event", "line": line})
    store.commit(WriteBatch([Change(make_record(memory_id), exclusive=False)], [body]))


def ids(store: DocumentStore) -> set[str]:
    """The records that are there."""
    return {one.memory_id for one in store.fetch(TENANT, ["mem-a", "mem-b", "mem-c"])}


def ends(*_: Any) -> None:
    """End the process."""
    raise Ended


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store is."""
    return tmp_path / "one.json"


def test_a_change_that_was_announced_is_carried_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends between the log and the file leaves what the next one puts in place."""
    put(DocumentStore(path), "mem-a")
    with monkeypatch.context() as patched:
        patched.setattr(files, "put_in_place", ends)
        with pytest.raises(Ended):
            put(DocumentStore(path), "mem-b", "2")

    assert {"mem-a", "mem-b"} == ids(DocumentStore(path))
    assert [path.name, f"{path.name}.lock", f"{path.name}.log"] == sorted(
        one.name for one in path.parent.iterdir()
    )


def test_a_change_that_was_not_announced_never_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends before the log is written leaves nothing."""
    put(DocumentStore(path), "mem-a")
    store = DocumentStore(path)
    monkeypatch.setattr(store._log, "append", ends)
    monkeypatch.setattr(store, "_drop", ends)
    with pytest.raises(Ended):
        put(store, "mem-b", "2")

    assert {"mem-a"} == ids(DocumentStore(path))
    assert not list(path.parent.glob("*.new"))


def test_a_file_that_is_prepared_in_part_is_dropped(path: Path) -> None:
    """Half of a document was announced by nobody."""
    put(DocumentStore(path), "mem-a")
    path.with_name(f"{path.name}.new").write_bytes(path.read_bytes()[:40])

    assert {"mem-a"} == ids(DocumentStore(path))


def test_another_store_that_is_open_sees_the_end_of_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever writes next, in whichever process, goes on from what was announced."""
    mine, other = DocumentStore(path), DocumentStore(path)
    put(mine, "mem-a")
    with monkeypatch.context() as patched:
        patched.setattr(files, "put_in_place", ends)
        with pytest.raises(Ended):
            put(mine, "mem-b", "2")
    put(other, "mem-c", "3")

    assert {"mem-a", "mem-b", "mem-c"} == ids(other) == ids(mine)


@pytest.mark.parametrize(
    "damage",
    [lambda text: text[: len(text) // 2], lambda text: text.replace('"put"', '"putt"'), lambda text: ""],
    ids=["cut", "unknown step", "emptied"],
)
def test_a_damaged_file_is_put_aside_and_reported(
    path: Path, damage: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing of it is lost, an alarm says where it is, and the store goes on empty."""
    store = DocumentStore(path)
    put(store, "mem-a")
    damaged = damage(path.read_text(encoding="utf-8"))
    path.write_text(damaged, encoding="utf-8")
    found = ids(store)
    put(store, "mem-b", "2")

    assert set() == found
    assert {"mem-b"} == ids(DocumentStore(path))
    assert damaged == path.with_name(f"{path.name}.damaged-1").read_text(encoding="utf-8")
    assert "store_put_aside" in capsys.readouterr().err


def test_a_second_damage_loses_nothing_of_the_first(path: Path) -> None:
    """Each damaged file keeps a name of its own."""
    for number in (1, 2):
        DocumentStore(path)
        path.write_text(f"damage {number}", encoding="utf-8")
    DocumentStore(path)

    kept = [path.with_name(f"{path.name}.damaged-{number}") for number in (1, 2)]
    assert [one.read_text(encoding="utf-8") for one in kept] == ["damage 1", "damage 2"]


@pytest.mark.parametrize("text", ["not json", '{"format": "something else"}', "[1]"])
def test_another_programs_file_is_left_as_it_is(path: Path, text: str) -> None:
    """What is no store and never was one is refused, and nothing is made beside it."""
    path.write_text(text, encoding="utf-8")
    with pytest.raises(StoreForeignError):
        DocumentStore(path)

    assert [path] == list(path.parent.iterdir())
    assert text == path.read_text(encoding="utf-8")


def test_a_newer_file_is_left_as_it_is(path: Path) -> None:
    """A version that is not known is refused."""
    DocumentStore(path)
    newer = path.read_text(encoding="utf-8").replace('"version": 1', '"version": 2')
    path.write_text(newer, encoding="utf-8")
    with pytest.raises(StoreVersionError):
        DocumentStore(path)

    assert newer == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("gone", ["one.json", "one.json.log"])
def test_half_of_a_store_is_refused(path: Path, gone: str) -> None:
    """Records that no log tells of, and a log whose records are gone, are damage that a backup repairs."""
    put(DocumentStore(path), "mem-a")
    (path.parent / gone).unlink()
    with pytest.raises(StoreDamagedError):
        DocumentStore(path)


def test_only_its_owner_reads_it(path: Path) -> None:
    """Every file of a store is of mode 0600."""
    put(DocumentStore(path), "mem-a")

    assert {0o600} == {one.stat().st_mode & 0o777 for one in path.parent.iterdir()}


def test_words_that_were_removed_are_in_no_file(path: Path) -> None:
    """The file is written anew without them."""
    store = DocumentStore(path)
    record = make_record("mem-a", subject="user-42", content="no quince marmalade")
    store.commit(WriteBatch([Change(record, exclusive=False)], [json.dumps({"event_id": "evt-1"})]))
    assert record.content in path.read_text(encoding="utf-8")
    store.forget(
        TENANT, "user-42", now_us=1, dry_run=False, lines_for=lambda counts: [json.dumps({"event_id": "e"})]
    )

    assert not any(record.content in one.read_text(encoding="utf-8") for one in path.parent.iterdir())
