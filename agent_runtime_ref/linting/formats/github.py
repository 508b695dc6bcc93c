"""The format of GitHub's workflow commands: an annotation a line.

A step shows ten annotations of each severity, so errors stand before warnings.
"""

from __future__ import annotations

from agent_runtime_ref.linting.findings import Finding, Report
from agent_runtime_ref.linting.rules import ERROR

__all__ = ["github_text"]


def github_text(report: Report) -> str:
    """Return a workflow command for each finding, errors first."""
    ordered = sorted(report.findings, key=lambda one: (one.severity != ERROR, one))
    return "".join(_annotation(one) for one in ordered)


def _annotation(one: Finding) -> str:
    properties = {"file": one.path, "line": one.line, "col": one.column, "title": one.rule_id}
    written = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{one.severity} {written}::{_data(f'{one.message} ({one.remedy})')}\n"


def _data(text: str) -> str:
    """Return text in which a runner sees no end of the command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Return a property in which a runner sees no other property, either."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
