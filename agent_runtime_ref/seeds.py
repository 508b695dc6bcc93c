"""Seed records on their way through the write gate: a file is a source like any other.

The file fixes ids, revisions and instants. Trust, retention and admission are the policy's.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from agent_runtime_ref.clock import microseconds
from agent_runtime_ref.contracts import Caller, MemoryCandidate, MemoryRecord
from agent_runtime_ref.enforcement.prepared import Pinned
from agent_runtime_ref.enforcement.write import WriteGate
from agent_runtime_ref.errors import PolicyDeniedError, SeedsRefusedError

PRINCIPAL = "seed-loader"
# Whoever may name the seed file of a process may also curate what is in it.
ROLES = ("curator", "operator")


def load_through_gate(records: Sequence[MemoryRecord], gate: WriteGate) -> None:
    """Write `records`, each in its own tenant.

    Raises:
        SeedsRefusedError: the policy refuses at least one; all refused ones are named.
    """
    refused: list[tuple[int, str, PolicyDeniedError]] = []
    numbered = enumerate(records, start=1)
    for tenant_id, group in groupby(numbered, key=lambda pair: pair[1].tenant_id):
        batch = list(group)
        caller = Caller(tenant_id=tenant_id, principal_id=PRINCIPAL, roles=ROLES)
        outcomes = gate.load([(_candidate(record), _pinned(record)) for _, record in batch], caller=caller)
        refused.extend(
            (number, record.memory_id, outcome)
            for (number, record), outcome in zip(batch, outcomes, strict=True)
            if isinstance(outcome, PolicyDeniedError)
        )
    if refused:
        raise SeedsRefusedError(refused)


def _candidate(record: MemoryRecord) -> MemoryCandidate:
    return MemoryCandidate(
        record.tenant_id,
        record.memory_class,
        record.kind,
        record.content,
        record.source,
        record.confidence,
        record.provenance,
        key=record.key,
        subject=record.subject,
        summary=record.summary,
        origin=record.origin,
        derived_from=record.derived_from,
        scope=record.scope,
    )


def _pinned(record: MemoryRecord) -> Pinned:
    created = None if record.created_at is None else microseconds(record.created_at)
    expires = None if record.expires_at is None else microseconds(record.expires_at)
    return Pinned(record.memory_id, record.revision, created, expires, record.status)
