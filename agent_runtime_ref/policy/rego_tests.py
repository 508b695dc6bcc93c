"""The Rego tests of a bundle, run in the embedded engine with coverage; no OPA binary is needed.

A test that is undefined simply does not appear in an answer, so the names come from the source: whatever was
declared there and is not true has failed. A test over cases, `test_denied[note]`, runs over the object
`denied` of its package; a case missing from the answer has failed, which an engine alone would not tell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_runtime_ref.errors import BundleError
from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.policy.bundle_files import read_tests
from agent_runtime_ref.policy.rego_coverage import Coverage, RuleCoverage, coverage_of, set_apart
from agent_runtime_ref.policy.rego_declared import Declared, declared_tests, tests_to_do
from agent_runtime_ref.policy.rego_source import engine_sentence
from agent_runtime_ref.resources import policies_path

__all__ = [
    "Declared",
    "RegoReport",
    "RegoResult",
    "RuleCoverage",
    "declared_tests",
    "results_of",
    "run_rego_tests",
    "test_engine",
]

_RULE_ID = re.compile(r"\bMEM-[A-Z]-[0-9]{3}\b")


@dataclass(frozen=True, slots=True)
class RegoResult:
    """One test, or one case of a test over cases."""

    name: str  # memory.read_test.test_denied[another tenant]
    passed: bool
    detail: str = ""
    rule_ids: tuple[str, ...] = ()  # the rules that the case or the test names
    file: str = ""  # where the test stands, below the bundle
    line: int = 0

    @property
    def test(self) -> str:
        """Name of the test, without that of a case."""
        return self.name.partition("[")[0]


@dataclass(frozen=True, slots=True)
class RegoReport:
    """All results, and the lines and rules of the policies that no test reached."""

    results: tuple[RegoResult, ...]
    coverage: Mapping[str, float]  # package -> percent of lines
    missed: Mapping[str, tuple[int, ...]]  # file -> lines
    rules: tuple[RuleCoverage, ...] = ()  # by id
    todo: tuple[str, ...] = ()  # memory.read_test.test_denied, still to be written

    @property
    def failed(self) -> tuple[RegoResult, ...]:
        """Whatever did not pass."""
        return tuple(result for result in self.results if not result.passed)

    def tests_of(self, rule_id: str) -> tuple[str, ...]:
        """Return the names of the passing tests that name a rule."""
        return tuple(result.name for result in self.results if result.passed and rule_id in result.rule_ids)


def run_rego_tests(path: Path | str | None = None) -> RegoReport:
    """Run the tests of the bundle at `path`, by default the bundled one.

    Raises:
        BundleError: the bundle cannot be loaded, or a test of it does not parse.
    """
    bundle = load_bundle(path)
    tests = read_tests(policies_path(path))
    modules = tuple(set_apart(name, text) for name, text in bundle.modules)
    engine = test_engine([*((one.path, one.text) for one in modules), *tests], bundle.data_json)
    engine.set_enable_coverage(True)
    results = tuple(result for one in declared_tests(tests) for result in results_of(engine, one))
    coverage = coverage_of(modules, json.loads(engine.get_coverage_report_as_json()))
    return _report(results, coverage, tests)


def _report(
    results: tuple[RegoResult, ...], coverage: Coverage, tests: Sequence[tuple[str, str]]
) -> RegoReport:
    todo = tuple(tests_to_do(tests))
    return RegoReport(results, coverage.percent, coverage.missed, coverage.rules, todo)


def test_engine(modules: Sequence[tuple[str, str]], data_json: str) -> Any:
    """Return a regorus engine with policies, tests and data; what a rule may be evaluated in is checked.

    Raises:
        BundleError: reason engine_exception: a module does not parse, or uses a variable that nothing binds.
    """
    import regorus

    engine = regorus.Engine()
    try:
        for path, text in modules:
            engine.add_policy(path, text)
        engine.add_data_json(data_json)
        engine.set_input_json("{}")
        engine.eval_query_as_json("true")
    except RuntimeError as error:
        raise BundleError("engine_exception", engine_sentence(error)) from error
    return engine


def results_of(engine: Any, test: Declared) -> Iterator[RegoResult]:
    """Yield the result of a test, or of each of its cases."""
    name = f"{test.package}.{test.name}"
    value, problem = _value(engine, name)
    if not test.over_cases:
        rule_ids = _rule_ids(test.text)
        yield RegoResult(name, value is True, _detail(value, problem), rule_ids, test.file, test.line)
        return
    cases, no_cases = _value(engine, f"{test.package}.{test.cases}")
    if not isinstance(cases, dict) or not cases:
        why = f": {no_cases}" if no_cases else ""
        detail = f"there is no object `{test.cases}` with its cases{why}"
        yield RegoResult(name, False, detail, (), test.file, test.line)
        return
    held = value if isinstance(value, dict) else {}
    # A case that only the test knows counts as well: it may be there and be false.
    for note, case in (cases | {note: None for note in held if note not in cases}).items():
        rule_ids = _rule_ids(json.dumps(case, ensure_ascii=False))
        detail = _detail(held.get(note), problem)
        passed = _holds(held.get(note))
        yield RegoResult(f"{name}[{note}]", passed, detail, rule_ids, test.file, test.line)


def _holds(value: Any) -> bool:
    """Say whether a case passed: true, or an object of cases below it that all passed."""
    return value is True or isinstance(value, dict) and bool(value) and all(map(_holds, value.values()))


def _detail(value: Any, problem: str) -> str:
    """Return why a test has not passed; empty where it has."""
    if _holds(value):
        return ""
    if isinstance(value, list):
        return f"{'a' if value else 'an empty'} set or list; a test is true, or an object of cases"
    return problem or ("false" if value is False else "not true")


def _value(engine: Any, name: str) -> tuple[Any, str]:
    """Return the value of a rule, or None and what went wrong."""
    try:
        # As a query: asked as a rule, one whose head holds more than a name is not found.
        found = json.loads(engine.eval_query_as_json(f"data.{name}")).get("result")
        return (found[0]["expressions"][0]["value"], "") if found else (None, "")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the engine is no Exception
        return None, engine_sentence(error)


def _rule_ids(text: str) -> tuple[str, ...]:
    return tuple(sorted(set(_RULE_ID.findall(text))))
