"""The formats of `policy test`: lines for people, JSON, and JUnit for CI systems that show tests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.output import json_text
from agent_runtime_ref.cli.terminal import shown

if TYPE_CHECKING:
    from agent_runtime_ref.policy.mutation import MutationReport
    from agent_runtime_ref.policy.rego_tests import RegoReport, RegoResult

_NAME = "agent-runtime-ref policy test"
_MUTATION = "mutation"
_CASES_MAX = 20  # of one test that are shown one by one
# What XML 1.0 cannot hold, not even as a reference.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def rendered(report: RegoReport, mutation: MutationReport | None, style: str) -> str:
    """Return the report in a format; `mutation` is None where no rule was changed."""
    if style == "json":
        return json_text(_document(report, mutation)) + "\n"
    return _junit(report, mutation) if style == "junit" else _lines(report, mutation)


def _document(report: RegoReport, mutation: MutationReport | None) -> dict[str, Any]:
    mutants: dict[str, Any] = {"tried": 0, "survived": [], "ran": False}
    if mutation is not None:
        mutants = {
            "tried": mutation.tried,
            "survived": [asdict(one) for one in mutation.survived],
            "ran": True,
            "not_compiled": mutation.invalid,
            "equivalent": [asdict(one) for one in mutation.equivalent],
        }
    return {
        "tests": len(report.results),
        "failed": [
            {
                "name": one.name,
                "detail": one.detail,
                "file": one.file,
                "line": one.line,
                "rules": list(one.rule_ids),
            }
            for one in report.failed
        ],
        "coverage": dict(report.coverage),
        "mutants": mutants,
        "todo": list(report.todo),
        "missed_lines": {path: list(lines) for path, lines in report.missed.items()},
        "rules": [asdict(one) | {"reached": one.reached} for one in report.rules],
        "missed_rules": [one.rule_id for one in report.rules if not one.reached],
    }


def _lines(report: RegoReport, mutation: MutationReport | None) -> str:
    found = [*_tests(report)]
    if report.results:  # of no tests there is nothing else to tell
        found += [*_coverage(report), *(_mutants(mutation) if mutation is not None else ())]
    return "".join(f"{shown(line)}\n" for line in found)


def _tests(report: RegoReport) -> Iterator[str]:
    failed: dict[str, list[RegoResult]] = {}
    for one in report.failed:
        failed.setdefault(one.test, []).append(one)
    for name, cases in failed.items():
        yield from _failures(name, cases, sum(one.test == name for one in report.results))
    for name in report.todo:
        yield f"to do: {name}"
    yield f"{_number(len(report.results), 'test')}, {len(report.failed)} failed"


def _failures(name: str, cases: list[RegoResult], ran: int) -> Iterator[str]:
    """Yield a test that failed, and those of its cases that did, as many as a person reads."""
    first = cases[0]
    place = f"{first.file}:{first.line}: failed: "
    if first.name == name:
        yield f"{place}{name}{_named(first)}: {first.detail}"
        return
    yield f"{place}{name}: {len(cases)} of {_number(ran, 'case')}"
    for one in cases[:_CASES_MAX]:
        yield f"  {one.name.removeprefix(name)}{_named(one)}: {one.detail}"
    if len(cases) > _CASES_MAX:
        yield f"  and {len(cases) - _CASES_MAX} more; --format json has all of them"


def _named(result: RegoResult) -> str:
    return f" ({', '.join(result.rule_ids)})" if result.rule_ids else ""


def _coverage(report: RegoReport) -> Iterator[str]:
    for package, percent in report.coverage.items():
        rules = [one for one in report.rules if one.package == package]
        reached = sum(one.reached for one in rules)
        yield f"{package}: {percent:g} % of lines, {reached} of {_number(len(rules), 'rule')} reached"
    for path, lines in report.missed.items():
        yield f"{path}: no test reaches line {', '.join(map(str, lines))}"
    for one in report.rules:
        if not one.reached:
            yield f"{one.file}:{one.line}: no test reaches the rule {one.rule_id}"
        elif one.fired < one.bodies:
            yield f"{one.file}:{one.line}: tests reach {one.fired} of {one.bodies} bodies of {one.rule_id}"


def _mutants(mutation: MutationReport) -> Iterator[str]:
    for one in mutation.survived:
        yield f"survived: {one.sentence}"
    yield (
        f"{_number(mutation.tried, 'change')} tried, {len(mutation.survived)} survived; "
        f"{len(mutation.equivalent)} equivalent, {mutation.invalid} did not compile"
    )


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _junit(report: RegoReport, mutation: MutationReport | None) -> str:
    """Return the report as JUnit XML: a suite for each package of tests, and one for the changes."""
    from xml.etree.ElementTree import Element, indent, tostring

    root = Element("testsuites", name=_NAME)
    packages: dict[str, list[RegoResult]] = {}
    for result in report.results:
        packages.setdefault(result.name.partition(".test_")[0], []).append(result)
    for name in report.todo:
        packages.setdefault(name.partition(".test_")[0], [])
    for package, results in packages.items():
        todo = [name for name in report.todo if name.partition(".test_")[0] == package]
        _suite(root, package, _result_cases(package, results, todo))
    if mutation is not None:
        _suite(root, _MUTATION, _mutation_cases(mutation))
    for key in ("tests", "failures"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _suite(root: Any, name: str, cases: Iterable[Any]) -> None:
    """Add a suite with its cases, and what is counted of them."""
    from xml.etree.ElementTree import SubElement

    suite = SubElement(root, "testsuite", name=name, errors="0")
    suite.extend(cases)
    for key, tag in (
        ("tests", "testcase"),
        ("failures", "testcase/failure"),
        ("skipped", "testcase/skipped"),
    ):
        suite.set(key, str(len(suite.findall(tag))))


def _result_cases(package: str, results: Iterable[RegoResult], todo: Iterable[str]) -> Iterator[Any]:
    from xml.etree.ElementTree import SubElement

    for one in results:
        case = _case(package, one.name.removeprefix(f"{package}."))
        if not one.passed:
            detail = _xml(one.detail)
            case.set("file", _xml(one.file))
            case.set("line", str(one.line))
            SubElement(case, "failure", type="failed", message=detail).text = detail
        yield case
    for name in todo:
        case = _case(package, name.removeprefix(f"{package}."))
        SubElement(case, "skipped", message="to do")
        yield case


def _mutation_cases(mutation: MutationReport) -> Iterator[Any]:
    """Yield a failed case for each survivor, and one that passes where there is none."""
    from xml.etree.ElementTree import SubElement

    for one in mutation.survived:
        case = _case(_MUTATION, f"{one.file}:{one.line} {one.rule} {one.operation}")
        case.set("file", _xml(one.file))
        case.set("line", str(one.line))
        message = _xml(f"no test notices `{one.original}` -> `{one.mutated}`")
        SubElement(case, "failure", type="survived", message=message).text = _xml(one.sentence)
        yield case
    if not mutation.survived:
        yield _case(_MUTATION, f"{_number(mutation.tried, 'change')} noticed")


def _case(package: str, name: str) -> Any:
    from xml.etree.ElementTree import Element

    return Element("testcase", classname=_xml(package), name=_xml(name))


def _xml(text: str) -> str:
    """Return a text that XML can hold: names of cases are free texts of a policy."""
    return _NO_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
