"""The report of a replay as SARIF 2.1.0: one result for each rule and kind of change, at the rule."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from agent_runtime_ref.policy.metadata import RuleInfo
from agent_runtime_ref.replay.changes import KINDS, Share
from agent_runtime_ref.replay.report import TITLES, Report, coverage_sentences

__all__ = ["replay_sarif"]

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "%SRCROOT%"
_FINGERPRINT = "agentRuntimeReplay/v1"
_RULES_MAX = 500
# Code scanning opens an alert for each result: what lets something out or in is one, the rest is told.
_LEVELS = {"newly_exposed": "error", "newly_admitted": "warning"}
_UNNAMED = "UNNAMED"  # changes that no rule of the new policies answers for, or too many rules
_MANIFEST = ".manifest"


def replay_sarif(report: Report) -> Iterator[str]:
    """Yield the SARIF log."""
    known = {rule.rule_id: rule for rule in report.bundle.rules}
    shares = _shares(report)
    ids = sorted({str(share.name) for share in shares})
    driver = {
        "name": "agent-runtime-ref policy replay",
        "version": _version(),
        "rules": [_rule(rule_id, known.get(rule_id)) for rule_id in ids],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "the folder that the command was run in"}}},
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {"level": "note", "message": {"text": text}} for text in coverage_sentences(report)
                ],
            }
        ],
        "results": [result for share in shares for result in _results(share, ids, known, report)],
        "properties": {name: value for name, value in report.head().items() if name in _NUMBERS},
    }
    yield json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


_NUMBERS = ("decisions", "unchanged", *KINDS)


def _shares(report: Report) -> list[Share]:
    """Return how many changes each rule has; those without a rule, and of too many rules, under one name.

    No change is left out: a missing alert would be taken for a change that nothing comes of.
    """
    found = report.changes.by_rule(_RULES_MAX)
    rest = [share for share in found if not share.name]
    counts = {kind: sum(share.counts[kind] for share in rest) for kind in KINDS}
    named = [share for share in found if share.name]
    return [*named, Share(_UNNAMED, 1, counts)] if rest else named


def _version() -> str:
    from agent_runtime_ref import __version__

    return __version__


def _rule(rule_id: str, rule: RuleInfo | None) -> dict[str, Any]:
    title = rule.title if rule is not None else "A rule that the new policies do not have"
    if rule_id == _UNNAMED:
        title = "No rule of the new policies answers for it"
    described = rule.description if rule is not None and rule.description else title
    return {
        "id": rule_id,
        "shortDescription": {"text": title},
        "fullDescription": {"text": described},
        "properties": {"tags": list(rule.controls) if rule is not None else []},
    }


def _results(
    share: Share, ids: list[str], known: dict[str, RuleInfo], report: Report
) -> Iterator[dict[str, Any]]:
    rule_id = str(share.name)
    for kind in KINDS:
        count = share.counts[kind]
        if not count:
            continue
        what = "change" if count == 1 else "changes"
        text = f"{count} {what} of the kind `{TITLES[kind]}` over {report.tally.decisions} replayed decisions"
        yield {
            "ruleId": rule_id,
            "ruleIndex": ids.index(rule_id),
            "level": _LEVELS.get(kind, "note"),
            "message": {"text": text},
            "locations": [{"physicalLocation": _location(known.get(rule_id), report.bundle.source)}],
            "partialFingerprints": {_FINGERPRINT: _fingerprint(rule_id, kind)},
            "properties": {"change": kind, "count": count},
        }


def _location(rule: RuleInfo | None, source: str) -> dict[str, Any]:
    """Return where a rule stands; of what has no rule here, the manifest of the policies."""
    file = _MANIFEST if rule is None else rule.file
    path = os.path.join(source, file) if os.path.isdir(source) else file
    if os.path.isabs(path):
        path = os.path.relpath(path)
    return {
        # A colon in the first part would be read as a scheme.
        "artifactLocation": {"uri": quote(path.replace(os.sep, "/"), safe="/"), "uriBaseId": _ROOT},
        "region": {"startLine": 1 if rule is None else rule.line, "startColumn": 1},
    }


def _fingerprint(rule_id: str, kind: str) -> str:
    """Return what stays the same from run to run: counts are not in it."""
    return hashlib.sha256(f"{rule_id}\0{kind}".encode("utf-8", "backslashreplace")).hexdigest()[:32]
