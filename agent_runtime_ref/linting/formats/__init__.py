"""The formats of a report: a function each, from the report to the whole text."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agent_runtime_ref.linting.findings import Report
from agent_runtime_ref.linting.formats.github import github_text
from agent_runtime_ref.linting.formats.json_report import json_text
from agent_runtime_ref.linting.formats.junit import junit_text
from agent_runtime_ref.linting.formats.lines import lines_text
from agent_runtime_ref.linting.formats.sarif import sarif_text

__all__ = ["FORMATS", "rendered"]

# The first is what a command uses where none is asked for.
FORMATS: Mapping[str, Callable[[Report], str]] = {
    "text": lines_text,
    "json": json_text,
    "sarif": sarif_text,
    "junit": junit_text,
    "github": github_text,
}


def rendered(report: Report, style: str) -> str:
    """Return a report in one of `FORMATS`, with a line end where it is not empty."""
    return FORMATS[style](report)
