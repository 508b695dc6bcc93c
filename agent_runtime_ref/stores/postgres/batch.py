"""A batch in one transaction: locks first, in one order, then each tenant's part, then its log lines."""

from __future__ import annotations

from agent_runtime_ref.stores.base import Change, CommitOutcome, WriteBatch
from agent_runtime_ref.stores.chains import tenant_of, tenants_of
from agent_runtime_ref.stores.postgres import log, removal, write
from agent_runtime_ref.stores.postgres.session import Session

_COUNT_ON = "UPDATE chains SET rid=$2 WHERE tenant_id=$1 AND NOT reads"


def locked(session: Session, batch: WriteBatch) -> dict[str, int]:
    """The number of the last record of each tenant; nobody else writes for them until the session ends."""
    named = tenants_of(batch)
    teller = tenant_of(batch)
    if batch.lines and teller is not None:
        named.add(teller)
    # In one order for everybody, so that two batches never wait for each other.
    return {tenant: log.locked(session, tenant, reads=False)[2] for tenant in sorted(named)}


def put(session: Session, batch: WriteBatch, last_rids: dict[str, int], *, place: str) -> list[CommitOutcome]:
    """Put what the batch holds; what became of each change, in order."""
    parts: dict[str, list[tuple[int, Change]]] = {}
    for number, change in enumerate(batch.changes):
        parts.setdefault(change.record.tenant_id, []).append((number, change))
    outcomes: dict[int, CommitOutcome] = {}
    for tenant, part in parts.items():
        session.become(tenant)
        changes = [change for _, change in part]
        made, last = write.put(
            session, tenant, changes, now_us=batch.now_us, last_rid=last_rids[tenant], place=place
        )
        session.run(_COUNT_ON, (tenant, last))
        outcomes |= {number: outcome for (number, _), outcome in zip(part, made, strict=True)}
    for one in batch.rejected:
        record = one.queued.record
        session.become(record.tenant_id)
        removal.remove_by_id(session, record.tenant_id, [record.memory_id])
        removal.mark(session, record.tenant_id, one.tombstones, batch.now_us)
    log.append(session, tenant_of(batch), batch.lines, reads=False, place=place)
    return [outcomes[number] for number in range(len(batch.changes))]
