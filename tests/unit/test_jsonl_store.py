"""The JSONL store beside the conformance suite: its files, who may read them, and how instances keep up."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import orjson
import pytest

from agent_runtime_ref.errors import (
    StoreAddressError,
    StoreCapabilityError,
    StoreError,
    StoreForeignError,
    StoreVersionError,
)
from agent_runtime_ref.stores.base import Change, WriteBatch
from agent_runtime_ref.stores.jsonl import JsonlStore
from agent_runtime_ref.stores.jsonl.records import RecordFile
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.testing import NOW_US, make_record
from agent_runtime_ref.testing.conformance_base import TENANT, ask, ids, put
from agent_runtime_ref.testing.conformance_forgetting import SUBJECT, fill, forget


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store of a test is."""
    return tmp_path / "memory.jsonl"


def test_a_record_is_one_readable_line(path):
    """The record document stands in its line as it is exchanged, with the number of its log line."""
    with_line = JsonlStore(path)
    put(with_line, make_record("mem-1", content="多层记忆"), lines=['{"line":1}'])
    put(with_line, make_record("mem-2"), make_record("mem-3"), lines=['{"line":2}', '{"line":3}'])
    lines = path.read_text(encoding="utf-8").splitlines()

    assert len(lines) == 4
    assert '"value":"多层记忆"' in lines[1]
    assert [orjson.loads(line).get("log", [None])[0] for line in lines] == [0, 1, None, 3]


def test_every_file_is_its_owners_alone(path):
    """Records, log, keys and lock have mode 0600, after a rewriting too."""
    store = JsonlStore(path)
    fill(store)
    store.append_lines(["{}"], read=False)
    names = {"memory.jsonl", "memory.jsonl.log", "memory.jsonl.keys", "memory.jsonl.lock"}
    for _ in range(2):
        found = {one.name: stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()}
        assert found == dict.fromkeys(names, 0o600)
        forget(store)


def test_a_forgotten_person_is_in_no_file(path):
    """Neither the words nor the name of the subject nor its key stands anywhere after forgetting."""
    store = JsonlStore(path)
    fill(store)
    key = store.subject_key(TENANT, SUBJECT, True)
    assert key is not None
    everything = b"".join(one.read_bytes() for one in path.parent.iterdir())
    for word in (b"apricot", b"quince", SUBJECT.encode(), key.hex().encode()):
        assert word in everything
    forget(store)
    store.forget("tenant-b", SUBJECT, now_us=NOW_US, dry_run=False, lines_for=lambda counts: ["{}"])

    after = b"".join(one.read_bytes() for one in path.parent.iterdir())
    for word in (b"apricot", b"quince", SUBJECT.encode(), key.hex().encode(), b"grandchild"):
        assert word not in after
    assert b"plum marmalade" in after


def test_an_instance_sees_what_others_did_since(path):
    """Another instance's records, supersessions and forgetting are there at the next look, read once."""
    one, other = JsonlStore(path), JsonlStore(path)
    put(one, make_record("mem-1", subject=SUBJECT))
    assert ids(ask(other)) == ["mem-1"]
    put(other, make_record("mem-2"))
    assert sorted(ids(ask(one))) == ["mem-1", "mem-2"]
    forget(one)

    assert ids(ask(other)) == ["mem-2"]
    assert other.forgets() == one.forgets() == 1
    put(other, make_record("mem-3"))
    assert sorted(ids(ask(one))) == ["mem-2", "mem-3"]


def test_only_what_was_added_is_read(path, monkeypatch):
    """A look costs what was added since the last one, and nothing where nothing was."""
    one, other = JsonlStore(path), JsonlStore(path)
    put(one, *(make_record(f"mem-{number}") for number in range(50)))
    ask(other)
    taken = []
    take = RecordFile._take
    monkeypatch.setattr(RecordFile, "_take", lambda self, *a: (taken.append(self._end), take(self, *a))[1])
    put(one, make_record("late"))
    ask(one)
    assert taken == []
    end = other._file._end
    ask(other)
    ask(other)

    assert taken == [end]
    assert end > 10_000


def test_a_forked_child_begins_anew(path):
    """After a fork the child has every record and can write; the parent sees it."""
    store = JsonlStore(path)
    put(store, make_record("mem-1"))
    child = os.fork()
    if child == 0:
        try:
            assert ids(ask(store)) == ["mem-1"]
            put(store, make_record("mem-2"))
            os._exit(0)
        except BaseException:
            os._exit(1)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert sorted(ids(ask(store))) == ["mem-1", "mem-2"]


def test_another_programs_file_is_left_as_it_is(path):
    """A file that does not begin as a store is refused, and nothing is made beside it."""
    path.write_text('{"memory_id": "mem-1"}\n')

    with pytest.raises(StoreForeignError, match=r"memory\.jsonl:1.*does not begin as a store"):
        JsonlStore(path)
    assert [one.name for one in path.parent.iterdir()] == ["memory.jsonl"]


def test_a_newer_format_is_refused(path):
    """What a newer version wrote is left as it is."""
    JsonlStore(path)
    text = path.read_bytes()
    path.write_bytes(text.replace(b'"version":1', b'"version":2'))

    with pytest.raises(StoreVersionError):
        JsonlStore(path)


@pytest.mark.parametrize(
    "address", ["jsonl:", "jsonl: ", "jsonl:nowhere/memory.jsonl", "jsonl:.", "jsonl:a\0b"]
)
def test_an_address_that_names_no_file_is_refused(address, tmp_path, monkeypatch):
    """The address must name a file in a folder that is there."""
    monkeypatch.chdir(tmp_path)

    with pytest.raises(StoreAddressError):
        open_store(address)
    assert list(tmp_path.iterdir()) == []


def test_who_only_looks_makes_no_store(path):
    """With `must_exist` neither a missing nor an empty file becomes a store."""
    with pytest.raises(StoreAddressError, match="no such file"):
        open_store(f"jsonl:{path}", must_exist=True)
    path.touch()
    with pytest.raises(StoreAddressError, match="empty"):
        open_store(f"jsonl:{path}", must_exist=True)
    assert [one.name for one in path.parent.iterdir()] == ["memory.jsonl"]


def test_a_log_elsewhere_is_refused(path, tmp_path):
    """The store keeps its log beside it; a place for the log could not be honoured."""
    with pytest.raises(StoreCapabilityError):
        open_store(f"jsonl:{path}", log=tmp_path / "other.log")


def test_without_fcntl_it_is_refused_before_a_file_is_made(path, monkeypatch):
    """Where files cannot be locked, opening says so."""
    monkeypatch.setitem(__import__("sys").modules, "fcntl", None)

    with pytest.raises(StoreCapabilityError, match="fcntl"):
        JsonlStore(path)
    assert list(path.parent.iterdir()) == []


def test_a_link_stays_a_link(path):
    """A store that is reached by a symbolic link is rewritten where it lies."""
    link = path.with_name("link.jsonl")
    link.symlink_to(path)
    store = JsonlStore(link)
    put(store, make_record("mem-1", subject=SUBJECT))
    forget(store)

    assert link.is_symlink()
    assert b"mem-1" not in path.read_bytes()


def test_a_store_whose_file_is_gone_says_so(path):
    """A file that was removed under an open store is an error, not an empty store."""
    store = JsonlStore(path)
    put(store, make_record())
    path.unlink()

    with pytest.raises(StoreError, match="no such file"):
        ask(store)


def test_redundant_keys_of_expired_records_stay_lost_after_rewriting(path):
    """A dedup key that went to another record stays with it when the file is rewritten and read again."""
    from datetime import timedelta

    from agent_runtime_ref.testing.records import NOW

    store = JsonlStore(path)
    gone = make_record("mem-1", expires_at=NOW - timedelta(days=1))
    store.commit(WriteBatch([Change(gone, dedup=b"digest")]))
    store.commit(WriteBatch([Change(make_record("mem-2"), dedup=b"digest")], now_us=NOW_US))
    put(store, make_record("mem-3", subject=SUBJECT))
    forget(store)

    for one in (store, JsonlStore(path)):
        assert one.find_duplicate(TENANT, [b"digest"], 0) == {b"digest": "mem-2"}
