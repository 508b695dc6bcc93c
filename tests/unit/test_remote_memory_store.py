"""One user's records in a file that only grows: what is refused, what is repaired, who may write at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref.remote_memory import (
    MemoryKind,
    MemorySource,
    RecallEngine,
    RemoteMemoryCorruptionError,
    RemoteMemoryDuplicateError,
    RemoteMemoryError,
    RemoteMemoryScopeError,
    RemoteMemoryStore,
    RemoteMemoryValidationError,
    StoredMemory,
)

SOURCE = MemorySource(
    source_id="transcript-42",
    source_type="conversation_transcript",
    title="Persistence decision",
    captured_at="2026-08-01T12:00:00Z",
)


@pytest.fixture
def store(tmp_path: Path) -> RemoteMemoryStore:
    """Return an empty store of alice's."""
    return RemoteMemoryStore(tmp_path / "remote" / "memory.jsonl", user_id="alice")


def keep(store: RemoteMemoryStore, memory_id: str | None = None, **changes: Any) -> StoredMemory:
    """Append a conversation record."""
    fields: dict[str, Any] = {
        "kind": MemoryKind.CONVERSATION,
        "content": "Selected SQLite WAL for local persistence.",
        "summary": "Selected SQLite WAL.",
        "source": SOURCE,
        "memory_id": memory_id,
        "stored_at": "2026-08-02T00:00:00Z",
    }
    return store.append(**fields | changes)


def test_naming_a_file_makes_none(store: RemoteMemoryStore) -> None:
    """Nor does reading it: there is simply nothing."""
    assert list(store.read_all()) == []
    assert store.latest_profile() is None
    assert not store.path.parent.exists()


def test_a_record_comes_back_after_a_restart(store: RemoteMemoryStore) -> None:
    """With its source, under the scope of its user, in a file that only its owner may read."""
    kept = keep(store, "memory-42")
    again = RemoteMemoryStore(store.path, user_id=" alice ")
    assert list(again.read_all()) == [kept]
    assert kept.user_scope == again.user_scope == "2bd806c97f0e00af"
    assert kept.source == SOURCE
    assert os.stat(store.path).st_mode & 0o777 == 0o600


def test_an_id_and_an_instant_are_made_where_none_is_given(store: RemoteMemoryStore) -> None:
    """Two records never share an id by accident."""
    first, second = keep(store, stored_at=None), keep(store, stored_at=None)
    assert first.memory_id != second.memory_id
    assert first.stored_at.endswith("Z")


def test_an_id_is_kept_once(store: RemoteMemoryStore) -> None:
    """The second record of an id is refused, and the file stays as it was."""
    keep(store, "memory-1")
    before = store.path.read_bytes()
    with pytest.raises(RemoteMemoryDuplicateError, match="memory-1"):
        keep(store, "memory-1", content="another")
    with pytest.raises(RemoteMemoryValidationError):
        keep(RemoteMemoryStore(store.path, user_id="alice"), "memory-1")
    assert store.path.read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"content": "  "}, "content must not be empty"),
        ({"summary": ""}, "summary must not be empty"),
        ({"memory_id": " "}, "memory_id must not be empty"),
        ({"content": 3}, "content must be a string"),
        ({"content": "\ud800"}, "content must be Unicode"),
        ({"kind": "rumour"}, "kind must be one of"),
        ({"source": None}, "source must be"),
        ({"source": MemorySource("", "t", "t", "2026-08-01T12:00:00Z")}, "source_id must not be empty"),
        ({"source": MemorySource("s", "t", "t", "yesterday")}, "captured_at has an invalid timestamp"),
        ({"source": MemorySource("s", "t", "t", "2026-08-01T12:00:00")}, "invalid timestamp"),
        ({"source": MemorySource("s", "t", "t", "2026-08-01")}, "invalid timestamp"),
        ({"stored_at": "soon"}, "stored_at has an invalid timestamp"),
        ({"retracts": "memory-1"}, "retracts is for a retraction"),
        ({"kind": MemoryKind.RETRACTION}, "retracts is for a retraction"),
    ],
)
def test_what_is_no_record_is_not_written(
    store: RemoteMemoryStore, changes: dict[str, Any], said: str
) -> None:
    """The error names the field."""
    with pytest.raises(RemoteMemoryValidationError, match=said):
        keep(store, **changes)
    assert not store.path.exists()


def test_a_file_of_another_user_is_neither_read_nor_written(store: RemoteMemoryStore) -> None:
    """The wall is in each record, not in the name of the file."""
    keep(store, "memory-1")
    before = store.path.read_bytes()
    foreign = RemoteMemoryStore(store.path, user_id="bob")
    for act in (foreign.read_all, foreign.latest_profile, lambda: keep(foreign, "memory-2")):
        with pytest.raises(RemoteMemoryScopeError, match="another user scope"):
            act()
    with pytest.raises(RemoteMemoryScopeError):
        RecallEngine(foreign).recall("sqlite")
    assert store.path.read_bytes() == before


@pytest.mark.parametrize(
    "other", ["Alice", "alice/../bob", "..", "a:b", "alic\u00e9", "alice\u0301", "ALICE"]
)
def test_ids_that_look_alike_never_share_a_scope(other: str) -> None:
    """Case, Unicode form and separators are what tells users apart."""
    scopes = {RemoteMemoryStore("x", user_id=one).user_scope for one in (other, "alice", "alice\u00e9")}
    assert len(scopes) == 3
    assert all(scope.isalnum() for scope in scopes)


@pytest.mark.parametrize("user_id", ["", "  ", None, 7])
def test_nobody_has_no_memory(user_id: Any) -> None:
    """A blank id would be everybody's."""
    with pytest.raises(RemoteMemoryValidationError, match="must not be empty"):
        RemoteMemoryStore("x", user_id=user_id)


def test_the_latest_profile_is_the_one_that_was_captured_last(store: RemoteMemoryStore) -> None:
    """Whatever the order of appending; what was retracted no longer counts, and read_all keeps it."""
    for memory_id, day in (("new", 9), ("old", 1)):
        source = MemorySource(memory_id, "profile_snapshot", "t", f"2026-08-0{day}T00:00:00Z")
        keep(store, memory_id, kind=MemoryKind.PROFILE, source=source)
    latest = store.latest_profile()
    assert latest is not None
    assert latest.memory_id == "new"
    keep(store, "r", kind=MemoryKind.RETRACTION, retracts="new")
    latest = store.latest_profile()
    assert latest is not None
    assert latest.memory_id == "old"
    assert [record.memory_id for record in store.read_all()] == ["new", "old", "r"]


def test_profiles_and_what_was_retracted_are_never_hits(store: RemoteMemoryStore) -> None:
    """Recall sees conversations that still stand, and changes nothing."""
    keep(store, "wrong", content="layered memory uses Redis", summary="Redis")
    keep(store, "right", content="layered memory uses SQLite", summary="SQLite")
    keep(store, "profile", kind=MemoryKind.PROFILE, content="layered memory")
    keep(store, "r", kind=MemoryKind.RETRACTION, retracts="wrong")
    before = store.path.read_bytes()
    result = RecallEngine(store).recall("layered memory")
    assert [hit.memory_id for hit in result.hits] == ["right"]
    assert result.searched_records == 1
    assert store.path.read_bytes() == before


def test_a_torn_last_line_is_repaired_by_the_next_append(store: RemoteMemoryStore) -> None:
    """Readers pass it over and say so; the writer moves it aside, and no whole record is lost."""
    keep(store, "memory-1")
    with store.path.open("ab") as file:
        file.write(b'{"memory_id": "memory-2", "cont')
    reader = RemoteMemoryStore(store.path, user_id="alice")
    assert [record.memory_id for record in reader.read_all()] == ["memory-1"]
    assert reader.torn_bytes == 31
    keep(reader, "memory-3")
    assert [record.memory_id for record in store.read_all()] == ["memory-1", "memory-3"]
    assert store.path.with_name("memory.jsonl.torn").read_bytes() == b'{"memory_id": "memory-2", "cont\n'
    assert store.torn_bytes == 0


def test_a_last_line_that_only_lacks_its_end_is_a_record(store: RemoteMemoryStore) -> None:
    """Editors leave it out; the record counts, and the next append ends its line."""
    keep(store, "memory-1")
    keep(store, "memory-2")
    store.path.write_bytes(store.path.read_bytes().removesuffix(b"\n"))
    again = RemoteMemoryStore(store.path, user_id="alice")
    assert [record.memory_id for record in again.read_all()] == ["memory-1", "memory-2"]
    with pytest.raises(RemoteMemoryDuplicateError):
        keep(again, "memory-2")
    keep(again, "memory-3")
    fresh = RemoteMemoryStore(store.path, user_id="alice")
    assert [record.memory_id for record in fresh.read_all()] == ["memory-1", "memory-2", "memory-3"]


@pytest.mark.parametrize(
    "line",
    [
        b"}{",
        b"",
        b"[]",
        b'{"memory_id": "x"}',
        b"\xff\xfe",
        b"NaN",
        b'{"a": 1, "a": 2}',
        b"[" * 5_000,
    ],
)
def test_a_bad_line_inside_is_an_error_with_its_number(store: RemoteMemoryStore, line: bytes) -> None:
    """Nothing is skipped, and nothing of the line is quoted."""
    keep(store, "memory-1")
    whole = store.path.read_bytes()
    store.path.write_bytes(whole + line + b"\n" + whole.replace(b"memory-1", b"memory-3"))
    again = RemoteMemoryStore(store.path, user_id="alice")
    for act in (again.read_all, lambda: keep(again, "memory-4")):
        with pytest.raises(RemoteMemoryCorruptionError, match=r"memory\.jsonl:2: "):
            act()


@pytest.mark.parametrize("version", [2, 0, "1", True, None])
def test_a_line_of_another_version_is_refused(store: RemoteMemoryStore, version: object) -> None:
    """1 or nothing is read; what a newer writer meant cannot be guessed."""
    keep(store, "memory-1")
    document = json.loads(store.path.read_text())
    store.path.write_text(json.dumps(document | {"schema_version": version}) + "\n")
    with pytest.raises(RemoteMemoryCorruptionError, match="schema_version"):
        RemoteMemoryStore(store.path, user_id="alice").read_all()


def test_a_line_without_a_version_is_read(store: RemoteMemoryStore) -> None:
    """Older writers said none."""
    keep(store, "memory-1")
    document = json.loads(store.path.read_text())
    del document["schema_version"]
    store.path.write_text(json.dumps(document) + "\n")
    assert [one.memory_id for one in RemoteMemoryStore(store.path, user_id="alice").read_all()] == [
        "memory-1"
    ]


def test_what_another_writer_appended_is_seen(store: RemoteMemoryStore) -> None:
    """Each looks at what the other added since, and at a file that took the place of the old one."""
    other = RemoteMemoryStore(store.path, user_id="alice")
    keep(store, "memory-1")
    keep(other, "memory-2")
    assert len(store.read_all()) == 2
    with pytest.raises(RemoteMemoryDuplicateError):
        keep(store, "memory-2")
    store.path.unlink()
    assert list(store.read_all()) == []
    keep(store, "memory-2")
    assert [record.memory_id for record in other.read_all()] == ["memory-2"]


def put_back(path: Path, data: bytes) -> None:
    """Write a file anew in its place, as `cp` and many editors do, a little after what was before."""
    changed_ns = path.stat().st_mtime_ns + 1_000_000
    path.write_bytes(data)
    os.utime(path, ns=(changed_ns, changed_ns))


def test_a_file_that_was_written_anew_is_read_anew(store: RemoteMemoryStore, tmp_path: Path) -> None:
    """After a restored backup or an editor, nothing of what was there before is answered with."""
    for memory_id in ("a-1", "a-2", "a-3"):
        keep(store, memory_id)
    before = store.path.read_bytes()
    lines = before.splitlines(keepends=True)
    more = RemoteMemoryStore(tmp_path / "more.jsonl", user_id="alice")
    for number in range(6):
        keep(more, f"longer-{number}")

    def seen() -> list[str]:
        return [one.memory_id for one in store.read_all()]

    put_back(store.path, before.replace(b'"a-2"', b'"b-2"'))
    assert seen() == ["a-1", "b-2", "a-3"]
    put_back(store.path, more.path.read_bytes())
    assert seen() == [f"longer-{number}" for number in range(6)]
    put_back(store.path, before)
    assert seen() == ["a-1", "a-2", "a-3"]
    put_back(store.path, lines[0] + lines[2] + before.replace(b'"a-', b'"c-'))
    assert seen() == ["a-1", "a-3", "c-1", "c-2", "c-3"]
    assert keep(store, "a-2").memory_id == "a-2"


def test_a_bad_line_is_told_the_same_at_every_look(store: RemoteMemoryStore) -> None:
    """What stood before a bad line and was new with it is not taken for a second one by the next look."""
    keep(store, "a-1")
    line = store.path.read_bytes()
    with store.path.open("ab") as file:
        file.write(line.replace(b'"a-1"', b'"a-2"') + b"no record\n")

    for _ in range(2):
        with pytest.raises(RemoteMemoryCorruptionError, match=r":3: the line is no JSON object"):
            store.read_all()


def test_a_file_that_cannot_be_written_is_an_error_of_ours(tmp_path: Path) -> None:
    """With the path in it, and no traceback of the operating system."""
    (tmp_path / "taken").write_text("")
    with pytest.raises(RemoteMemoryError, match="taken"):
        keep(RemoteMemoryStore(tmp_path / "taken" / "memory.jsonl", user_id="alice"))


_RACER = """
import sys
from agent_runtime_ref.remote_memory import *
store = RemoteMemoryStore(sys.argv[1], user_id="alice")
source = MemorySource("s", "t", "t", "2026-08-01T12:00:00Z")
won = 0
for number in range(60):
    try:
        kept = {"kind": MemoryKind.CONVERSATION, "content": "c", "summary": "s", "source": source}
        store.append(**kept, memory_id=f"m{number}")
        won += 1
    except RemoteMemoryDuplicateError:
        pass
print(won)
"""


def test_of_two_processes_with_one_id_one_succeeds(store: RemoteMemoryStore) -> None:
    """Every id is kept exactly once, and every loser is told."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", _RACER, str(store.path)], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
        )
        for _ in range(3)
    ]
    won = [int(racer.communicate(timeout=100)[0]) for racer in racers]
    assert sum(won) == 60
    assert sorted(record.memory_id for record in store.read_all()) == sorted(f"m{n}" for n in range(60))


def test_importing_has_no_side_effects(tmp_path: Path) -> None:
    """No file, no model, no network module; nothing needs an environment."""
    code = (
        "import sys, agent_runtime_ref.remote_memory, agent_runtime_ref.recall;"
        "heavy = {'requests', 'httpx', 'aiohttp', 'sqlite3', 'yaml', 'regorus', 'structlog'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    environ = {"HOME": str(tmp_path), "PYTHONPATH": str(Path.cwd()), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
    assert list(tmp_path.iterdir()) == []
