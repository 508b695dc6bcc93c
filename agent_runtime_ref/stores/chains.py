"""Chains of a store that keeps one for each tenant: whose lines are whose, and what a chain is called."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from functools import partial
from typing import Protocol

from agent_runtime_ref.stores.base import Chain, ChainedByTenant, Store, WriteBatch
from agent_runtime_ref.telemetry.chain import Lines
from agent_runtime_ref.telemetry.places import READS, chain_name


def chain_of(store_key: bytes, tenant_id: str | None, *, read: bool) -> str:
    """What a chain is called outside the store, where it must not tell the tenant."""
    kind = "reads" if read else "writes"
    if tenant_id is None:
        return kind
    digest = hmac.digest(store_key, b"chain" + tenant_id.encode("utf-8", "surrogatepass"), hashlib.sha256)
    return f"{kind}:{digest.hex()[:32]}"


def chain_with(store: Store, tenant_id: str, *, read: bool) -> Chain:
    """Return the chain that the lines of a tenant go to: its own, else that of the whole store."""
    if isinstance(store, ChainedByTenant):
        return store.chain(tenant_id, read)
    name = chain_name(store.log_mode, read=read)
    return Chain(name, None, partial(store.raw_log, name == READS))


class Logs(Protocol):
    """A log that is a chain for each tenant, and one for what belongs to none."""

    def tenants(self, read: bool) -> list[str]:
        """The tenants that have a chain, in order."""

    def lines(self, tenant: str | None, read: bool, /) -> Iterator[str]:
        """The sealed lines of one chain, oldest first."""

    def raw(self, tenant: str | None, read: bool, after: int = 0, /) -> Iterator[bytes]:
        """The same in whatever state they are, those behind line `after`."""


def chains_of(log: Logs, store_key: bytes, read: bool) -> Iterator[Chain]:
    """Every chain of one of the two logs; the store's own is always there, and first."""
    tenants: list[str | None] = [None, *log.tenants(read)]
    for tenant in tenants:
        yield Chain(chain_of(store_key, tenant, read=read), tenant, partial(log.raw, tenant, read))


def lines_of(log: Logs, read: bool) -> Iterator[str]:
    """The sealed lines of one of the two logs, chain after chain."""
    for tenant in (None, *log.tenants(read)):
        yield from log.lines(tenant, read)


def raw_lines_of(log: Logs, read: bool, after: int) -> Iterator[bytes]:
    """The same lines in whatever state they are, of each chain those behind line `after`."""
    for tenant in (None, *log.tenants(read)):
        yield from log.raw(tenant, read, after)


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
