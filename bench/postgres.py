"""PostgreSQL beside SQLite: what governing adds to a read by words on either, and what the wall costs.

A server of its own on loopback, as shipped but for its folder, holds the same records as the SQLite file.
What governing adds is the time of a governed read less that of the bare look-up in the same tables: the
postings of the tenant's terms with the records they name, best first, as somebody would write it who asks no
policy, checks no second time, counts nothing and logs nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.recall.analysis import query_terms
from agent_runtime_ref.stores.postgres import PostgresStore
from bench.data import NOW_US, Corpus, Question, questions
from bench.direct import DirectWriter
from bench.governed import Clock, Reader, opened
from bench.ratios import Timings, interleaved, p50
from bench.report import Line, Measured, Times
from tests.postgres import APPLICATION, SERVICE, NoPostgresError, PostgresProcess, programs, started

if TYPE_CHECKING:
    import psycopg

ADDED_BOUND = 1.2
WALL_BOUND = 1.2
RECORDS = 20_000
_WARM_UP = 30
_LIMIT = 10

_COLUMNS = "r.memory_id,r.memory_class,r.kind,r.key,r.source,r.provenance,r.trust_rank,r.created_us,t.content"
_SQLITE = (
    "SELECT {columns} FROM (SELECT rid,count(*) AS n FROM postings WHERE tid=? AND term IN ({terms})"
    " GROUP BY rid) m CROSS JOIN records r ON r.rid=m.rid CROSS JOIN contents t ON t.rid=m.rid"
    " WHERE r.status='active' AND (r.expires_us IS NULL OR r.expires_us>?)"
    " ORDER BY n DESC,r.trust_rank DESC,r.created_us DESC,r.memory_id LIMIT ?"
)
_POSTGRES = (
    "SELECT {columns} FROM (SELECT rid,count(*) AS n FROM postings"
    " WHERE tenant_id=$1 AND term=ANY($2::text[]) GROUP BY rid) m"
    " JOIN records r ON r.tenant_id=$1 AND r.rid=m.rid"
    " JOIN contents t ON t.tenant_id=$1 AND t.rid=m.rid"
    " WHERE r.status='active' AND (r.expires_us IS NULL OR r.expires_us>$3)"
    " ORDER BY n DESC,r.trust_rank DESC,r.created_us DESC,r.memory_id LIMIT $4"
)
Look = Callable[[Question], object]


def measure(scratch: Path, *, rounds: int, records: int = RECORDS) -> Measured:
    """Measure both ratios; where there is no server, say so."""
    try:
        programs()
    except NoPostgresError as error:
        return Measured(skipped=[f"PostgreSQL: {error}"])
    corpus = Corpus(records)
    file = scratch / "beside-postgres.db"
    with started() as server:
        database = server.migrated_database()
        _fill(DirectWriter(f"sqlite:{file}"), corpus)
        _fill(DirectWriter(server.url(SERVICE, database)), corpus)
        server.run("VACUUM ANALYZE", database)
        asked = questions(corpus, rounds + _WARM_UP, salt="postgres", row="rare")
        with _contenders(server, database, file) as contenders:
            added = interleaved(contenders, asked, seed="postgres", warm_up=_WARM_UP)
        with _walls(server, database) as contenders:
            walls = interleaved(contenders, asked, seed="walls", warm_up=_WARM_UP)
    return Measured(_lines(added, walls), _times(added, walls))


def _fill(writer: DirectWriter, corpus: Corpus) -> None:
    with closing(writer):
        for part in corpus.slices():
            writer.put(part)


@contextmanager
def _contenders(server: PostgresProcess, database: str, file: Path) -> Iterator[dict[str, Look]]:
    """Give governed and bare reads on both."""
    url = server.url(SERVICE, database)
    with (
        opened(file) as beside,
        GovernedMemory.open(url, clock=Clock()) as memory,
        closing(PostgresStore(url)) as store,
        closing(sqlite3.connect(file, isolation_level=None)) as plain,
    ):
        sqlite_reader, reader = Reader(beside), Reader(memory)
        tenants = dict(plain.execute("SELECT tenant_id,tid FROM tenants"))
        yield {
            "SQLite, governed": sqlite_reader.read,
            "SQLite, bare": lambda one: _sqlite(plain, tenants[one.tenant_id], one),
            "PostgreSQL, governed": reader.read,
            "PostgreSQL, bare": lambda one: _bare(store, one),
        }


def _sqlite(connection: sqlite3.Connection, tid: int, question: Question) -> list[Any]:
    terms = _terms(question)
    sql = _SQLITE.format(columns=_COLUMNS, terms=",".join("?" * len(terms)))
    return connection.execute(sql, (tid, *terms, NOW_US, _LIMIT)).fetchall()


def _bare(store: PostgresStore, question: Question) -> list[Any]:
    """The look-up within the walls, over a connection of the pool, in one round trip."""
    values = (question.tenant_id, list(_terms(question)), NOW_US, _LIMIT)
    return store._pool.ask(question.tenant_id, _POSTGRES.format(columns=_COLUMNS), values)


def _terms(question: Question) -> Sequence[str]:
    assert question.text is not None
    return query_terms(question.text)


@contextmanager
def _walls(server: PostgresProcess, database: str) -> Iterator[dict[str, Look]]:
    """Give the same statement in the application's role and, past the walls, as a superuser."""
    import psycopg

    from agent_runtime_ref.stores.postgres.connection import SETTINGS
    from agent_runtime_ref.stores.postgres.session import Session

    def session_of(role: str) -> Session:
        connection: psycopg.Connection = psycopg.connect(
            server.admin(database), autocommit=True, options=SETTINGS, cursor_factory=psycopg.RawCursor,
            prepare_threshold=0,
        )  # fmt: skip
        for setting in ("plan_cache_mode=force_generic_plan", "enable_hashjoin=off", "enable_mergejoin=off"):
            connection.execute(f"SET {setting}".encode())
        connection.execute(f"SET ROLE {role}".encode())
        return Session(connection, "")

    sql = _POSTGRES.format(columns=_COLUMNS)

    def look(session: Session) -> Look:
        return lambda one: session.alone(
            one.tenant_id, sql, (one.tenant_id, list(_terms(one)), NOW_US, _LIMIT)
        )

    walled, open_ = session_of(APPLICATION), session_of("postgres")
    with closing(walled.connection), closing(open_.connection):
        yield {"walled": look(walled), "not walled": look(open_)}


def _lines(added: Timings, walls: Timings) -> list[Line]:
    times = {name: p50(found) for name, found in added.wall.items()}
    postgres = times["PostgreSQL, governed"] - times["PostgreSQL, bare"]
    sqlite = times["SQLite, governed"] - times["SQLite, bare"]
    wall = walls.ratio("walled", "not walled")
    return [
        Line(
            "read, PostgreSQL: what governing adds, over what it adds on SQLite",
            postgres / sqlite,
            ADDED_BOUND,
        ),
        Line("query, PostgreSQL: row-level security / without it, p50", wall.p50, WALL_BOUND, note=wall.note),
    ]


def _times(added: Timings, walls: Timings) -> list[Times]:
    names = {
        "walled": "query, PostgreSQL: with row-level security",
        "not walled": "query, PostgreSQL: without",
    }
    return [
        *(Times(f"read, three rare terms: {name}", found) for name, found in sorted(added.wall.items())),
        *(Times(names[name], found) for name, found in sorted(walls.wall.items())),
    ]
