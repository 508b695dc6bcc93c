"""Seed records on their way through the write gate: a file is a source like any other.

The file fixes ids, revisions and instants. Trust, retention and admission are the policy's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from agent_runtime_ref.clock import microseconds
from agent_runtime_ref.contracts import Caller, MemoryCandidate, MemoryRecord
from agent_runtime_ref.contracts.projection import candidate_of
from agent_runtime_ref.contracts.stored import StoredMemory, captured, user_scope_of
from agent_runtime_ref.enforcement.prepared import Pinned
from agent_runtime_ref.enforcement.write import Outcome, WriteGate
from agent_runtime_ref.errors import (
    EngineFailureError,
    PolicyDeniedError,
    RemoteMemoryScopeError,
    SeedsRefusedError,
)

PRINCIPAL = "seed-loader"
# Whoever may name the seed file of a process may also curate what is in it.
ROLES = ("curator", "operator")


def load_through_gate(records: Sequence[MemoryRecord], gate: WriteGate) -> None:
    """Write `records`, each in its own tenant.

    Raises:
        SeedsRefusedError: the policy refuses at least one; all refused ones are named.
        EngineFailureError: the engine gave no clear answer.
    """
    refused: list[tuple[int, str, PolicyDeniedError]] = []
    numbered = enumerate(records, start=1)
    for tenant_id, group in groupby(numbered, key=lambda pair: pair[1].tenant_id):
        batch = list(group)
        caller = Caller(tenant_id=tenant_id, principal_id=PRINCIPAL, roles=ROLES)
        try:
            outcomes = gate.load(
                [(_candidate(record), _pinned(record)) for _, record in batch], caller=caller
            )
        except EngineFailureError as failure:
            # Whoever only reads would not look for a write that was refused.
            detail = f"while seed records were loaded: {failure.detail}"
            raise EngineFailureError(failure.reason, detail, decision=failure.decision) from failure
        refused.extend(
            (number, record.memory_id, outcome)
            for (number, record), outcome in zip(batch, outcomes, strict=True)
            if isinstance(outcome, PolicyDeniedError)
        )
    if refused:
        raise SeedsRefusedError(refused)


def load_stored(records: Iterable[StoredMemory], gate: WriteGate, *, caller: Caller) -> list[Outcome]:
    """Write a user's stored memories as records about the caller's subject; return what became of each.

    Raises:
        RemoteMemoryScopeError: one of them belongs to another user.
    """
    tenant_id, subject = caller.tenant_id, caller.own_subject
    held = list(records)
    user_scope = user_scope_of(subject)
    for one in held:
        if one.user_scope != user_scope:
            raise RemoteMemoryScopeError(f"record `{one.memory_id}` belongs to another user scope")
    return gate.load(
        [(candidate_of(one, tenant_id=tenant_id, subject=subject), _kept(one)) for one in held],
        caller=caller,
    )


def _kept(stored: StoredMemory) -> Pinned:
    kept_us = microseconds(captured("stored_at", stored.stored_at))
    return Pinned(stored.memory_id, 1, kept_us, None, "active")


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
