"""The review as a JSON document; its keys are stable."""

from __future__ import annotations

from typing import Any

from agent_runtime_ref.review.model import Change, Example, Review, RuleView

__all__ = ["JSON_VERSION", "document_of"]

JSON_VERSION = "1.0"


def document_of(review: Review) -> dict[str, Any]:
    """Return the review as values that JSON has; texts are as the bundle has them."""
    return {
        "schema_version": JSON_VERSION,
        "bundle": {"digest": review.digest, "revision": review.revision, "version": review.version},
        "rules": [_rule(rule) for rule in review.rules],
        "controls": [
            {
                "id": one.control_id,
                "framework": one.framework,
                "title": one.title,
                "evidence": one.evidence,
                "rules": list(one.rule_ids),
            }
            for one in review.controls
        ],
        "findings": [
            {"severity": one.severity, "id": one.finding_id, "message": one.message, "place": one.place}
            for one in review.findings
        ],
        "seeds": [
            {
                "id": one.record_id,
                "memory_class": one.memory_class,
                "kind": one.kind,
                "source": one.source,
                "content": one.content,
                "trust": one.trust,
                "result": one.result,
            }
            for one in review.seeds
        ],
        "coverage": dict(review.coverage),
        "tests": {"run": review.tests_run, "failed": review.tests_failed},
    }


def _rule(rule: RuleView) -> dict[str, Any]:
    return {
        "id": rule.rule_id,
        "title": rule.title,
        "description": rule.description,
        "severity": rule.severity,
        "effect": rule.effect,
        "scope": rule.scope,
        "reasons": list(rule.reasons),
        "controls": list(rule.controls),
        "attributes": list(rule.attributes),
        "settings": dict(rule.settings),
        "tests": [{"name": one.name, "passed": one.passed} for one in rule.tests],
        "lines_not_covered": list(rule.missed),
        "admits": [_example(one) for one in rule.admits],
        "keeps_out": [_example(one) for one in rule.keeps_out],
        "package": rule.package,
        "place": f"{rule.file}:{rule.line}",
    }


def _example(example: Example) -> dict[str, Any]:
    return {
        "text": f"{example.sentence}: {example.result}",
        "record": example.base,
        "situation": example.situation,
        "changes": [_change(one) for one in example.changes],
        "outcome": example.outcome,
        "reasons": list(example.reasons),
        "rules": list(example.rule_ids),
    }


def _change(change: Change) -> dict[str, Any]:
    """Return a change; an attribute that is taken away has no `is`."""
    shown = {"attribute": change.attribute, "was": change.was}
    return shown if change.removed else shown | {"is": change.now}
