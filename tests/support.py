"""Callers, candidates and queries that many tests share."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_runtime_ref import Caller, MemoryCandidate, RetrievalQuery
from agent_runtime_ref.telemetry.reader import LoggedDecision, by_file, read_decisions
from agent_runtime_ref.telemetry.segments import raw_lines

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


def rebuilt_result(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the retrieval_result document that a `retrieval` event was about, byte for byte."""
    payload = event["payload"]
    document = {
        "kind": "retrieval_result",
        "trace_id": event["trace_id"],
        "session_id": payload["session_id"],
        "selected_records": payload["selected"],
        "selection_reason": payload["selection_reason"],
        "excluded_records": payload["excluded_records"],
        "decision_id": payload["decision_id"],
        "policy_digest": payload["policy_digest"],
        "exclusions": payload["exclusions"],
    }
    if payload.get("underfilled"):
        document["underfilled"] = True
    return document


def read_log(path: Path) -> Iterator[LoggedDecision]:
    """Yield the decisions of the log at `path`, the segments that rotation closed first."""
    for source, lines in by_file(raw_lines(path)):
        yield from read_decisions(lines, source=source)
