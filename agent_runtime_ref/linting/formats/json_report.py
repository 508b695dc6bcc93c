"""The JSON format: stable; its version changes when a key is removed or comes to mean another thing."""

from __future__ import annotations

import json
from dataclasses import asdict

from agent_runtime_ref.linting.findings import Report
from agent_runtime_ref.linting.rules import ERROR, WARNING

__all__ = ["JSON_VERSION", "json_text"]

JSON_VERSION = "1.0"
_KEYS = ("path", "line", "column", "severity", "rule_id", "message", "remedy")


def json_text(report: Report) -> str:
    """Return the report as one JSON object, in ASCII for a terminal of any encoding."""
    findings = [asdict(one) for one in report.findings]
    document = {
        "schema_version": JSON_VERSION,
        "files": len(report.files),
        "errors": report.count(ERROR),
        "warnings": report.count(WARNING),
        "findings": [{key: one[key] for key in _KEYS} for one in findings],
    }
    return json.dumps(document, indent=2) + "\n"
