"""Make the postings anew where another version of the analyser made them; only the owner can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_runtime_ref.recall.analysis import ANALYSER_VERSION, label_terms, record_terms

if TYPE_CHECKING:
    import psycopg

_AT_ONCE = 1000
_TABLES = ("records", "contents", "postings")
_SOURCE = (
    "SELECT r.tenant_id, r.rid, r.kind, r.key, t.summary, t.content FROM records r"
    " JOIN contents t ON t.tenant_id = r.tenant_id AND t.rid = r.rid"
    " WHERE (r.tenant_id, r.rid) > (%s, %s) ORDER BY r.tenant_id, r.rid LIMIT %s"
)


def reindex_if_changed(connection: psycopg.Connection) -> bool:
    """Rebuild the postings within the open transaction if they are another analyser's; True if they were."""
    row = connection.execute("SELECT value FROM meta WHERE name = 'analyser_version'").fetchone()
    if row == (str(ANALYSER_VERSION).encode(),):
        return False
    # The owner sees no row of a tenant while the walls are forced upon it. Nobody else is let in meanwhile:
    # ALTER TABLE locks the tables until the transaction ends.
    for name in _TABLES:
        connection.execute(f"ALTER TABLE {name} NO FORCE ROW LEVEL SECURITY".encode())
    connection.execute("DELETE FROM postings")
    _index(connection)
    for name in _TABLES:
        connection.execute(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY".encode())
    connection.execute(
        "UPDATE meta SET value = %s WHERE name = 'analyser_version'", (str(ANALYSER_VERSION).encode(),)
    )
    return True


def _index(connection: psycopg.Connection) -> None:
    after = ("", -1)
    while found := connection.execute(_SOURCE, (*after, _AT_ONCE)).fetchall():
        postings = []
        for tenant_id, rid, kind, key, summary, content in found:
            text = record_terms(summary, content)
            postings += [(tenant_id, term, rid, False) for term in text]
            postings += [(tenant_id, term, rid, True) for term in label_terms(kind, key) - text]
            after = (tenant_id, rid)
        with (
            connection.cursor() as cursor,
            cursor.copy("COPY postings (tenant_id, term, rid, label) FROM STDIN") as copy,
        ):
            for posting in postings:
                copy.write_row(posting)
