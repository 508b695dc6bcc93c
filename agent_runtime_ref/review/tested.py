"""The Rego tests of a bundle as a reviewer needs them: which name a rule, which passed, what they miss."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent_runtime_ref.errors import BundleError
from agent_runtime_ref.policy.bundle_files import read_tests
from agent_runtime_ref.policy.rego_tests import RegoResult, declared_tests, run_rego_tests
from agent_runtime_ref.review.model import ERROR, Finding, RuleView, TestUse

__all__ = ["Tested", "test_findings", "tested"]

TESTS = "*_test.rego"
_OURS = re.compile(r"MEM-[A-Z]-[0-9]{3}\Z")


@dataclass(frozen=True, slots=True)
class Tested:
    """What came of the tests of a bundle; all empty where it brings none."""

    results: tuple[RegoResult, ...] = ()
    coverage: Mapping[str, float] = field(default_factory=dict)
    missed: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)  # declared name -> its source
    problem: str = ""  # why they could not be run
    is_archive: bool = False

    def of(self, rule_id: str) -> tuple[TestUse, ...]:
        """Return the tests that name a rule, in the order of their files."""
        return tuple(
            TestUse(one.name, one.passed)
            for one in self.results
            if rule_id in one.rule_ids or self._names(one, rule_id)
        )

    def _names(self, result: RegoResult, rule_id: str) -> bool:
        """Tell whether a test names an id that does not look like one of ours; its whole source is taken."""
        if result.rule_ids or _OURS.match(rule_id):
            return False
        return f'"{rule_id}"' in self.texts.get(result.test, "")


def tested(location: Path) -> Tested:
    """Return what came of the tests of the bundle at `location`."""
    if not location.is_dir():
        return Tested(is_archive=True)
    try:
        modules = read_tests(location)
    except BundleError as error:
        return Tested(problem=error.detail)
    if not modules:
        return Tested()
    texts = {f"{one.package}.{one.name}": one.text for one in declared_tests(modules)}
    try:
        report = run_rego_tests(location)
    except BundleError as error:
        return Tested(texts=texts, problem=error.detail)
    return Tested(report.results, report.coverage, report.missed, texts)


def _failures(results: Sequence[RegoResult]) -> Iterator[Finding]:
    """Yield a finding for each test that fails; a changed setting fails hundreds of cases of a few tests."""
    failed: dict[str, list[RegoResult]] = {}
    for one in results:
        if not one.passed:
            failed.setdefault(one.test, []).append(one)
    for name, cases in failed.items():
        first = cases[0]
        message = f"the test {first.name} does not pass"
        if len(cases) > 1:
            ran = sum(one.test == name for one in results)
            message = f"the test {name} does not pass in {len(cases)} of {ran} cases, {first.name} the first"
        yield Finding(ERROR, "test-failed", f"{first.file}:{first.line}", message)


def test_findings(found: Tested, rules: tuple[RuleView, ...]) -> Iterator[Finding]:
    """Yield rules that no passing test names, lines that no test reaches, and tests that fail."""
    if found.problem:
        yield Finding(
            ERROR, "tests-broken", TESTS, f"the tests of this bundle cannot be run: {found.problem}"
        )
        return
    if not found.results:
        why = (
            "an archive brings no tests; review the folder that it was built from"
            if found.is_archive
            else "this bundle has no tests"
        )
        yield Finding(ERROR, "no-tests", TESTS, f"{why}, so no rule is shown to be tested")
        return
    yield from _failures(found.results)
    for rule in rules:
        place = f"{rule.file}:{rule.line}"
        if not any(test.passed for test in rule.tests):
            yield Finding(ERROR, "rule-without-test", place, f"no passing test names {rule.rule_id}")
        if rule.missed:
            lines = ", ".join(map(str, rule.missed))
            yield Finding(ERROR, "rule-not-covered", place, f"no test reaches line {lines} of {rule.rule_id}")


test_findings.__test__ = False  # type: ignore[attr-defined]  # no test of this project's own tests
