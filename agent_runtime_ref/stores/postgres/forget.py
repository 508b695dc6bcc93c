"""Remove a subject from a tenant: every revision, what was derived from it, terms, dedup keys and log key.

The rows are gone when this is committed. Their bytes stay in the files of the database until they are
vacuumed away, which the tables ask for early, and in its write-ahead log and backups as long as these are
kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from agent_runtime_ref.stores.base import ForgetCounts
from agent_runtime_ref.stores.digests import tombstone_digest
from agent_runtime_ref.stores.postgres import log
from agent_runtime_ref.stores.postgres.removal import mark, remove
from agent_runtime_ref.stores.postgres.session import Session

# UNION, not UNION ALL: what is derived in a circle is met once.
_DOOMED = """
WITH RECURSIVE doomed(rid) AS (
    SELECT r.rid FROM records r WHERE r.tenant_id=$1 AND r.subject=$2
    UNION
    SELECT d.rid FROM doomed JOIN records p ON p.tenant_id=$1 AND p.rid=doomed.rid
    JOIN derivations d ON d.tenant_id=$1 AND d.parent_id=p.memory_id)
SELECT r.rid,coalesce(r.subject=$2,false),r.status,r.memory_class,r.subject,t.content,t.original,
    (SELECT count(*) FROM postings s WHERE s.tenant_id=$1 AND s.rid=r.rid)
FROM doomed JOIN records r ON r.tenant_id=$1 AND r.rid=doomed.rid
JOIN contents t ON t.tenant_id=$1 AND t.rid=doomed.rid
ORDER BY r.rid"""
_DEDUP = "SELECT count(*) FROM dedup WHERE tenant_id=$1 AND rid=ANY($2)"


class Request(NamedTuple):
    """Whom to forget, and when that was decided."""

    tenant_id: str
    subject: str
    now_us: int
    store_key: bytes


class _Doomed(NamedTuple):
    """A record that is to go."""

    rid: int
    own: bool
    status: str
    memory_class: str
    subject: str | None
    content: str
    original: bytes | None
    postings: int


def forget(
    session: Session,
    request: Request,
    *,
    dry_run: bool,
    lines_for: Callable[[ForgetCounts], Sequence[str]],
    place: str,
) -> ForgetCounts:
    """Remove a subject, or count what would be removed, within the session's transaction, log lines too."""
    tenant_id, subject = request.tenant_id, request.subject
    log.locked(session, tenant_id, reads=False)
    found = [_Doomed(*row) for row in session.rows(_DOOMED, (tenant_id, subject))]
    counted = replace(_counts(session, found, request), dry_run=dry_run)
    if not dry_run:
        remove(session, tenant_id, [one.rid for one in found])
        digests = {digest for digests in counted.digests.values() for digest in digests}
        mark(session, tenant_id, map(bytes.fromhex, digests), request.now_us)
        held = session.rows(
            "SELECT 1 FROM subject_keys WHERE tenant_id=$1 AND subject=$2", (tenant_id, subject)
        )
        counted = replace(counted, log_key_destroyed=bool(held))
    # The lines may need the subject's key, so it is destroyed after they are made.
    log.append(session, tenant_id, lines_for(counted), reads=False, place=place)
    if not dry_run:
        session.run("DELETE FROM subject_keys WHERE tenant_id=$1 AND subject=$2", (tenant_id, subject))
        session.run("UPDATE forgettings SET count=count+1")
    return counted


def _counts(session: Session, found: Sequence[_Doomed], request: Request) -> ForgetCounts:
    digests: dict[str, set[str]] = {}
    for one in found:
        digest = tombstone_digest(request.store_key, request.tenant_id, one.subject, one.content)
        marks = {mark.hex() for mark in (digest, one.original) if mark is not None}
        digests.setdefault(one.memory_class, set()).update(marks)
    return ForgetCounts(
        records=sum(one.own for one in found),
        derived=sum(not one.own for one in found),
        superseded=sum(one.status == "superseded" for one in found),
        postings=sum(one.postings for one in found),
        dedup_keys=session.rows(_DEDUP, (request.tenant_id, [one.rid for one in found]))[0][0],
        tombstones=len(set().union(*digests.values())) if digests else 0,
        by_class=dict(sorted(Counter(one.memory_class for one in found).items())),
        digests={name: tuple(sorted(values)) for name, values in sorted(digests.items())},
    )
