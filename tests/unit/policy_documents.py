"""Documents that the bundled policies permit; a test changes what it is about."""

from __future__ import annotations

import json
from typing import Any

NOW_NS = 1_790_000_000_000_000_000
CALLER: dict[str, Any] = {
    "tenant_id": "tenant-a",
    "principal_id": "user-1",
    "subject": "user-1",
    "roles": [],
    "anonymous": False,
}
QUERY: dict[str, Any] = {
    "tenant_id": "tenant-a",
    "principal_id": "user-1",
    "purpose": "answer_generation",
    "allowed_classes": ["profile"],
    "limit": 5,
    "trust_min_rank": None,
    "max_age_days": None,
    "require_provenance": False,
    "subject": None,
    "kinds": [],
    "sources": [],
    "keys": [],
    "record_ids": [],
    "statuses": [],
    "has_text": False,
}
READ: dict[str, Any] = {
    "operation": "search",
    "now_ns": NOW_NS,
    "caller": CALLER,
    "query": QUERY,
    "candidates": [],
}
CANDIDATE: dict[str, Any] = {
    "tenant_id": "tenant-a",
    "subject": None,
    "memory_class": "short_term",
    "kind": "working_note",
    "key": None,
    "source": "agent_authored",
    "provenance": "run-1",
    "provenance_known": True,
    "confidence_millionths": 500_000,
    "revision_mode": "append",
    "size_bytes": 10,
    "content_digest": "hmac:00",
    "language": "en",
    "findings": [],
    "lineage": {"count": 0, "known": True, "min_trust_rank": None, "subjects_match": True},
    "replaces": None,
    "tombstoned": False,
}


def write_document(count: int) -> str:
    """Return a write of `count` candidates."""
    document = {"operation": "write", "now_ns": NOW_NS, "caller": CALLER, "candidates": [CANDIDATE] * count}
    return json.dumps(document)
