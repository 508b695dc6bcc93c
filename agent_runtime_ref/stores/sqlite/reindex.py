"""Make the postings anew where another version of the analyser made them."""

import sqlite3

from agent_runtime_ref.recall.analysis import ANALYSER_VERSION, label_terms, record_terms
from agent_runtime_ref.stores.sqlite.connection import ConnectionPool, translated
from agent_runtime_ref.stores.sqlite.rows import understood
from agent_runtime_ref.stores.sqlite.schema import stored_analyser_version

_AT_ONCE = 1000
_SOURCE = (
    "SELECT r.rid, r.tid, r.kind, r.key, t.summary, t.content FROM records r JOIN contents t ON t.rid=r.rid"
    " WHERE r.rid>? ORDER BY r.rid LIMIT ?"
)


def reindex_if_changed(pool: ConnectionPool) -> bool:
    """Rebuild the postings in one transaction if they are another analyser's; True if they were."""
    with translated(pool.path):
        if stored_analyser_version(pool.get(), str(pool.path)) == ANALYSER_VERSION:
            return False
    with pool.transaction() as connection:
        if stored_analyser_version(connection, str(pool.path)) != ANALYSER_VERSION:
            connection.execute("DELETE FROM postings")
            with understood(str(pool.path)):
                _index(connection)
            connection.execute("UPDATE meta SET value=? WHERE name='analyser_version'", (ANALYSER_VERSION,))
    return True


def _index(connection: sqlite3.Connection) -> None:
    after = 0
    while found := connection.execute(_SOURCE, (after, _AT_ONCE)).fetchall():
        postings = []
        for rid, tid, kind, key, summary, content in found:
            text = record_terms(summary, content)
            postings += [(tid, term, rid, 0) for term in text]
            postings += [(tid, term, rid, 1) for term in label_terms(kind, key) - text]
            after = rid
        connection.executemany("INSERT INTO postings(tid,term,rid,label) VALUES(?,?,?,?)", sorted(postings))
