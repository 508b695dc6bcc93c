"""The tables of a SQLite store, and the way from every older version to this one.

A record lies in two tables: `records` holds what policies look at, in narrow rows, and `contents` what is
shown. The key of a record carries its tenant in the upper 32 bits, so that a tenant's policy columns lie
side by side: the table is its own covering index, and counting a tenant reads nothing else.
"""

import secrets
import sqlite3

from agent_runtime_ref.errors import StoreDamagedError, StoreForeignError, StoreVersionError
from agent_runtime_ref.recall.analysis import ANALYSER_VERSION
from agent_runtime_ref.stores import rows

APPLICATION_ID = 0x41474D47  # "AGMG"
READS_APPLICATION_ID = 0x41474D52  # "AGMR"
TENANT_SHIFT = 32

POLICY_COLUMNS = ("tid", *rows.POLICY_COLUMNS)
SHOWN_COLUMNS, CONTENT_COLUMNS = rows.SHOWN_COLUMNS, rows.CONTENT_COLUMNS

_VERSION_1 = (
    "CREATE TABLE meta(name TEXT PRIMARY KEY NOT NULL, value NOT NULL) WITHOUT ROWID",
    "CREATE TABLE tenants(tid INTEGER PRIMARY KEY, tenant_id TEXT NOT NULL UNIQUE)",
    """CREATE TABLE records(
        rid INTEGER PRIMARY KEY,
        tid INTEGER NOT NULL,
        status TEXT NOT NULL,
        memory_class TEXT NOT NULL,
        subject TEXT,
        trust_rank INTEGER NOT NULL,
        created_us INTEGER NOT NULL,
        expires_us INTEGER,
        provenance_known INTEGER NOT NULL,
        memory_id TEXT NOT NULL,
        key TEXT,
        confidence_millionths INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        derived INTEGER NOT NULL,
        kind TEXT NOT NULL,
        source TEXT NOT NULL,
        provenance TEXT NOT NULL)""",
    "CREATE UNIQUE INDEX records_by_id ON records(tid, memory_id)",
    """CREATE INDEX records_by_key ON records(tid, key, subject, trust_rank)
        WHERE status='active' AND key IS NOT NULL""",
    """CREATE TABLE contents(
        rid INTEGER PRIMARY KEY,
        content TEXT NOT NULL,
        summary TEXT,
        confidence NOT NULL,
        retention TEXT,
        details TEXT,
        dedup BLOB,
        original BLOB)""",
    """CREATE TABLE postings(
        tid INTEGER NOT NULL, term TEXT NOT NULL, rid INTEGER NOT NULL, label INTEGER NOT NULL,
        PRIMARY KEY(tid, term, rid)) WITHOUT ROWID""",
    """CREATE TABLE derivations(
        tid INTEGER NOT NULL, parent_id TEXT NOT NULL, rid INTEGER NOT NULL,
        PRIMARY KEY(tid, parent_id, rid)) WITHOUT ROWID""",
    """CREATE TABLE revisions(
        tid INTEGER NOT NULL, memory_class TEXT NOT NULL, kind TEXT NOT NULL, revision INTEGER NOT NULL,
        PRIMARY KEY(tid, memory_class, kind)) WITHOUT ROWID""",
    """CREATE TABLE dedup(
        tid INTEGER NOT NULL, digest BLOB NOT NULL, rid INTEGER NOT NULL,
        PRIMARY KEY(tid, digest)) WITHOUT ROWID""",
    """CREATE TABLE tombstones(
        tid INTEGER NOT NULL, digest BLOB NOT NULL, at_us INTEGER NOT NULL,
        PRIMARY KEY(tid, digest)) WITHOUT ROWID""",
    """CREATE TABLE subject_keys(
        tid INTEGER NOT NULL, subject TEXT NOT NULL, key BLOB NOT NULL,
        PRIMARY KEY(tid, subject)) WITHOUT ROWID""",
    "CREATE TABLE log(seq INTEGER PRIMARY KEY, line TEXT NOT NULL)",
)
# For the review of what waits in quarantine: who wrote it, and how it was offered.
_VERSION_2 = (
    """CREATE TABLE quarantine(
        rid INTEGER PRIMARY KEY, principal BLOB NOT NULL, agent BLOB, replaces INTEGER NOT NULL)""",
)
_READS_VERSION_1 = ("CREATE TABLE log(seq INTEGER PRIMARY KEY, line TEXT NOT NULL)",)

# Forward only: entry n takes a file from version n to n + 1.
MIGRATIONS: tuple[tuple[str, ...], ...] = (_VERSION_1, _VERSION_2)
READS_MIGRATIONS: tuple[tuple[str, ...], ...] = (_READS_VERSION_1,)


def prepare(
    connection: sqlite3.Connection, *, path: str, reads: bool = False, must_exist: bool = False
) -> None:
    """Bring an open file to this version, in one transaction, and leave alone what is not ours.

    Raises:
        StoreVersionError: a newer version of this package wrote the file.
        StoreForeignError: the file belongs to another program, or there is no store in it.
        StoreDamagedError: it lacks what its version must have, or is to be migrated and has a trigger
            or a view.
    """
    application_id, steps = (
        (READS_APPLICATION_ID, READS_MIGRATIONS) if reads else (APPLICATION_ID, MIGRATIONS)
    )
    _check_owner(connection, application_id, path)
    if _version(connection, len(steps), path) == len(steps):
        return
    check_bare(connection, path)
    if must_exist and connection.execute("PRAGMA application_id").fetchone()[0] != application_id:
        raise StoreForeignError(path, "is no store: the file is empty")
    connection.execute("BEGIN IMMEDIATE")
    try:
        _check_owner(connection, application_id, path)
        # Another process may have migrated while this one waited for the lock.
        for statements in steps[_version(connection, len(steps), path) :]:
            for statement in statements:
                connection.execute(statement)
        if not reads:
            _first_values(connection)
        connection.execute(f"PRAGMA application_id={application_id}")
        connection.execute(f"PRAGMA user_version={len(steps)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def check_bare(connection: sqlite3.Connection, path: str) -> None:
    """Refuse what would run beside our statements: a trigger could keep what is forgotten, a view invent.

    Asked when a store is opened: what the file was handed over with is looked at before anything is written.

    Raises:
        StoreDamagedError: there is a trigger or a view in the file, and no store has one.
    """
    planted = "SELECT type FROM sqlite_master WHERE type IN ('trigger','view') LIMIT 1"
    row = connection.execute(planted).fetchone()
    if row is not None:
        raise StoreDamagedError(path, f"there is a {row[0]} in it, and no store has one")


def stored_analyser_version(connection: sqlite3.Connection, path: str) -> int:
    """The version of the analyser that made the postings."""
    return _number(connection, "analyser_version", path)


def forgets(connection: sqlite3.Connection, path: str) -> int:
    """How often somebody was forgotten."""
    return _number(connection, "forgets", path)


def _number(connection: sqlite3.Connection, name: str, path: str) -> int:
    row = connection.execute("SELECT value FROM meta WHERE name=?", (name,)).fetchone()
    if row is None or type(row[0]) is not int:
        raise StoreDamagedError(path, f"`{name}` in its table meta is no number")
    return row[0]


def _first_values(connection: sqlite3.Connection) -> None:
    connection.executemany(
        "INSERT OR IGNORE INTO meta(name, value) VALUES(?, ?)",
        [("store_key", secrets.token_bytes(32)), ("analyser_version", ANALYSER_VERSION), ("forgets", 0)],
    )


def _check_owner(connection: sqlite3.Connection, application_id: int, path: str) -> None:
    # The tables first: whoever makes them between the two looks sets the id in the same transaction.
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    found = connection.execute("PRAGMA application_id").fetchone()[0]
    if found == application_id:
        return
    if found or tables:
        raise StoreForeignError(path, "is no store: the file belongs to another program")


def _version(connection: sqlite3.Connection, newest: int, path: str) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > newest:
        raise StoreVersionError(path, f"the file has version {version}, the newest known is {newest}")
    if version < 0:
        raise StoreDamagedError(path, f"the file has version {version}")
    return version
