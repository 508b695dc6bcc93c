"""Documents that the schemas accept, made from a seed: the same seed and number, the same document.

Most are near what a policy permits, with one or two things off, because a document that is wrong in ten ways
tells nothing about the eleventh.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tests.parity.vocabulary import (
    DAY_NS,
    DIGESTS,
    FIELDS,
    FINDINGS,
    INSTANTS_NS,
    INT64_MAX,
    PRINCIPALS,
    STATUSES,
    TENANTS,
    Vocabulary,
    chance,
    count_of_candidates,
    some,
    word,
)

Document = dict[str, Any]

# How many of a hundred write documents ask for each step; the schema of the input names them all.
WRITE_SHARES = {"write": 60, "delete": 12, "release": 14, "reject": 6, "quarantine": 8}
READ_OPERATIONS = ("search", "get", "list", "inspect")


def document(gate: str, words: Vocabulary, *, seed: int, number: int) -> Document:
    """Return the document of that number for the gate `read` or `write`."""
    random = Random(f"{gate} {seed} {number}")
    return read_document(random, words) if gate == "read" else write_document(random, words)


def read_document(random: Random, words: Vocabulary) -> Document:
    """Return a question to the read policy: a plan, or a verdict on up to twenty records."""
    who = _caller(random, words)
    inspecting = chance(random, 0.25)
    operation = READ_OPERATIONS[-1] if inspecting else random.choice(READ_OPERATIONS[:-1])
    query = _query(random, words, who, inspecting)
    if inspecting and chance(random, 0.7):
        who["roles"] = sorted({*who["roles"], "operator"})
        query["purpose"] = "inspection"
    now_ns = _now(random)
    return {
        "operation": word(random, operation, odd=0.04),
        "now_ns": now_ns,
        "caller": who,
        "query": query,
        "candidates": [
            _record(random, words, who, query, now_ns) for _ in range(count_of_candidates(random))
        ],
    }


def write_document(random: Random, words: Vocabulary) -> Document:
    """Return a question to the write policy: up to twenty candidates, or subjects to forget."""
    who = _caller(random, words)
    now_ns = _now(random)
    operation = random.choices(tuple(WRITE_SHARES), tuple(WRITE_SHARES.values()))[0]
    make = {"write": _candidate, "delete": _removal}.get(operation)
    count = max(1, count_of_candidates(random))
    asked: Document = {
        "operation": word(random, "write", odd=0.03) if operation == "write" else operation,
        "now_ns": now_ns,
        "caller": who,
    }
    if make is not None:
        return asked | {"candidates": [make(random, words, who) for _ in range(count)]}
    if chance(random, 0.9):
        who["roles"] = sorted({*who["roles"], "reviewer"})
    return asked | {
        "candidates": [_reviewed(random, words, who, now_ns, operation) for _ in range(count)],
        "review": _reason(random, words),
    }


def _now(random: Random) -> int:
    return INSTANTS_NS[0] if chance(random, 0.9) else random.choice(INSTANTS_NS)


def _caller(random: Random, words: Vocabulary) -> Document:
    principal = word(random, *PRINCIPALS[:2], odd=0.03)
    return {
        "tenant_id": word(random, TENANTS[0], odd=0.03),
        "principal_id": principal,
        "subject": principal if chance(random, 0.8) else word(random, *PRINCIPALS, odd=0.1),
        "roles": some(random, words.roles) if chance(random, 0.5) else [],
        "anonymous": chance(random, 0.1),
    }


def _query(random: Random, words: Vocabulary, who: Document, inspecting: bool) -> Document:
    def own(name: str, *others: str) -> str:
        mine: str = who[name]
        return mine if chance(random, 0.93) else word(random, *others)

    open_tenant = inspecting and chance(random, 0.4) or chance(random, 0.02)
    classes = some(random, words.classes[:-1]) if chance(random, 0.95) else some(random, words.classes)
    selecting = chance(random, 0.3)
    return {
        "tenant_id": None if open_tenant else own("tenant_id", *TENANTS),
        "principal_id": own("principal_id", *PRINCIPALS),
        "purpose": word(random, *words.purposes) if chance(random, 0.4) else "answer_generation",
        "allowed_classes": None if inspecting and chance(random, 0.4) else classes,
        "limit": random.choice(words.limits) if chance(random, 0.3) else 5,
        "trust_min_rank": random.choice((None, 0, *words.ranks)) if chance(random, 0.4) else None,
        "max_age_days": random.choice((None, *words.ages_days)) if chance(random, 0.4) else None,
        "require_provenance": chance(random, 0.3),
        "subject": own("subject", *PRINCIPALS) if chance(random, 0.3) else None,
        "kinds": some(random, words.kinds) if selecting else [],
        "sources": some(random, words.sources) if selecting and chance(random, 0.5) else [],
        "keys": some(random, words.keys) if selecting and chance(random, 0.3) else [],
        "record_ids": ["mem-1", "mem-2", DIGESTS[0]] if selecting and chance(random, 0.3) else [],
        "statuses": some(random, STATUSES) if inspecting and chance(random, 0.5) else [],
        "has_text": chance(random, 0.5),
    }


def _record(random: Random, words: Vocabulary, who: Document, query: Document, now_ns: int) -> Document:
    """Return a stored record, most often one that the query may see."""
    allowed = query["allowed_classes"] or words.classes
    return {
        "record_id": word(random, "mem-1", "mem-2", "mem-3"),
        "tenant_id": who["tenant_id"] if chance(random, 0.95) else word(random, *TENANTS),
        "subject": _subject(random, who),
        "memory_class": random.choice(allowed) if chance(random, 0.9) else word(random, *words.classes),
        "kind": word(random, *words.kinds),
        "key": word(random, *words.keys) if chance(random, 0.4) else None,
        "source": word(random, *words.sources),
        "provenance": word(random, "run-1", "unknown"),
        "provenance_known": chance(random, 0.8),
        "trust_rank": random.choice(words.ranks),
        "confidence_millionths": random.choice(words.confidences),
        "created_ns": _created(random, words, now_ns),
        "expires_ns": _expires(random, now_ns),
        "status": "active" if chance(random, 0.85) else word(random, *STATUSES),
        "revision": random.choice((1, 2, INT64_MAX)),
        "outranked": chance(random, 0.2),
        "derived": chance(random, 0.2),
    }


def _subject(random: Random, who: Document) -> str | None:
    if chance(random, 0.5):
        return None
    mine: str = who["subject"]
    return mine if chance(random, 0.8) else word(random, *PRINCIPALS)


def _created(random: Random, words: Vocabulary, now_ns: int) -> int:
    """Return an instant on one side of an age limit, on the other, or on it."""
    if chance(random, 0.05):
        return random.choice((INT64_MAX, -INT64_MAX, 0, now_ns))
    days = random.choice((*words.ages_days, 1, 1, 1))
    return max(-INT64_MAX, min(now_ns - days * DAY_NS + random.choice((-1, 0, 1)), INT64_MAX))


def _expires(random: Random, now_ns: int) -> int | None:
    if chance(random, 0.6):
        return None
    return min(now_ns + random.choice((-DAY_NS, -1, 0, 1, DAY_NS, DAY_NS)), INT64_MAX)


def _candidate(random: Random, words: Vocabulary, who: Document) -> Document:
    """Return what somebody wants to keep, most often of a class, kind and source that fit together."""
    memory_class, kind, source = random.choice(words.permitted)
    if chance(random, 0.1):
        memory_class = word(random, *words.classes)
    if chance(random, 0.1):
        kind, source = word(random, *words.kinds), word(random, *words.sources)
    return {
        "tenant_id": who["tenant_id"] if chance(random, 0.96) else word(random, *TENANTS),
        "subject": _subject(random, who),
        "memory_class": memory_class,
        "kind": kind,
        "key": word(random, *words.keys) if chance(random, 0.3) else None,
        "source": source,
        "provenance": word(random, "run-1", "unknown"),
        "provenance_known": chance(random, 0.9),
        "confidence_millionths": random.choice((*words.confidences, 900_000, 900_000, 900_000)),
        "revision_mode": word(random, "append", "replace", odd=0.02),
        "size_bytes": random.choice(words.sizes) if chance(random, 0.2) else random.randint(1, 999),
        "content_digest": DIGESTS[0],
        "language": random.choice(("en", "zh", "mixed", "")),
        "findings": _findings(random),
        "lineage": _lineage(random, words),
        "replaces": _replaces(random, words) if chance(random, 0.25) else None,
        "tombstoned": chance(random, 0.05),
    }


def _reviewed(random: Random, words: Vocabulary, who: Document, now_ns: int, operation: str) -> Document:
    """Return a record as a step of a review is told of it, or what is known of one that is not due."""
    due, other = ("active", "quarantined") if operation == "quarantine" else ("quarantined", "active")
    queue: Document = {"record_id": word(random, "mem-1", "mem-2"), "status": due}
    if chance(random, 0.05):
        queue["status"] = random.choice(("absent", other, "superseded"))
        return {"tenant_id": who["tenant_id"], "subject": None, "queue": queue}
    people = (*DIGESTS, "hmac:0", None)
    queue |= {
        "trust_rank": random.choice(words.ranks),
        "created_ns": _created(random, words, now_ns),
        "expires_ns": _expires(random, now_ns),
        "duplicate": chance(random, 0.05),
        "written_by": {
            "principal": DIGESTS[0] if chance(random, 0.8) else random.choice(people),
            "agent": random.choice(people[1:]) if chance(random, 0.3) else None,
        },
        "reviewer": {
            "principal": word(random, "hmac:reviewer", *(one for one in people if one), odd=0.02),
            "agent": random.choice(people) if chance(random, 0.2) else None,
        },
    }
    return _candidate(random, words, who) | {"queue": queue}


def _reason(random: Random, words: Vocabulary) -> Document:
    return {
        "reason": word(random, "SEC-1423", odd=0.02),
        "reason_chars": random.choice(words.reason_chars) if chance(random, 0.1) else 8,
        "reason_findings": ["secret.aws_key"] if chance(random, 0.05) else some(random, FINDINGS[3:], 2),
    }


def _findings(random: Random) -> list[Document]:
    if chance(random, 0.7):
        return []
    return [
        {"type": random.choice(FINDINGS), "field": random.choice(FIELDS)} for _ in range(random.randint(1, 4))
    ]


def _lineage(random: Random, words: Vocabulary) -> Document:
    if chance(random, 0.7):
        return {"count": 0, "known": True, "min_trust_rank": None, "subjects_match": True}
    return {
        "count": random.choice((1, 2, 256, INT64_MAX)),
        "known": chance(random, 0.9),
        "min_trust_rank": random.choice((None, *words.ranks)),
        "subjects_match": chance(random, 0.9),
    }


def _replaces(random: Random, words: Vocabulary) -> Document:
    return {
        "record_id": word(random, "mem-1"),
        "trust_rank": random.choice(words.ranks),
        "revision": random.choice((1, INT64_MAX)),
        "status": "active",
    }


def _removal(random: Random, words: Vocabulary, who: Document) -> Document:
    """Return whose records are to go; where one alone is meant, also whether it repeats an earlier one."""
    asked: Document = {
        "tenant_id": who["tenant_id"] if chance(random, 0.95) else word(random, *TENANTS),
        "subject": _subject(random, who) if chance(random, 0.3) else who["subject"],
    }
    return asked | {"repeats": chance(random, 0.7)} if chance(random, 0.3) else asked
