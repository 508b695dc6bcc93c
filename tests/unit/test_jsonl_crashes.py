"""What a process that ends in the middle leaves in the files of a JSONL store, and what becomes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_runtime_ref.errors import DecisionLogError, StoreDamagedError, StoreError
from agent_runtime_ref.stores.jsonl import JsonlStore, files
from agent_runtime_ref.stores.jsonl.rewrite import Rewriting
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.telemetry.events import Event
from agent_runtime_ref.telemetry.lines import event_text
from agent_runtime_ref.telemetry.logfile import LogFile
from agent_runtime_ref.testing import NOW_US, make_record
from agent_runtime_ref.testing.conformance_base import TENANT, ask, ids, put
from agent_runtime_ref.testing.conformance_forgetting import SUBJECT, forget


class Killed(BaseException):
    """Stands for the end of a process."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store of a test is."""
    return tmp_path / "memory.jsonl"


def line_of(memory_id: str, event_type: str = "memory_persisted", **more: object) -> str:
    """The event line of a change."""
    payload = {"event_id": f"evt-{memory_id}", "tenant_id": TENANT, "record_id": memory_id, **more}
    return event_text(Event(event_type, "trace-001", NOW_US, payload))


def told(store: JsonlStore) -> list[tuple[str, str]]:
    """What the log says of records: event and id."""
    events = [json.loads(line) for line in store.log(False)]
    assert chain.verify(store.log(False)) is None
    return [(one["event_type"], one["payload"]["record_id"]) for one in events if "event_type" in one]


def killed_between_log_and_records(
    store: JsonlStore, monkeypatch: pytest.MonkeyPatch, memory_id: str
) -> None:
    """End a write after its log lines and before its record lines."""
    with monkeypatch.context() as patch:
        patch.setattr(files, "append", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            put(store, make_record(memory_id), lines=[line_of(memory_id)])


def test_an_announced_record_that_never_came_is_taken_back_at_open(path, monkeypatch):
    """The log says that it did not happen, once; what was kept before is there."""
    store = JsonlStore(path)
    put(store, make_record("mem-1"), lines=[line_of("mem-1")])
    killed_between_log_and_records(store, monkeypatch, "mem-2")
    for _ in range(2):
        again = JsonlStore(path)
        assert ids(ask(again)) == ["mem-1"]
        assert told(again) == [
            ("memory_persisted", "mem-1"),
            ("memory_persisted", "mem-2"),
            ("memory_not_persisted", "mem-2"),
        ]


def test_the_next_writer_takes_back_what_another_left(path, monkeypatch):
    """A process that has been open all the time notices before it writes anything of its own."""
    other = JsonlStore(path)
    killed_between_log_and_records(JsonlStore(path), monkeypatch, "mem-1")
    put(other, make_record("mem-2"), lines=[line_of("mem-2")])

    expected = [
        ("memory_persisted", "mem-1"),
        ("memory_not_persisted", "mem-1"),
        ("memory_persisted", "mem-2"),
    ]
    assert told(other) == expected
    assert told(JsonlStore(path)) == expected


def test_what_is_no_change_is_not_taken_back(path):
    """Reads, refusals and duplicates after the last record announce nothing."""
    store = JsonlStore(path)
    put(store, make_record("mem-1"), lines=[line_of("mem-1")])
    store.append_lines([line_of("mem-1", duplicate_of="mem-1"), '{"type":"decision"}'], read=False)
    store.append_lines(['{"type":"event","event_type":"retrieval","payload":{}}'], read=True)
    again = JsonlStore(path)

    assert again.revision() == 4


def test_a_disk_that_is_full_keeps_nothing_and_says_so(path, monkeypatch):
    """Where the record lines cannot be written the write fails, and the log takes its word back at once."""
    store = JsonlStore(path)
    with monkeypatch.context() as patch:

        def full(*_: object) -> None:
            raise StoreError(str(path), "no space left on device")

        patch.setattr(files, "append", full)
        with pytest.raises(StoreError, match="no space"):
            put(store, make_record("mem-1"), lines=[line_of("mem-1")])

    assert ids(ask(store)) == []
    assert told(store) == [("memory_persisted", "mem-1"), ("memory_not_persisted", "mem-1")]
    put(store, make_record("mem-1"), lines=[line_of("mem-1")])
    assert ids(ask(JsonlStore(path))) == ["mem-1"]


def test_a_log_that_cannot_be_written_keeps_the_record_out(path, monkeypatch):
    """No record is begun before its log lines are on disk."""
    store = JsonlStore(path)
    before = path.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise DecisionLogError(str(path), "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(LogFile, "append", full)
        with pytest.raises(DecisionLogError):
            put(store, make_record("mem-1"), lines=[line_of("mem-1")])

    assert path.read_bytes() == before
    assert ids(ask(store)) == []


def test_log_lines_are_on_disk_before_record_lines_are_begun(path, monkeypatch):
    """The order of the two waits is that of the write-ahead rule."""
    order = []
    synced = files.os.fsync

    def noted(descriptor: int) -> None:
        order.append(Path(f"/proc/self/fd/{descriptor}").resolve().name)
        if order[-1] == path.parent.name:
            order.pop()  # the log's name, before its first line
        elif order[-1].endswith(".log"):
            assert b"mem-1" not in path.read_bytes()
        synced(descriptor)

    store = JsonlStore(path)
    monkeypatch.setattr(files.os, "fsync", noted)
    put(store, make_record("mem-1"), lines=[line_of("mem-1")])

    assert order == ["memory.jsonl.log", "memory.jsonl"]


@pytest.mark.parametrize("cut", [1, 40, "line", "batch"])
def test_a_torn_end_is_cut_off_and_reported(path, cut):
    """What is left of the last commit, one line or several, is removed by whoever opens."""
    store = JsonlStore(path)
    put(store, make_record("mem-1"), lines=[line_of("mem-1")])
    whole = path.read_bytes()
    put(store, make_record("mem-2"), make_record("mem-3"), lines=[line_of("mem-2"), line_of("mem-3")])
    added = path.read_bytes()[len(whole) :]
    first = added.index(b"\n") + 1
    left = {"line": added[:first], "batch": added[: first + 30]}.get(cut) or added[:-cut]
    path.write_bytes(whole + left)
    again = JsonlStore(path)

    assert path.read_bytes() == whole
    assert again.repaired_bytes == len(left)
    assert ids(ask(again)) == ["mem-1"]
    assert told(again)[-2:] == [("memory_not_persisted", "mem-2"), ("memory_not_persisted", "mem-3")]
    put(again, make_record("mem-2"), lines=[line_of("mem-2")])
    assert sorted(ids(ask(JsonlStore(path)))) == ["mem-1", "mem-2"]


@pytest.mark.parametrize(
    "damage",
    [
        b"no json\n",
        b"{}\n",
        b'{"step":"put","record":{}}\n',
        b'{"step":"erase"}\n',
        b"[]\n",
        b"\0\0\0\n",
        b'{"step":"taken_out","tenant_id":"t","record_id":"r","tombstones":[],"at_us":1,"log":[1,"x"]}\n',
    ],
)
def test_a_damaged_line_inside_is_named_and_nothing_is_answered(path, damage):
    """File and line are told, the content of the line is not; no half of a store answers."""
    store = JsonlStore(path)
    put(store, make_record("mem-1", content="apricot marmalade"))
    put(store, make_record("mem-2"))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join((*lines[:2], damage, *lines[2:])))

    with pytest.raises(StoreDamagedError, match=r"memory\.jsonl:3"):
        JsonlStore(path)
    for _ in range(2):
        with pytest.raises(StoreDamagedError) as raised:
            ask(store)
        assert "apricot" not in str(raised.value)


def test_a_record_twice_is_damage(path):
    """No commit puts an id that is there."""
    put(JsonlStore(path), make_record("mem-1"))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join((*lines, lines[-1])))

    with pytest.raises(StoreDamagedError, match=r"memory\.jsonl:3"):
        JsonlStore(path)


@pytest.mark.parametrize("how", ["removed", "shortened", "exchanged"])
def test_a_record_without_its_log_line_is_damage(path, tmp_path, how):
    """The log that announced the last record is gone, ends before it, or is another one."""
    store = JsonlStore(path)
    put(store, make_record("mem-1"), lines=[line_of("mem-1")])
    put(store, make_record("mem-2"), lines=[line_of("mem-2")])
    log = path.with_name("memory.jsonl.log")
    if how == "removed":
        log.unlink()
    elif how == "shortened":
        log.write_bytes(log.read_bytes().splitlines(keepends=True)[0])
    else:
        log.unlink()
        LogFile(log).append(['{"a":1}', '{"a":2}'])

    with pytest.raises(StoreDamagedError, match="was announced by line 2"):
        JsonlStore(path)
    assert log.exists() is (how != "removed")


def test_a_log_without_its_records_is_damage(path):
    """Where the record file is gone and its log is there, no empty store takes its place."""
    put(JsonlStore(path), make_record("mem-1"), lines=[line_of("mem-1")])
    path.unlink()

    with pytest.raises(StoreDamagedError, match="its records are gone"):
        JsonlStore(path)
    assert not path.exists()


def test_lost_or_damaged_keys_are_told(path):
    """Without its key file a store does not open, and a damaged line of it is named."""
    store = JsonlStore(path)
    store.subject_key(TENANT, SUBJECT, True)
    keys = path.with_name("memory.jsonl.keys")
    text = keys.read_bytes()
    keys.write_bytes(text.replace(b'"key":"', b'"key":"zz'))
    with pytest.raises(StoreDamagedError, match=r"keys:2"):
        JsonlStore(path)
    keys.unlink()
    with pytest.raises(StoreError, match="keys"):
        JsonlStore(path)


def test_a_torn_key_is_nobodys(path):
    """A key that was not written whole was given to nobody; the next one takes its place."""
    store = JsonlStore(path)
    first = store.subject_key(TENANT, "user-1", True)
    with path.with_name("memory.jsonl.keys").open("ab") as file:
        file.write(b'{"tenant_id":"tenant-acme","sub')
    again = JsonlStore(path)
    second = again.subject_key(TENANT, "user-2", True)

    assert [store.subject_key(TENANT, one, False) for one in ("user-1", "user-2")] == [first, second]


@pytest.mark.parametrize("announced", [True, False])
def test_a_forgetting_that_was_announced_is_ended(path, monkeypatch, announced):
    """After the log line the next process ends it; before it, the person is still there."""
    store = JsonlStore(path)
    put(store, make_record("own", subject=SUBJECT, content="apricot marmalade"), make_record("other"))
    store.subject_key(TENANT, SUBJECT, True)

    def killed(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Rewriting, "put_in_place", killed)
        if not announced:
            patch.setattr(LogFile, "append", killed)
            patch.setattr(Rewriting, "drop", lambda self: None)
        with pytest.raises(Killed):
            forget(store)
    assert path.with_name("memory.jsonl.rewritten").exists()
    again = JsonlStore(path)

    assert (ids(ask(again)) == ["other"]) is announced
    assert (again.subject_key(TENANT, SUBJECT, False) is None) is announced
    assert again.forgets() == int(announced)
    everything = b"".join(one.read_bytes() for one in path.parent.iterdir())
    assert (b"apricot" not in everything) is announced
    assert not [one for one in path.parent.iterdir() if "rewritten" in one.name]
    assert ids(ask(store)) == ids(ask(again))


def test_an_open_process_ends_what_another_began_to_forget(path, monkeypatch):
    """It does so before it writes, so that nothing is written beside a person who should be gone."""
    other = JsonlStore(path)
    store = JsonlStore(path)
    put(store, make_record("own", subject=SUBJECT))
    with monkeypatch.context() as patch:
        patch.setattr(Rewriting, "put_in_place", lambda self: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            forget(store)
    put(other, make_record("mem-1"))

    assert ids(ask(other)) == ids(ask(JsonlStore(path))) == ["mem-1"]


@pytest.mark.parametrize("then", ["open", "write", "key"])
def test_who_is_interrupted_behind_the_log_has_forgotten(path, monkeypatch, then):
    """The log tells of it already: who opens ends it, and so does the open store before its next change."""
    store = JsonlStore(path)
    put(store, make_record("own", subject=SUBJECT, content="apricot marmalade"))
    store.subject_key(TENANT, SUBJECT, True)
    kept = LogFile.append

    def interrupted(self, *given: object, **more: object) -> None:
        kept(self, *given, **more)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LogFile, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            forget(store)
    expected = []
    if then == "write":
        put(store, make_record("mem-1"))
        expected = ["mem-1"]
    elif then == "key":
        store.subject_key(TENANT, "user-9", True)
    again = JsonlStore(path)

    assert ids(ask(again)) == ids(ask(store)) == expected
    assert again.forgets() == 1
    assert again.subject_key(TENANT, SUBJECT, False) is None
    assert (again.subject_key(TENANT, "user-9", False) is not None) is (then == "key")
    assert b"apricot" not in b"".join(one.read_bytes() for one in path.parent.iterdir())


def test_a_full_disk_stops_forgetting_before_it_is_announced(path, monkeypatch):
    """Nothing is logged, nothing is removed, and nothing half-written stays."""
    store = JsonlStore(path)
    put(store, make_record("own", subject=SUBJECT))
    before = sorted((one.name, one.read_bytes()) for one in path.parent.iterdir())

    def full(*_: object) -> None:
        raise StoreError(str(path), "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files, "prepare", full)
        with pytest.raises(StoreError, match="no space"):
            forget(store)

    assert ids(ask(store)) == ["own"]
    names = [pair for pair in before if not pair[0].endswith(".lock")]
    assert [
        (one.name, one.read_bytes()) for one in sorted(path.parent.iterdir()) if one.suffix != ".lock"
    ] == names


def test_the_end_of_a_long_log_is_found(path):
    """Lines behind a number are found in a log that is much longer than what is read at once."""
    from agent_runtime_ref.stores.jsonl.intents import lines_after

    log = LogFile(path)
    log.append([json.dumps({"text": "x" * (number % 700)}) for number in range(2000)])

    for seq in (0, 1, 777, 1998, 1999, 2000):
        found = [chain.opened(line).seq for line in lines_after(path, seq)]
        assert found == list(range(seq + 1, 2001))
