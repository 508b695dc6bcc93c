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

# One table each, by its index: where a table has just been filled nobody has counted it yet, and a join of
# several would be planned for a handful of rows.
_OWN = "SELECT rid,memory_id FROM records WHERE tenant_id=$1 AND subject=$2"
_DERIVED = "SELECT DISTINCT rid FROM derivations WHERE tenant_id=$1 AND parent_id=ANY($2)"
_NAMED = "SELECT rid,memory_id FROM records WHERE tenant_id=$1 AND rid=ANY($2)"
_RECORDS = (
    "SELECT rid,coalesce(subject=$3,false),status,memory_class,subject FROM records"
    " WHERE tenant_id=$1 AND rid=ANY($2) ORDER BY rid"
)
_CONTENTS = "SELECT rid,content,original FROM contents WHERE tenant_id=$1 AND rid=ANY($2)"
_POSTINGS = "SELECT rid,count(*) FROM postings WHERE tenant_id=$1 AND rid=ANY($2) GROUP BY rid"
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
    found = _doomed(session, tenant_id, subject)
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


def _doomed(session: Session, tenant_id: str, subject: str) -> list[_Doomed]:
    """The subject's records and all that was derived from them, whoever that is about."""
    open_ids: dict[int, str] = dict(session.rows(_OWN, (tenant_id, subject)))
    reached = set(open_ids)
    while open_ids:
        derived = session.rows(_DERIVED, (tenant_id, list(open_ids.values())))
        fresh = [row[0] for row in derived if row[0] not in reached]  # a circle is met once
        reached.update(fresh)
        open_ids = dict(session.rows(_NAMED, (tenant_id, fresh))) if fresh else {}
    rids = sorted(reached)
    contents = {row[0]: row[1:] for row in session.rows(_CONTENTS, (tenant_id, rids))}
    postings: dict[int, int] = dict(session.rows(_POSTINGS, (tenant_id, rids)))
    found = session.rows(_RECORDS, (tenant_id, rids, subject))
    return [_Doomed._make((*row, *contents[row[0]], postings.get(row[0], 0))) for row in found]


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
