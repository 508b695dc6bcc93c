"""What a store in a file keeps for the review of a record: older files, damage, a log that is full."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_runtime_ref.errors import DecisionLogError, StoreDamagedError
from agent_runtime_ref.stores.base import Queued, Rejected, Waiting, WriteBatch
from agent_runtime_ref.stores.sqlite import SqliteStore
from agent_runtime_ref.testing.conformance_base import TENANT, ask, ids
from agent_runtime_ref.testing.conformance_reviewing import WAITING, hold, let_go


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store is."""
    return tmp_path / "memory.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    """An empty store."""
    opened = SqliteStore(path)
    yield opened
    opened.close()


def change_file(path: Path, *statements: str) -> None:
    """Change the file as another program would."""
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def tables(path: Path) -> dict[str, int]:
    """Return how many rows each table has, the log left out."""
    connection = sqlite3.connect(path)
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")]
    counts = {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}
    connection.close()
    return {
        name: count for name, count in counts.items() if name not in ("log", "meta", "tenants", "revisions")
    }


def test_a_file_of_the_version_before_is_taken_over(store: SqliteStore, path: Path) -> None:
    """Its records in quarantine are there, and nobody is said to have written them."""
    queued = hold(store)
    store.close()
    change_file(path, "DROP TABLE quarantine", "PRAGMA user_version=1")

    taken_over = SqliteStore(path)
    assert taken_over.queued(TENANT, "held") == Queued(queued.record, None, queued.dedup, queued.original)
    assert hold(taken_over, "new").waiting == WAITING
    taken_over.close()


def test_it_is_kept_over_a_restart(store: SqliteStore, path: Path) -> None:
    """Who reviews tomorrow finds what was kept today."""
    queued = hold(store, waiting=Waiting(b"p", None, True))
    store.close()

    again = SqliteStore(path)
    assert again.queued(TENANT, "held") == queued
    again.close()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE quarantine SET principal='text'",
        "UPDATE quarantine SET agent=7",
        "UPDATE quarantine SET replaces='maybe'",
        "UPDATE contents SET original='text'",
        "UPDATE contents SET dedup=1",
        "UPDATE records SET trust_rank='high'",
    ],
)
def test_damage_is_said(store: SqliteStore, path: Path, damage: str) -> None:
    """A value of another type than was ever written is damage, and nobody's writer."""
    hold(store)
    change_file(path, damage)

    with pytest.raises(StoreDamagedError, match="held"):
        store.queued(TENANT, "held")


def test_a_full_log_takes_the_step_back(store: SqliteStore, path: Path) -> None:
    """Where the line of a release or a rejection cannot be kept, the record waits as before."""
    queued = hold(store)
    before = tables(path)
    change_file(path, "CREATE TRIGGER full BEFORE INSERT ON log BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    for batch in (
        WriteBatch([let_go(queued)], ["{}"]),
        WriteBatch([], ["{}"], rejected=[Rejected(queued, (b"kept",))]),
    ):
        with pytest.raises(DecisionLogError, match="disk full"):
            store.commit(batch)
        assert store.queued(TENANT, "held") == queued
        assert tables(path) == before
    change_file(path, "DROP TRIGGER full")
    store.commit(WriteBatch([let_go(queued)], ["{}"]))

    assert ids(ask(store, "quince")) == ["held"]


def test_a_rejection_leaves_no_row(store: SqliteStore, path: Path) -> None:
    """No table has a row of the record, of its words, its parents or its writer."""
    empty = tables(path)
    store.commit(WriteBatch([], rejected=[Rejected(hold(store, derived_from=("parent",)), ())]))

    assert tables(path) == empty


def test_a_release_leaves_no_writer(store: SqliteStore, path: Path) -> None:
    """What was kept for the review goes with it."""
    store.commit(WriteBatch([let_go(hold(store))]))

    assert tables(path)["quarantine"] == 0
