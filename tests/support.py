"""Callers, candidates and queries that many tests share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent_runtime_ref import Caller, MemoryCandidate, RetrievalQuery

TENANT = "tenant-acme"
ALL_CLASSES = ["short_term", "long_term", "profile"]


def caller(**changes: Any) -> Caller:
    """Return user-42 of tenant-acme."""
    base: dict[str, Any] = {
        "tenant_id": TENANT,
        "principal_id": "user-42",
        "session_id": "session-001",
        "trace_id": "trace-001",
    }
    return Caller(**(base | changes))


def candidate(content: str = "Support tickets go to the support queue", **changes: Any) -> MemoryCandidate:
    """Return a long-term fact that the bundled policy admits with medium trust."""
    base: dict[str, Any] = {
        "tenant_id": TENANT,
        "memory_class": "long_term",
        "kind": "validated_fact",
        "content": content,
        "source": "trusted_service",
        "confidence": 0.9,
        "provenance": "validated_service_rule",
    }
    return MemoryCandidate(**(base | changes))


def note(content: str, **changes: Any) -> MemoryCandidate:
    """Return a short-term working note of low trust."""
    base: dict[str, Any] = {
        "memory_class": "short_term",
        "kind": "working_note",
        "source": "session_state",
        "provenance": "ephemeral_session_note",
    }
    return candidate(content, **(base | changes))


def query(**changes: Any) -> RetrievalQuery:
    """Return a query by user-42 of tenant-acme for an answer, over every class."""
    document: dict[str, Any] = {
        "kind": "retrieval_query",
        "trace_id": "trace-001",
        "session_id": "session-001",
        "tenant_id": TENANT,
        "principal_id": "user-42",
        "purpose": "answer_generation",
        "allowed_classes": ALL_CLASSES,
        "filters": {},
        "limit": 5,
    }
    return RetrievalQuery.from_document(document | changes)


def events(trace: Path) -> list[dict[str, Any]]:
    """Return the events of a JSONL trace, oldest first, without the one that tells of the opening."""
    told = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
    return [event for event in told if event["event_type"] != "policy_loaded"]
