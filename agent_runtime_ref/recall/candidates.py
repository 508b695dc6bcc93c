"""Candidate: which conversation records share a term with the query; no score, no rank, nothing written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from agent_runtime_ref.contracts.stored import MemoryKind, StoredMemory, captured
from agent_runtime_ref.errors import RemoteMemoryScopeError
from agent_runtime_ref.recall.analysis import record_terms
from agent_runtime_ref.recall.query import RecallQuery

__all__ = ["RecallCandidate", "active_conversations", "build_recall_candidates", "retracted_ids"]


@dataclass(frozen=True, slots=True)
class RecallCandidate:
    """A record that may answer a query; neither copied nor changed."""

    query_id: str
    record: StoredMemory
    searchable_terms: tuple[str, ...]
    matched_terms: tuple[str, ...]  # in the order of the query's terms
    captured_at: datetime


def build_recall_candidates(
    query: RecallQuery, records: Iterable[StoredMemory]
) -> tuple[RecallCandidate, ...]:
    """Return the candidates among `records`, in their order; what was taken back is none.

    Raises:
        RemoteMemoryScopeError: a record belongs to another user than the query.
    """
    found = []
    for record in active_conversations(records):
        if record.user_scope != query.user_scope:
            raise RemoteMemoryScopeError(f"record `{record.memory_id}` belongs to another user scope")
        terms = record_terms(record.summary, record.content)
        matched = tuple(term for term in query.terms if term in terms)
        if matched:
            moment = captured("captured_at", record.source.captured_at)
            found.append(RecallCandidate(query.query_id, record, tuple(sorted(terms)), matched, moment))
    return tuple(found)


def active_conversations(records: Iterable[StoredMemory]) -> list[StoredMemory]:
    """Return the conversation records that no retraction takes back, in their order."""
    held = list(records)
    gone = retracted_ids(held)
    return [
        record for record in held if record.kind is MemoryKind.CONVERSATION and record.memory_id not in gone
    ]


def retracted_ids(records: Iterable[StoredMemory]) -> frozenset[str]:
    """Return the ids that retractions among `records` take back, before or after them."""
    return frozenset(record.retracts for record in records if record.retracts is not None)
