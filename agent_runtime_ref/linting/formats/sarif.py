"""SARIF 2.1.0, for code scanning: rules with help, relative addresses, fingerprints that stay."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from agent_runtime_ref.linting.findings import Finding, Report
from agent_runtime_ref.linting.rules import GROUPS, RULES, Rule

__all__ = ["sarif_text"]

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "%SRCROOT%"
# The part after the slash is the version of how the fingerprint is made.
_FINGERPRINT = "agentRuntimeLint/v1"


def sarif_text(report: Report) -> str:
    """Return the report as one SARIF log with one run."""
    rules = list(RULES.values())
    driver = {"name": "agent-runtime-ref lint", "version": _version(), "rules": [_rule(one) for one in rules]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "the folder that the command was run in"}}},
        "results": list(_results(report, [one.rule_id for one in rules])),
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2) + "\n"


def _version() -> str:
    from agent_runtime_ref import __version__

    return __version__


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.rule_id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": f"{rule.title}."},
        "help": {"text": f"{rule.remedy[0].upper()}{rule.remedy[1:]}."},
        "defaultConfiguration": {"level": rule.severity},
        "properties": {"tags": [GROUPS[rule.group].split(" (")[0]]},
    }


def _results(report: Report, rule_ids: list[str]) -> Iterator[dict[str, Any]]:
    seen: Counter[tuple[str, str, str]] = Counter()
    for one in report.findings:
        same = (one.rule_id, one.path, one.message)
        seen[same] += 1
        yield {
            "ruleId": one.rule_id,
            "ruleIndex": rule_ids.index(one.rule_id),
            "level": one.severity,
            "message": {"text": f"{one.message} ({one.remedy})"},
            "locations": [{"physicalLocation": _location(one)}],
            "partialFingerprints": {_FINGERPRINT: _fingerprint(*same, seen[same])},
        }


def _location(one: Finding) -> dict[str, Any]:
    return {
        "artifactLocation": {"uri": _relative(one.path), "uriBaseId": _ROOT},
        "region": {"startLine": one.line, "startColumn": one.column},
    }


def _relative(path: str) -> str:
    """Return a relative URI reference; a path elsewhere is told from the working folder."""
    if os.path.isabs(path):
        path = os.path.relpath(path).replace(os.sep, "/")
    # A colon in the first part would be read as a scheme.
    return quote(path, safe="/")


def _fingerprint(rule_id: str, path: str, message: str, number: int) -> str:
    """Return what stays the same when lines move: no line is in it, only the number among equal findings."""
    text = "\0".join((rule_id, path, message, str(number)))
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]
