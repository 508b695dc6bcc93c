"""The in-memory store of the seeds, and the seed records themselves.

`MemoryStore` lies below the gates: it applies no policy, assigns no trust and keeps no log. An agent reads
and writes through `GovernedMemory`; this is what a test, a script or a first look uses.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from threading import RLock
from typing import Any

from agent_runtime_ref import validation
from agent_runtime_ref.clock import Clock, Ids, RandomIds, SystemClock, instant, microseconds
from agent_runtime_ref.contracts import MemoryCandidate, MemoryRecord, Origin
from agent_runtime_ref.errors import DocumentTypeError, DocumentValueError
from agent_runtime_ref.recall.analysis import (
    TEXT_CHARACTERS_MAX,
    label_terms,
    normalize_text,
    query_terms,
    record_terms,
)
from agent_runtime_ref.recall.rank import RankKey, rank_key
from agent_runtime_ref.recall.score import age_us, score_millionths
from agent_runtime_ref.resources import configs_path

__all__ = ["MemoryCandidate", "MemoryRecord", "MemoryStore", "seed_records"]

_SCHEMA = "memory_store_config"
_TRUST_RANKS = {"low": 1, "medium": 2, "high": 3}


class MemoryStore:
    """Records in memory, in the order in which they came.

    Raises:
        DocumentTypeError: one of `records` is no MemoryRecord.
        DocumentValueError: two of them share an id.
    """

    def __init__(
        self,
        records: Iterable[MemoryRecord] | None = None,
        *,
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        given = seed_records() if records is None else _demanded(records)
        self._records = {record.memory_id: record for record in given}
        self._clock = SystemClock() if clock is None else clock
        self._ids = RandomIds() if ids is None else ids
        self._lock = RLock()

    @classmethod
    def from_dict(
        cls, document: Mapping[str, Any], *, clock: Clock | None = None, ids: Ids | None = None
    ) -> MemoryStore:
        """Return the store of a document of the shape of memory.yaml."""
        # A path is no mapping: a string must not make this method open a file.
        checked = None if isinstance(document, str | bytes | os.PathLike) else document
        return cls(seed_records(checked, bundled=False), clock=clock, ids=ids)

    def all(self) -> tuple[MemoryRecord, ...]:
        """Return every record, of whatever status and tenant."""
        with self._lock:
            return tuple(self._records.values())

    def retrieve(self, query: str, tenant_id: str, *, limit: int = 3) -> list[MemoryRecord]:
        """Return the tenant's live records, best first; those that share no term with the query come last."""
        _demand_text("query", query)
        _demand_text("tenant_id", tenant_id)
        _demand_limit(limit)
        terms = _terms(query)
        now_us = self._clock.now_us()
        live = [record for record in self.all() if record.tenant_id == tenant_id and _is_live(record, now_us)]
        live.sort(key=lambda record: _rank(record, terms, now_us))
        return live[:limit]

    def persist(self, candidate: MemoryCandidate) -> MemoryRecord:
        """Keep a candidate and return its record; `replace` supersedes the active one of the same key.

        Raises:
            DocumentError: it is no candidate, or one that its schema refuses.
        """
        if not isinstance(candidate, MemoryCandidate):
            raise DocumentTypeError("Memory store candidate must be MemoryCandidate")
        validation.check("memory_candidate", candidate.to_document())
        with self._lock:
            head = self._head(candidate) if candidate.revision_mode == "replace" else None
            record = self._made(candidate, 1 if head is None else head.revision + 1)
            if head is not None and candidate.key is not None:
                self._records[head.memory_id] = replace(head, status="superseded")
            self._records[record.memory_id] = record
        return record

    def compact(self, tenant_id: str) -> int:
        """Remove the tenant's superseded, expired and repeated records; return how many."""
        _demand_text("tenant_id", tenant_id)
        now_us = self._clock.now_us()
        with self._lock:
            own = [record for record in self._records.values() if record.tenant_id == tenant_id]
            kept: dict[object, str] = {}
            removed = []
            for record in sorted(own, key=lambda record: -record.revision):
                gone = record.status != "quarantined" and not _is_live(record, now_us)
                if gone or kept.setdefault(_sameness(record), record.memory_id) != record.memory_id:
                    removed.append(record.memory_id)
            for memory_id in removed:
                del self._records[memory_id]
        return len(removed)

    def _head(self, candidate: MemoryCandidate) -> MemoryRecord | None:
        """Return the record whose revision a replacement continues.

        Without a key that is the highest revision of (tenant, class, kind): continued, never superseded.
        """
        found = [
            record
            for record in self._records.values()
            if record.tenant_id == candidate.tenant_id
            and record.memory_class == candidate.memory_class
            and record.kind == candidate.kind
            and (candidate.key is None or _takes_its_place(candidate, record))
        ]
        return max(found, key=lambda record: record.revision, default=None)

    def _made(self, candidate: MemoryCandidate, revision: int) -> MemoryRecord:
        """Return the record of a candidate, with an id and an instant of its own."""
        return MemoryRecord(
            self._ids.new("mem"),
            candidate.tenant_id,
            candidate.memory_class,
            candidate.kind,
            candidate.content,
            candidate.source,
            candidate.confidence,
            candidate.provenance,
            revision,
            subject=candidate.subject,
            key=candidate.key,
            summary=candidate.summary,
            origin=candidate.origin,
            created_at=instant(self._clock.now_us()),
            derived_from=candidate.derived_from,
            scope=candidate.scope,
        )


def seed_records(source: object = None, *, bundled: bool = True) -> list[MemoryRecord]:
    """Return the records of a memory.yaml: of a path, of a mapping, or (None) the bundled ones.

    Raises:
        DocumentTypeError, DocumentValueError: the first error, in the documented order, with its place.
    """
    if source is None and bundled:
        source = configs_path() / "memory.yaml"
    document = validation.load_document(source, schema=_SCHEMA)
    return [_seed(index, part) for index, part in enumerate(document["memory"]["seed_records"], start=1)]


def _seed(index: int, part: Mapping[str, Any]) -> MemoryRecord:
    """Return the record of one checked entry; `index` counts from 1."""
    return MemoryRecord(
        part.get("memory_id", f"mem-{index:03d}"),
        part["tenant_id"],
        part["memory_class"],
        part["kind"],
        part["content"],
        part["source"],
        part.get("confidence", 0.5),
        part.get("provenance", "unknown"),
        part.get("revision", 1),
        subject=part.get("subject"),
        key=part.get("key"),
        summary=part.get("summary"),
        origin=Origin.from_checked(part.get("origin")),
        created_at=_instant(part.get("created_at")),
        expires_at=_instant(part.get("expires_at")),
        derived_from=tuple(part.get("derived_from", ())),
        scope=tuple(part.get("scope", ())),
    )


def _instant(text: str | None) -> datetime | None:
    """Return the instant of a checked text."""
    return None if text is None else datetime.fromisoformat(text)


def _demanded(records: object) -> list[MemoryRecord]:
    """Return `records` as a list of records with distinct ids."""
    if not isinstance(records, Iterable) or isinstance(records, str | bytes | Mapping):
        raise DocumentTypeError("Memory store records must be MemoryRecord")
    found = list(records)
    if not all(isinstance(record, MemoryRecord) for record in found):
        raise DocumentTypeError("Memory store records must be MemoryRecord")
    seen: set[str] = set()
    for index, record in enumerate(found, start=1):
        if record.memory_id in seen:
            raise DocumentValueError(f"Memory record #{index} memory_id is not unique: {record.memory_id}")
        seen.add(record.memory_id)
    return found


def _demand_text(field: str, value: object) -> None:
    """Refuse what is no text to look up with."""
    if not isinstance(value, str):
        raise DocumentTypeError(f"Memory lookup field must be a string: {field}", path=f"$.{field}")
    if not value.strip():
        raise DocumentValueError(f"Memory lookup field is required: {field}", path=f"$.{field}")


def _demand_limit(limit: object) -> None:
    """Refuse what is no number of records."""
    if type(limit) is not int:
        raise DocumentTypeError("Memory lookup limit must be an integer", path="$.limit")
    if limit < 0:
        raise DocumentValueError("Memory lookup limit must be non-negative", path="$.limit")


def _terms(query: str) -> tuple[str, ...]:
    """Return the terms of a query; none where it is made of punctuation, which shares a term with nothing."""
    if len(query) <= TEXT_CHARACTERS_MAX and not record_terms(None, query):
        return ()
    return query_terms(query)


def _is_live(record: MemoryRecord, now_us: int) -> bool:
    """Say whether a record is active and has not expired."""
    return record.status == "active" and (
        record.expires_at is None or microseconds(record.expires_at) > now_us
    )


def _rank(record: MemoryRecord, terms: tuple[str, ...], now_us: int) -> RankKey:
    """Return the key of the order: score, then trust, then the newer, then the id."""
    created_us = now_us if record.created_at is None else microseconds(record.created_at)
    matched = _matched(record, terms)
    score = (
        score_millionths(matched, len(terms), age_us(now_us=now_us, created_us=created_us)) if matched else 0
    )
    return rank_key(
        total=score,
        trust_rank=_TRUST_RANKS[record.trust_level],
        created_us=created_us,
        memory_id=record.memory_id,
        tenant_id=record.tenant_id,
    )


def _matched(record: MemoryRecord, terms: tuple[str, ...]) -> int:
    """Return how many terms are in the record's text or, where none is, among the words of kind and key."""
    text = record_terms(record.summary, record.content)
    found = sum(term in text for term in terms)
    if found:
        return found
    labels = label_terms(record.kind, record.key)
    return sum(term in labels for term in terms)


def _takes_its_place(candidate: MemoryCandidate, record: MemoryRecord) -> bool:
    """Say whether a keyed candidate replaces this very record."""
    return record.status == "active" and record.key == candidate.key and record.subject == candidate.subject


def _sameness(record: MemoryRecord) -> tuple[object, ...]:
    """Return what two records share that say the same of the same."""
    return (
        record.subject,
        record.memory_class,
        record.kind,
        record.key,
        record.status,
        normalize_text(record.content),
    )
