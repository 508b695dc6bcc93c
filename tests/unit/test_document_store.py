"""The store in one JSON file: what a process leaves that ends in the middle, damage, and who owns it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import Caller, GovernedMemory
from agent_runtime_ref.errors import DecisionLogError, StoreDamagedError, StoreForeignError, StoreVersionError
from agent_runtime_ref.stores.base import Change, WriteBatch
from agent_runtime_ref.stores.document import DocumentStore
from agent_runtime_ref.stores.jsonl import files
from agent_runtime_ref.testing import make_record
from agent_runtime_ref.testing.conformance_base import TENANT

OFFICER = Caller(TENANT, "ada", roles=("privacy_officer",))


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


def interrupted(store: DocumentStore, monkeypatch: pytest.MonkeyPatch, work: Callable[[], None]) -> None:
    """Do `work`, and end it when its log lines are on disk."""
    kept = store._log.append

    def appended(lines: Any, *, read: bool) -> None:
        kept(lines, read=read)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(store._log, "append", appended)
        with pytest.raises(KeyboardInterrupt):
            work()


@pytest.mark.parametrize("again", [True, False], ids=["opened again", "still open"])
def test_who_is_interrupted_behind_the_log_has_made_the_change(
    path: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    """The log tells of it already: it is there at the next look, and the next change goes on from it."""
    store = DocumentStore(path)
    put(store, "mem-a")
    interrupted(store, monkeypatch, lambda: put(store, "mem-b", "2"))
    store = DocumentStore(path) if again else store

    assert {"mem-a", "mem-b"} == ids(store)
    put(store, "mem-c", "3")
    assert {"mem-a", "mem-b", "mem-c"} == ids(store) == ids(DocumentStore(path))


@pytest.mark.parametrize("then", ["look", "write", "key"])
def test_who_is_interrupted_behind_the_log_has_forgotten(
    path: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    """A forgetting that the log tells of is one, whatever the open store is asked next."""
    store = DocumentStore(path)
    store.commit(WriteBatch([Change(make_record("mem-a", subject="user-42"), exclusive=False)], ["{}"]))
    key = store.subject_key(TENANT, "user-42", True)
    interrupted(store, monkeypatch, lambda: _forget(store))
    if then == "write":
        put(store, "mem-b", "2")
    elif then == "key":
        assert key != store.subject_key(TENANT, "user-42", True)

    assert ids(store) == ids(DocumentStore(path)) == ({"mem-b"} if then == "write" else set())
    assert store.forgets() == 1


def test_a_log_that_cannot_be_written_leaves_nothing_prepared(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds no line of the change, so nothing is left to be settled."""
    store = DocumentStore(path)

    def full(*_: object, **__: object) -> None:
        raise DecisionLogError(str(path), "no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(store._log, "append", full)
        with pytest.raises(DecisionLogError):
            put(store, "mem-a")

    assert set() == ids(store)
    assert not list(path.parent.glob("*.new"))


def _forget(store: DocumentStore) -> None:
    store.forget(
        TENANT, "user-42", now_us=1, dry_run=False, lines_for=lambda counts: [json.dumps({"event_id": "e"})]
    )


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


def test_forgetting_names_what_lies_aside(path: Path) -> None:
    """A damaged file may hold the person's words; the store's name, which may be hers, is not repeated."""
    with GovernedMemory.open(f"file:{path}") as memory:
        assert not [one for one in memory.forget(subject="user-42", caller=OFFICER).not_covered if "*" in one]
        for _ in range(12):
            path.write_text("damage", encoding="utf-8")
            receipt = memory.forget(subject="user-42", caller=OFFICER, dry_run=True)
        receipt = memory.forget(subject="user-42", caller=OFFICER)
        (said,) = (one for one in receipt.not_covered if "*" in one)
        line = list(memory.log_lines())[-1]

    assert "`*.damaged-1`, `*.damaged-2`" in said
    assert "and 2 more" in said
    assert said in line
    assert path.name not in line


def test_records_that_are_gone_are_missed_after_a_damage_too(path: Path) -> None:
    """What lies aside says nothing of a file that is removed later: no empty store takes its place."""
    put(DocumentStore(path), "mem-a")
    path.write_text("damage", encoding="utf-8")
    put(DocumentStore(path), "mem-b", "2")
    assert path.with_name(f"{path.name}.damaged-1").exists()
    path.unlink()
    with pytest.raises(StoreDamagedError, match="its records are gone"):
        DocumentStore(path)

    assert not path.exists()


@pytest.mark.parametrize("step", ["prepare", "put_in_place"])
@pytest.mark.parametrize("at", [1, 2])
def test_a_process_that_ends_while_it_puts_aside(
    path: Path, monkeypatch: pytest.MonkeyPatch, step: str, at: int
) -> None:
    """At whichever step: nothing of the damaged file is lost, and the next one opens the store."""
    put(DocumentStore(path), "mem-a")
    path.write_text("damage", encoding="utf-8")
    kept, calls = getattr(files, step), []

    def ending(*given: Any) -> None:
        calls.append(given)
        if len(calls) == at:
            raise Ended
        kept(*given)

    with monkeypatch.context() as patched:
        patched.setattr(files, step, ending)
        with pytest.raises(Ended):
            DocumentStore(path)
    again = DocumentStore(path)
    put(again, "mem-b", "2")

    assert {"mem-b"} == ids(again) == ids(DocumentStore(path))
    aside = list(path.parent.glob(f"{path.name}.damaged-*"))
    assert aside
    assert {"damage"} == {one.read_text(encoding="utf-8") for one in aside}
    assert not list(path.parent.glob("*.new"))


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
