"""What only a store in a file has to do: files, versions, plans of queries, erasure."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent_runtime_ref.errors import DecisionLogError, StoreDamagedError, StoreError, StoreVersionError
from agent_runtime_ref.recall import analysis
from agent_runtime_ref.stores.base import Change, SearchRequest, WriteBatch
from agent_runtime_ref.stores.sqlite import SqliteStore, reindex
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.testing import NOW_US, make_record, open_plan
from agent_runtime_ref.testing.conformance_base import TENANT, ask, ids, put
from agent_runtime_ref.testing.conformance_forgetting import forget
from agent_runtime_ref.testing.records import clause


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store's file will be."""
    return tmp_path / "memory.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    """An empty store."""
    with closing(SqliteStore(path)) as opened:
        yield opened


def change_file(path: Path, *statements: str) -> None:
    """What somebody else does to the file."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_files_are_their_owners_alone(store: SqliteStore, path: Path) -> None:
    """The file, its write-ahead log and the file of reads are readable by nobody else."""
    put(store, make_record())
    store.append_lines(["{}"], read=True)

    found = sorted(one.name for one in path.parent.iterdir())
    assert {"memory.db", "memory.db-wal", "memory.db.reads", "memory.db.reads-wal"} <= set(found)
    assert {one.stat().st_mode & 0o777 for one in path.parent.iterdir()} == {0o600}


def test_everything_outlives_the_store(path: Path) -> None:
    """Records, logs, keys and counts are there when the file is opened again."""
    with closing(SqliteStore(path)) as first:
        put(first, make_record(), lines=['{"a":1}'])
        first.append_lines(['{"read":1}'], read=True)
        keys = first.store_key(), first.subject_key(TENANT, "user-42", True)
    with closing(SqliteStore(path)) as second:
        assert ids(ask(second, "support")) == ["mem-001"]
        assert (second.store_key(), second.subject_key(TENANT, "user-42", False)) == keys
        second.append_lines(['{"read":2}'], read=True)
        assert [chain.verify(second.log(read)) for read in (False, True)] == [None, None]
        assert [len(list(second.log(read))) for read in (False, True)] == [1, 2]


def test_connections_are_careful(store: SqliteStore) -> None:
    """Durable commits, a write-ahead log, zeroed pages, no trust in the schema of the file."""
    connection = store._pool.get()
    pragmas = ("journal_mode", "synchronous", "secure_delete", "trusted_schema", "cell_size_check")

    assert [connection.execute(f"PRAGMA {one}").fetchone()[0] for one in pragmas] == ["wal", 2, 1, 0, 1]
    assert store._reads.get().execute("PRAGMA synchronous").fetchone()[0] == 1


def test_a_newer_file_is_refused(path: Path) -> None:
    """A file of a later version is left as it is."""
    SqliteStore(path).close()
    change_file(path, "PRAGMA user_version=99")
    before = path.read_bytes()
    with pytest.raises(StoreVersionError, match="99"):
        SqliteStore(path)

    assert path.read_bytes() == before


def test_another_programs_file_is_refused(path: Path) -> None:
    """A database of somebody else is neither migrated nor switched to another journal."""
    change_file(path, "CREATE TABLE theirs(a)")
    before = path.read_bytes()
    with pytest.raises(StoreDamagedError, match="another program"):
        SqliteStore(path)

    assert path.read_bytes() == before


def test_an_empty_database_is_no_existing_store(path: Path) -> None:
    """A database without tables is left as it is when the store has to exist."""
    change_file(path, "CREATE TABLE theirs(a)", "DROP TABLE theirs")
    before = path.read_bytes()
    with pytest.raises(StoreDamagedError, match="no store"):
        SqliteStore(path, must_exist=True)

    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_reported(path: Path) -> None:
    """Any other file is left alone."""
    path.write_bytes(b"just some notes\n" * 100)
    with pytest.raises(StoreDamagedError):
        SqliteStore(path)

    assert path.read_bytes() == b"just some notes\n" * 100


def test_damage_is_reported_as_damage(path: Path) -> None:
    """Overwritten pages give a documented error, not wrong results."""
    with closing(SqliteStore(path)) as store:
        put(store, *(make_record(f"m{number:04d}", content=f"text {number} " * 50) for number in range(200)))
    data = bytearray(path.read_bytes())
    data[8192:] = b"\xa5" * (len(data) - 8192)
    path.write_bytes(data)
    with pytest.raises(StoreDamagedError), closing(SqliteStore(path)) as store:
        ask(store, "text")


def look_at_everything(path: Path) -> None:
    """Open a store, find every record and build it."""
    with closing(SqliteStore(path)) as store:
        for match in ask(store, tenant_ids=None).matches:
            assert match.attributes
            match.record()


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE contents",
        "DROP TABLE log",
        "ALTER TABLE records RENAME COLUMN trust_rank TO rank",
        "DELETE FROM meta WHERE name='store_key'",
        "UPDATE meta SET value=7 WHERE name='store_key'",
        "UPDATE meta SET value='x' WHERE name='analyser_version'",
        "UPDATE contents SET details='{'",
        "UPDATE contents SET details='[[1], 2, 3]'",
        "UPDATE contents SET content=x'ff00'",
        "UPDATE contents SET confidence='much'",
        "UPDATE records SET created_us=9000000000000000000",
        "UPDATE records SET expires_us=9000000000000000000",
        "UPDATE records SET trust_rank='high'",
        "UPDATE records SET trust_rank=9",
        "UPDATE records SET status='odd'",
        "UPDATE records SET revision='x'",
        "UPDATE records SET memory_id=x'00'",
    ],
)
def test_damaged_rows_are_reported_with_their_place(path: Path, statement: str) -> None:
    """What this package never wrote gives the documented error and the file's name, whoever asks."""
    with closing(SqliteStore(path)) as store:
        put(store, make_record("mem-1", subject="user-42", key="queue", scope=("a",)))
    change_file(path, statement)
    with pytest.raises(StoreDamagedError, match=r"memory\.db"):
        look_at_everything(path)


@pytest.mark.parametrize("statement", ["UPDATE contents SET details='{'", "DROP TABLE tombstones"])
def test_damage_is_seen_by_forgetting_too(store: SqliteStore, path: Path, statement: str) -> None:
    """Nobody is forgotten by halves: the damage is told and every record is where it was."""
    put(store, make_record("mem-1", subject="user-42", scope=("a",)))
    change_file(path, statement)
    with pytest.raises(StoreDamagedError):
        forget(store)

    assert ids(ask(store)) == ["mem-1"]


def test_a_log_that_cannot_be_written_takes_the_write_back(store: SqliteStore, path: Path) -> None:
    """Without its line there is no record."""
    put(store, make_record("mem-1"), lines=["{}"])
    change_file(path, "CREATE TRIGGER full BEFORE INSERT ON log BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    with pytest.raises(DecisionLogError, match="disk full"):
        put(store, make_record("mem-2"), lines=["{}"])
    with pytest.raises(DecisionLogError):
        store.append_lines(["{}"], read=False)

    assert ids(ask(store)) == ["mem-1"]


def test_a_read_log_that_cannot_be_written_is_an_error(store: SqliteStore, path: Path) -> None:
    """A read whose line is not kept does not happen."""
    store.append_lines(["{}"], read=True)
    reads = path.with_name("memory.db.reads")
    change_file(reads, "CREATE TRIGGER full BEFORE INSERT ON log BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    with pytest.raises(DecisionLogError, match="disk full"):
        store.append_lines(["{}"], read=True)


def test_postings_of_another_analyser_are_made_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed analyser reindexes when the file is opened."""
    with closing(SqliteStore(path)) as store:
        put(store, make_record("mem-1"))
        stale = "INSERT INTO postings SELECT tid, 'stale', rid, 0 FROM records"
        change_file(path, "DELETE FROM postings", stale)
        assert ids(ask(store, "support")) == []
    monkeypatch.setattr(reindex, "ANALYSER_VERSION", analysis.ANALYSER_VERSION + 1)
    with closing(SqliteStore(path)) as store:
        assert ids(ask(store, "support")) == ["mem-1"]
        assert ids(ask(store, "stale")) == []


def request(*terms: str, by_id: bool = False) -> SearchRequest:
    """A search with walls and filters."""
    clauses = [
        clause("wall", "MEM-R-001", ("tenant_id", "eq", TENANT)),
        clause("wall", "MEM-R-002", ("subject", "is_null", None), ("subject", "eq", "user-42")),
        clause("filter", "MEM-R-202", ("status", "eq", "active")),
        clause("filter", "MEM-R-207", ("outranked", "eq", False)),
    ]
    if by_id:
        clauses.append(clause("selector", "MEM-R-013", ("record_id", "in", ("mem-1", "mem-2"))))
    return SearchRequest((TENANT,), open_plan(*clauses), terms or None, NOW_US, 5)


def test_terms_are_looked_up_by_tenant(store: SqliteStore) -> None:
    """A text is answered from the tenant's postings, records by their key, outranking from its index."""
    put(store, make_record())
    steps = store.explain(request("alpha", "beta", "gamma"))

    assert "SEARCH p USING PRIMARY KEY (tid=? AND term=?)" in steps
    assert "SEARCH r USING INTEGER PRIMARY KEY (rowid=?)" in steps
    assert any(one.startswith("SEARCH o USING INDEX records_by_key (tid=? AND key=?") for one in steps)
    assert not [one for one in steps if one.startswith(("SCAN r", "SCAN p USING", "SCAN t", "SCAN postings"))]


def test_without_text_only_the_tenants_policy_rows_are_read(store: SqliteStore) -> None:
    """Counting walks the tenant's part of the narrow table: every policy column and no content."""
    put(store, make_record())
    steps = store.explain(request())

    assert "SEARCH r USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" in steps
    assert not [one for one in steps if one.startswith(("SCAN r", "SCAN t"))]


def test_ids_are_looked_up(store: SqliteStore) -> None:
    """A selector of ids goes through the index on them."""
    put(store, make_record())
    steps = store.explain(request(by_id=True))

    assert any("records_by_id (tid=? AND memory_id=?)" in one for one in steps)


def test_no_planted_word_stays_in_any_file(store: SqliteStore, path: Path) -> None:
    """After forgetting, the words are in no file; a neighbour's are still there."""
    planted = [f"planted{number:03d}word" for number in range(300)]
    for start in range(0, 300, 100):
        records = [
            make_record(
                f"own-{word}", subject="user-42", content=f"{word} in content", summary=f"short {word}"
            )
            for word in planted[start : start + 100]
        ]
        store.commit(WriteBatch([Change(one, dedup=one.content.encode()) for one in records], ["{}"]))
    put(store, make_record("child", content="planted000word again", derived_from=("own-planted000word",)))
    put(store, make_record("other", subject="user-7", content="neighbour word"))
    counts = forget(store)

    data = b"".join(one.read_bytes() for one in path.parent.iterdir())
    assert (counts.records, counts.derived, counts.notes) == (300, 1, ())
    assert b"planted" not in data
    assert b"neighbour" in data
    assert ids(ask(store, "word")) == ["other"]


def test_what_a_concurrent_reader_prevents_is_said(store: SqliteStore, path: Path) -> None:
    """Records are gone all the same; the receipt names the copy that the reader kept alive."""
    put(store, make_record("own", subject="user-42", content="planted"))
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM records").fetchone()
        counts = forget(store)
        assert ids(ask(store)) == []
        assert any("concurrent reader" in note for note in counts.notes)
    again = forget(store)

    assert again.notes == ()
    assert b"planted" not in b"".join(one.read_bytes() for one in path.parent.iterdir())


def test_another_process_sees_that_somebody_was_forgotten(store: SqliteStore, path: Path) -> None:
    """The count is the file's, so that a pseudonym kept by one process goes when another forgets."""
    put(store, make_record("own", subject="user-42"))
    with closing(SqliteStore(path)) as other:
        forget(other)

    assert store.forgets() == 1


def test_lines_may_ask_for_keys_while_a_write_is_open(store: SqliteStore) -> None:
    """Making a line inside the transaction may make a subject's key."""

    def lines_for(counts: object) -> list[str]:
        assert store.subject_key(TENANT, "user-42", True) is not None
        return ["{}"]

    store.forget(TENANT, "user-42", now_us=NOW_US, dry_run=False, lines_for=lines_for)

    assert store.subject_key(TENANT, "user-42", False) is None


def test_an_examination_is_one_snapshot(store: SqliteStore) -> None:
    """What is written while it runs is not in it, and it keeps nobody from writing."""
    put(store, *(make_record(f"m{number}") for number in range(6)))
    with store.examine(SearchRequest((TENANT,), open_plan(), None, NOW_US, 5), 2) as (page, batches):
        seen = [one.memory_id for one in next(batches)]
        put(store, make_record("m9"))
        seen += [one.memory_id for batch in batches for one in batch]

    assert page.considered == 6
    assert seen == [f"m{number}" for number in range(6)]


def test_a_file_in_a_folder_that_is_gone(tmp_path: Path) -> None:
    """A file that cannot be made is a documented error."""
    with pytest.raises(StoreError):
        SqliteStore(tmp_path / "none" / "memory.db")


@pytest.mark.parametrize("name", ["memory.db", "memory.db.reads"])
@pytest.mark.parametrize(
    "planted",
    [
        "CREATE TRIGGER keep AFTER INSERT ON log BEGIN UPDATE log SET line = '{}' WHERE seq = new.seq; END",
        "CREATE VIEW other AS SELECT * FROM log",
    ],
)
def test_what_would_run_beside_our_statements_is_refused(path: Path, name: str, planted: str) -> None:
    """A trigger could keep elsewhere what is forgotten; the file is left as it is."""
    with closing(SqliteStore(path)) as store:
        put(store, make_record("mem-1"), lines=["{}"])
        store.append_lines(["{}"], read=True)
    file = path.with_name(name)
    change_file(file, planted)
    before = file.read_bytes()
    with pytest.raises(StoreError, match="no store has one"), closing(SqliteStore(path)) as store:
        store.append_lines(["{}"], read=True)

    assert file.read_bytes() == before
