"""The documents that examples are made of: seeds searched for, inspected, written, reviewed, and removed.

The write documents are made as the gate makes them. What a read then sees of a seed has the trust that the
bundle's own write policy gave it, so that a setting of the write policy shows in the examples of a read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.config import load_seed_records
from agent_runtime_ref.contracts import MemoryCandidate, MemoryRecord
from agent_runtime_ref.enforcement.attributes import write_candidate
from agent_runtime_ref.enforcement.detectors import Detectors
from agent_runtime_ref.enforcement.prepared import prepared
from agent_runtime_ref.enforcement.scanner import Scanner
from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.resources import configs_path
from agent_runtime_ref.review.evaluation import Evaluation, Outcome
from agent_runtime_ref.telemetry.words import Words

__all__ = [
    "DAY_NS",
    "ME",
    "NOW_NS",
    "OTHER",
    "REVIEWS",
    "SECOND_NS",
    "TENANT_OTHER",
    "WRITER",
    "Seed",
    "Situation",
    "Writer",
    "seeds_of",
    "situations",
]

NOW_NS = 1_790_000_000_000_000_000  # the instant that every example is decided at; it stands in no answer
SECOND_NS = 1_000_000_000
REVIEWS = ("memory.review", "memory.release")  # the parts of the write policy that a release asks
DAY_NS = 86_400 * SECOND_NS
ME, OTHER, WRITER, TENANT_OTHER = "user-42", "user-7", "writer-1", "tenant-other"
# Digests of contents stand in write documents; a fixed key makes the same report of the same bundle.
_KEY = b"examples of a review, no secret!"
# The steps of a review: what each is called, and the status of the records that it is taken with.
_STEPS = {
    "release": ("release", "quarantined"),
    "reject": ("rejection", "quarantined"),
    "quarantine": ("quarantine", "active"),
}
_TRUST = {"low": 1, "medium": 2, "high": 3}


@dataclass(frozen=True, slots=True)
class Seed:
    """A seed record as both policies see it."""

    record: MemoryRecord
    write: Mapping[str, Any]
    read: Mapping[str, Any]
    trust: str
    outcome: Outcome  # of writing it


@dataclass(frozen=True, slots=True)
class Situation:
    """A document with one candidate, before anything is changed."""

    gate: str  # read or write
    name: str  # search, inspection, write, removal, merging, release, rejection or quarantine
    base: str  # id of the seed, or the subject of a removal
    question: Mapping[str, Any]  # the document without its candidates
    candidate: Mapping[str, Any]
    seed: Seed


class Writer:
    """Makes the write policy's view of a text, with the detectors of the bundle."""

    def __init__(self, bundle: Bundle) -> None:
        self.protected_prefixes: list[str] = bundle.settings["protected_keys"]["prefixes"]
        self._scanner = Scanner(Detectors(bundle.detectors), protected_prefixes=self.protected_prefixes)
        self._words = Words(suspicious=self._scanner.suspicious, key=_KEY)

    def document(
        self, record: MemoryRecord, *, content: str | None = None, key: str | None = None
    ) -> dict[str, Any]:
        """Return the document of a seed, with other words or under another key where they are given."""
        candidate = MemoryCandidate(
            record.tenant_id,
            record.memory_class,
            record.kind,
            record.content if content is None else content,
            record.source,
            record.confidence,
            record.provenance,
            key=record.key if key is None else key,
            subject=record.subject,
            summary=record.summary,
        )
        item = prepared(candidate, scanner=self._scanner, store_key=_KEY)
        found = sorted({(one.type, one.field.partition("[")[0]) for one in item.findings})
        return write_candidate(
            candidate,
            self._words,
            findings=[{"type": type_, "field": field} for type_, field in found],
            content_digest="hmac:" + item.tombstone.hex()[:32],
            size_bytes=item.size_bytes,
            language=item.language,
            lineage={"count": 0, "known": True, "min_trust_rank": None, "subjects_match": True},
            replaces=None,
            tombstoned=False,
        )


def seeds_of(writer: Writer, evaluation: Evaluation) -> tuple[Seed, ...]:
    """Return the bundled seeds, each written by an ordinary caller of its own tenant."""
    found = []
    # The bundled file by its name: a report must not depend on what a user's environment points at.
    for record in load_seed_records(configs_path() / "memory.yaml"):
        document = writer.document(record)
        outcome, trust = evaluation.written(_write_question(record.tenant_id), document)
        found.append(Seed(record, document, _read_candidate(record, document, trust), trust, outcome))
    return tuple(found)


def situations(package: str, seeds: Sequence[Seed], settings: Mapping[str, Any]) -> tuple[Situation, ...]:
    """Return what a rule of a package may be asked about, the most ordinary first.

    A rule of a package that is not ours is tried in all of them.
    """
    kinds = {"memory.read": _reads, "memory.write": _writes} | dict.fromkeys(REVIEWS, _reviews)
    chosen = [kinds[package]] if package in kinds else [_reads, _writes, _reviews]
    return tuple(one for kind in chosen for one in kind(seeds, settings))


def _reads(seeds: Sequence[Seed], settings: Mapping[str, Any]) -> Iterator[Situation]:
    for inspects in (False, True):
        for seed in seeds:
            question = _read_question(seed.record.tenant_id, settings, inspects=inspects)
            name = "inspection" if inspects else "search"
            yield Situation("read", name, seed.record.memory_id, question, seed.read, seed)


def _writes(seeds: Sequence[Seed], settings: Mapping[str, Any]) -> Iterator[Situation]:
    for seed in seeds:
        question = _write_question(seed.record.tenant_id)
        yield Situation("write", "write", seed.record.memory_id, question, seed.write, seed)
    for seed in seeds[:1]:
        question = _write_question(seed.record.tenant_id) | {"operation": "delete"}
        candidate = {"tenant_id": seed.record.tenant_id, "subject": ME}
        yield Situation("write", "removal", ME, question, candidate, seed)
        repeated = candidate | {"subject": None, "repeats": True}
        yield Situation("write", "merging", seed.record.memory_id, question, repeated, seed)


def _reviews(seeds: Sequence[Seed], settings: Mapping[str, Any]) -> Iterator[Situation]:
    """Yield each seed before one who may review: as it waits in the queue, and as it is put there."""
    roles = settings.get("review", {}).get("roles", {})
    for operation, (name, status) in _STEPS.items():
        for seed in seeds:
            tenant_id = seed.record.tenant_id
            question = _write_question(tenant_id) | {
                "operation": operation,
                "caller": _caller(tenant_id) | {"roles": sorted(roles)[-1:]},
                "review": {"reason": "CASE-1", "reason_chars": 6, "reason_findings": []},
            }
            candidate = {**seed.write, "queue": _known_of(seed, status)}
            yield Situation("write", name, seed.record.memory_id, question, candidate, seed)


def _known_of(seed: Seed, status: str) -> dict[str, Any]:
    """Return what a store knows of a seed that a step of a review is about."""
    return {
        "record_id": seed.record.memory_id,
        "status": status,
        "trust_rank": seed.read["trust_rank"],
        "created_ns": NOW_NS - DAY_NS,
        "expires_ns": None,
        "duplicate": False,
        "written_by": {"principal": WRITER, "agent": None},
        "reviewer": {"principal": ME, "agent": None},
    }


def _caller(tenant_id: str) -> dict[str, Any]:
    return {"tenant_id": tenant_id, "principal_id": ME, "subject": ME, "roles": [], "anonymous": False}


def _write_question(tenant_id: str) -> dict[str, Any]:
    return {"operation": "write", "now_ns": NOW_NS, "caller": _caller(tenant_id)}


def _read_question(tenant_id: str, settings: Mapping[str, Any], *, inspects: bool) -> dict[str, Any]:
    """Return a question that is permitted, as far as the settings alone can tell."""
    caller = _caller(tenant_id)
    limits, purposes = settings["limits"], settings["purposes"]
    if inspects:
        caller["roles"] = list(settings["operator_roles"])[:1]
        purpose = settings["inspection_purpose"]
    else:
        # The purpose that reads most, and among those one with floors, since floors are what is shown.
        purpose = max(
            purposes, key=lambda one: (len(_classes(purposes[one])), purposes[one]["class_trust_floors"])
        )
    return {
        "operation": "inspect" if inspects else "search",
        "now_ns": NOW_NS,
        "caller": caller,
        "query": {
            "tenant_id": None if inspects else tenant_id,
            "principal_id": ME,
            "purpose": purpose,
            "allowed_classes": None if inspects else _classes(purposes[purpose]),
            "limit": max(limits["query_min"], min(5, limits["query_max"])),
            "trust_min_rank": None,
            "max_age_days": None,
            "require_provenance": False,
            "subject": None,
            **{name: [] for name in ("kinds", "sources", "keys", "record_ids", "statuses")},
            "has_text": not inspects,
        },
    }


def _classes(purpose: Mapping[str, Any]) -> list[str]:
    return [name for name, reads in purpose["classes"].items() if reads]


def _read_candidate(record: MemoryRecord, written: Mapping[str, Any], trust: str) -> dict[str, Any]:
    """Return the read policy's view of a seed that was kept a day ago."""
    same = ("tenant_id", "subject", "memory_class", "kind", "key", "source", "provenance", "provenance_known")
    return {
        "record_id": record.memory_id,
        **{name: written[name] for name in same},
        "trust_rank": _TRUST.get(trust, 1),
        "confidence_millionths": written["confidence_millionths"],
        "created_ns": NOW_NS - DAY_NS,
        "expires_ns": None,
        "status": "active",
        "revision": record.revision,
        "outranked": False,
        "derived": False,
    }
