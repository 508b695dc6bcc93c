"""Records and plans for tests, of which a test states only what it is about."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from agent_runtime_ref.clock import microseconds
from agent_runtime_ref.contracts import Atom, Clause, MemoryRecord, Plan

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
NOW_US = microseconds(NOW)

_EXAMPLE = MemoryRecord(
    memory_id="mem-001",
    tenant_id="tenant-acme",
    memory_class="long_term",
    kind="validated_fact",
    content="Support tickets must use the support queue.",
    source="trusted_service",
    confidence=0.9,
    provenance="validated_service_rule",
    revision=1,
    trust_level="medium",
    created_at=datetime(2026, 5, 1, tzinfo=UTC),
    retention="long_term",
)


def make_record(memory_id: str = "mem-001", **changes: Any) -> MemoryRecord:
    """A valid record with `changes`."""
    return replace(_EXAMPLE, memory_id=memory_id, **changes)


def open_plan(*clauses: Clause, limit: int = 100) -> Plan:
    """A complete plan of `clauses` alone: without any, it admits everything."""
    return Plan(clauses=tuple(sorted(clauses, key=lambda one: one.rule_id)), complete=True, limit=limit)


def clause(
    role: str,
    rule_id: str,
    *atoms: tuple[str, str, Any],
    reason: str | None = None,
    classes: tuple[str, ...] | None = None,
) -> Clause:
    """A clause of (attribute, operator, value) triples; the reason is the rule id unless given."""
    return Clause(
        role=role,
        rule_id=rule_id,
        reason=reason or rule_id,
        any_of=tuple(Atom(*atom) for atom in atoms),
        classes=classes,
        passed=None,
    )
