"""Lint: everything that is wrong with schemas, documents, settings and policies, in one run and in place."""

from agent_runtime_ref.linting.findings import Finding, Report
from agent_runtime_ref.linting.formats import FORMATS, rendered
from agent_runtime_ref.linting.rules import RULES, Rule
from agent_runtime_ref.linting.run import bundled_paths, lint_paths

__all__ = ["FORMATS", "RULES", "Finding", "Report", "Rule", "bundled_paths", "lint_paths", "rendered"]
