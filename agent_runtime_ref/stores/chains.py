"""Chains of a store that keeps one for each tenant: whose lines are whose, and what a chain is called."""

from __future__ import annotations

import hashlib
import hmac

from agent_runtime_ref.stores.base import WriteBatch
from agent_runtime_ref.telemetry.chain import Lines


def chain_of(store_key: bytes, tenant_id: str | None, *, read: bool) -> str:
    """What a chain is called outside the store, where it must not tell the tenant."""
    kind = "reads" if read else "writes"
    if tenant_id is None:
        return kind
    digest = hmac.digest(store_key, b"chain" + tenant_id.encode("utf-8", "surrogatepass"), hashlib.sha256)
    return f"{kind}:{digest.hex()[:32]}"


def tenant_of(batch: WriteBatch) -> str | None:
    """Whose chain the lines of a batch belong to: as they say, else the one that the batch is about."""
    if isinstance(batch.lines, Lines) and batch.lines.tenant_id is not None:
        return batch.lines.tenant_id
    named = tenants_of(batch)
    return next(iter(named)) if len(named) == 1 else None


def tenants_of(batch: WriteBatch) -> set[str]:
    """Every tenant that a batch is about."""
    return {
        *(change.record.tenant_id for change in batch.changes),
        *(one.tenant_id for one in batch.held),
        *(one.queued.record.tenant_id for one in batch.rejected),
    }
