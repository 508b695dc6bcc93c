"""The JUnit format, for CI systems that show tests: a case for each finding, and for each file without one.

An error is a failed case. A warning is a case that passes and says something, since it fails no run unless
somebody asks for that.
"""

from __future__ import annotations

from typing import Any

from agent_runtime_ref.linting.findings import Finding, Report
from agent_runtime_ref.linting.rules import ERROR

__all__ = ["junit_text"]

_NAME = "agent-runtime-ref lint"


def junit_text(report: Report) -> str:
    """Return the report as JUnit XML."""
    from xml.etree.ElementTree import Element, SubElement, indent, tostring

    clean = sorted(set(report.files) - {one.path for one in report.findings})
    tests, failures = str(len(report.findings) + len(clean)), str(report.count(ERROR))
    root = Element("testsuites", name=_NAME, tests=tests, failures=failures)
    suite = SubElement(root, "testsuite", name=_NAME, tests=tests, failures=failures, errors="0", skipped="0")
    for one in report.findings:
        _add(suite, one)
    for path in clean:
        SubElement(suite, "testcase", classname=path, name="no finding")
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _add(suite: Any, one: Finding) -> None:
    from xml.etree.ElementTree import SubElement

    # Characters that XML cannot hold are escapes already: findings are made so.
    name = f"{one.rule_id} {one.line}:{one.column}"
    case = SubElement(suite, "testcase", classname=one.path, name=name, file=one.path, line=str(one.line))
    text = f"{one.path}:{one.line}:{one.column}: {one.message}\n{one.remedy}"
    if one.severity == ERROR:
        SubElement(case, "failure", type=one.rule_id, message=one.message).text = text
    else:
        SubElement(case, "system-out").text = f"{one.severity} {one.rule_id} {text}"
