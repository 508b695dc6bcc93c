"""The text format: `file:line:column: severity RULE-ID message`, a finding a line."""

from __future__ import annotations

from agent_runtime_ref.linting.findings import Report

__all__ = ["lines_text"]


def lines_text(report: Report) -> str:
    """Return a line for each finding; nothing where nothing was found."""
    return "".join(
        f"{one.path}:{one.line}:{one.column}: {one.severity} {one.rule_id} {one.message}\n"
        for one in report.findings
    )
