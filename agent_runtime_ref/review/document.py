"""The review as a JSON document; its keys are stable."""

from __future__ import annotations

from typing import Any

from agent_runtime_ref.review.model import Change, ControlView, Example, Review, RuleView, SeedView

__all__ = ["JSON_VERSION", "document_of"]

JSON_VERSION = "1.0"


def document_of(review: Review) -> dict[str, Any]:
    """Return the review as values that JSON has; texts are as the bundle has them."""
    return {
        "schema_version": JSON_VERSION,
        "bundle": {"digest": review.digest, "revision": review.revision, "version": review.version},
        "rules": [_rule(rule) for rule in review.rules],
        "controls": [_control(one) for one in review.controls],
        "findings": [
            {"severity": one.severity, "id": one.finding_id, "message": one.message, "place": one.place}
            for one in review.findings
        ],
        "seeds": [_seed(one) for one in review.seeds],
        "coverage": dict(review.coverage),
        "tests": {"run": review.tests_run, "failed": review.tests_failed},
    }


def _control(control: ControlView) -> dict[str, Any]:
    return {
        "id": control.control_id,
        "framework": control.framework,
        "title": control.title,
        "evidence": control.evidence,
        "rules": list(control.rule_ids),
    }


def _seed(seed: SeedView) -> dict[str, Any]:
    return {
        "id": seed.record_id,
        "memory_class": seed.memory_class,
        "kind": seed.kind,
        "source": seed.source,
        "content": seed.content,
        "trust": seed.trust,
        "result": seed.result,
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
