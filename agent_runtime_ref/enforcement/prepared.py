"""What the write gate knows of a candidate before it asks: findings, digests, slot and lineage."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.contracts import Caller, MemoryCandidate, MemoryRecord
from agent_runtime_ref.enforcement.attributes import write_candidate
from agent_runtime_ref.enforcement.detectors import Finding, language
from agent_runtime_ref.enforcement.scanner import Scanner
from agent_runtime_ref.errors import RevisionConflictError
from agent_runtime_ref.stores.base import Head, Parent, Slot, Store
from agent_runtime_ref.stores.digests import tombstone_digest
from agent_runtime_ref.telemetry.words import Words

_SCANNED = ("content", "summary", "key", "provenance", "source", "kind", "subject", "memory_class")
# Fields that can be kept with a part of them replaced; a secret in any other has to be refused.
REDACTABLE = frozenset({"content", "summary", "title"})


@dataclass(frozen=True, slots=True)
class Pinned:
    """What a seed record fixes by itself and an ordinary write leaves to the gate."""

    memory_id: str
    revision: int
    created_us: int | None
    expires_us: int | None
    status: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """A candidate with everything that was computed from its content, once."""

    candidate: MemoryCandidate
    findings: tuple[Finding, ...]
    language: str
    size_bytes: int
    tombstone: bytes
    dedup: bytes
    pinned: Pinned | None

    @property
    def slot(self) -> Slot:
        """What a `replace` of this candidate is about."""
        candidate = self.candidate
        return Slot(candidate.subject, candidate.memory_class, candidate.kind, candidate.key)


@dataclass(frozen=True, slots=True)
class Context:
    """What the store knows about a batch: heads to replace, origins, duplicates, what was forgotten."""

    heads: Sequence[Head | None]
    lineage: Mapping[str, Parent]
    duplicates: Mapping[bytes, MemoryRecord]
    forgotten: frozenset[bytes]
    writer: Caller
    store_key: bytes


def prepared(
    candidate: MemoryCandidate, *, scanner: Scanner, store_key: bytes, pinned: Pinned | None = None
) -> Prepared:
    """Return what can be known of `candidate` without asking the store."""
    content = candidate.content
    texts = {name: value for name in _SCANNED if (value := getattr(candidate, name))}
    if candidate.origin is not None:
        texts["title"] = candidate.origin.title
        texts["source_id"] = candidate.origin.source_id
        texts["source_type"] = candidate.origin.source_type
    for index, label in enumerate(candidate.scope):
        texts[f"scope[{index}]"] = label
    size = len(content.encode("utf-8", "surrogatepass"))
    return Prepared(
        candidate=candidate,
        findings=scanner.scan(texts),
        language=language(content),
        size_bytes=size + len((candidate.summary or "").encode("utf-8", "surrogatepass")),
        tombstone=tombstone_digest(store_key, candidate.tenant_id, candidate.subject, content),
        dedup=dedup_digest(store_key, candidate),
        pinned=pinned,
    )


def dedup_digest(store_key: bytes, candidate: MemoryCandidate) -> bytes:
    """Return the digest by which an appended memory is known to be there already."""
    parts = [
        candidate.tenant_id,
        candidate.subject,
        candidate.memory_class,
        candidate.kind,
        candidate.key,
        candidate.source,
        candidate.provenance,
        candidate.content,
        candidate.summary,
    ]
    text = json.dumps(parts, ensure_ascii=True, separators=(",", ":"))
    return hmac.digest(store_key, text.encode("ascii"), hashlib.sha256)


def context_of(batch: Sequence[Prepared], store: Store, caller: Caller, now_us: int) -> Context:
    """Return what the store knows about `batch`, looking only into the caller's own tenant."""
    own = [item for item in batch if item.candidate.tenant_id == caller.tenant_id]
    replacing = [item for item in own if item.candidate.revision_mode == "replace"]
    slots = [item.slot for item in replacing]
    found = dict(zip(slots, store.heads(caller.tenant_id, slots, now_us), strict=True)) if slots else {}
    ids = list(dict.fromkeys(one for item in own for one in item.candidate.derived_from))
    appended = [item.dedup for item in own if item.candidate.revision_mode == "append"]
    return Context(
        heads=[found.get(item.slot) if item.candidate.revision_mode == "replace" else None for item in batch],
        lineage=store.lineage(caller.tenant_id, ids, now_us) if ids else {},
        duplicates=_duplicates(store, caller.tenant_id, appended, now_us),
        forgotten=frozenset(store.tombstoned(caller.tenant_id, [item.tombstone for item in own])),
        writer=caller,
        store_key=store.store_key(),
    )


def _duplicates(
    store: Store, tenant_id: str, digests: Sequence[bytes], now_us: int
) -> dict[bytes, MemoryRecord]:
    """Return the records that are there already, as they are now: a receipt shows them as they were seen."""
    held = store.find_duplicate(tenant_id, digests, now_us) if digests else {}
    if not held:
        return {}
    records = {one.memory_id: one for one in store.fetch(tenant_id, list(held.values()))}
    if any(memory_id not in records for memory_id in held.values()):
        raise RevisionConflictError(store.url, "the record it repeats went meanwhile")
    return {digest: records[memory_id] for digest, memory_id in held.items()}


def document_of(item: Prepared, head: Head | None, context: Context, words: Words) -> dict[str, Any]:
    """Return the policy's view of one prepared candidate."""
    return write_candidate(
        item.candidate,
        words,
        findings=[{"type": type_, "field": field} for type_, field in _kinds(item.findings)],
        content_digest="hmac:" + item.tombstone.hex()[:32],
        size_bytes=item.size_bytes,
        language=item.language,
        lineage=_lineage(item.candidate, context),
        replaces=_replaces(head, words),
        tombstoned=item.tombstone in context.forgotten,
    )


def _kinds(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    return sorted({(finding.type, finding.field.partition("[")[0]) for finding in findings})


def _lineage(candidate: MemoryCandidate, context: Context) -> dict[str, Any]:
    ids = candidate.derived_from
    # A parent that nobody is shown, be it for its status or because its life has ended, or that is about
    # somebody else, looks like one that does not exist: the answer must not tell which ids there are, and
    # what was to live for a month must not go on in what is derived from it.
    found = [context.lineage[one] for one in ids if one in context.lineage]
    known = [one for one in found if one.status == "active" and one.subject in (None, candidate.subject)]
    subjects = {parent.subject for parent in known if parent.subject is not None}
    return {
        "count": len(ids),
        "known": len(known) == len(ids),
        "min_trust_rank": min((parent.trust_rank for parent in known), default=None),
        "subjects_match": subjects <= {candidate.subject},
    }


def _replaces(head: Head | None, words: Words) -> dict[str, Any] | None:
    if head is None or head.memory_id is None or head.status != "active":
        return None  # what has expired is shown to nobody and protects nothing
    return {
        "record_id": words.safe(head.memory_id),
        "trust_rank": head.trust_rank,
        "revision": head.revision,
        "status": head.status,
    }
