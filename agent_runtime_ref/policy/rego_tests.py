"""The Rego tests of a bundle, run in the embedded engine with line coverage; no OPA binary is needed.

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

from agent_runtime_ref.policy.bundle import Bundle, load_bundle
from agent_runtime_ref.policy.bundle_files import read_tests
from agent_runtime_ref.policy.metadata import package_of
from agent_runtime_ref.resources import policies_path

__all__ = ["Declared", "RegoReport", "RegoResult", "declared_tests", "run_rego_tests"]

_TEST = re.compile(r"^(test_\w+)(\[)?", re.MULTILINE)
_RULE_ID = re.compile(r"\bMEM-[A-Z]-[0-9]{3}\b")


@dataclass(frozen=True, slots=True)
class Declared:
    """A test as its source declares it."""

    package: str
    name: str
    over_cases: bool
    file: str
    line: int
    text: str

    @property
    def cases(self) -> str:
        """Name of the object that a test over cases runs over."""
        return self.name.removeprefix("test_")


@dataclass(frozen=True, slots=True)
class RegoResult:
    """One test, or one case of a test over cases."""

    name: str  # memory.read_test.test_denied[another tenant]
    passed: bool
    detail: str = ""
    rule_ids: tuple[str, ...] = ()  # the rules that the case or the test names


@dataclass(frozen=True, slots=True)
class RegoReport:
    """All results, and the lines of the policies that no test reached."""

    results: tuple[RegoResult, ...]
    coverage: Mapping[str, float]  # package -> percent
    missed: Mapping[str, tuple[int, ...]]  # file -> lines

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
        BundleError: the bundle cannot be loaded.
    """
    bundle = load_bundle(path)
    tests = read_tests(policies_path(path))
    engine = _engine(bundle, tests)
    results = tuple(result for one in declared_tests(tests) for result in _results(engine, one))
    coverage, missed = _coverage(bundle, json.loads(engine.get_coverage_report_as_json()))
    return RegoReport(results=results, coverage=coverage, missed=missed)


def declared_tests(modules: Sequence[tuple[str, str]]) -> Iterator[Declared]:
    """Yield every test that the modules declare, once a name."""
    for path, text in modules:
        found = list(_TEST.finditer(text))
        ends = [match.start() for match in found[1:]] + [len(text)] * bool(found)
        seen: set[str] = set()
        for match, end in zip(found, ends, strict=True):
            if match[1] not in seen:
                seen.add(match[1])
                line = text.count("\n", 0, match.start()) + 1
                body = text[match.start() : end]
                yield Declared(package_of(text), match[1], match[2] is not None, path, line, body)


def _engine(bundle: Bundle, tests: Sequence[tuple[str, str]]) -> Any:
    """Return a regorus engine with policies and tests, counting lines."""
    import regorus

    engine = regorus.Engine()
    for path, text in (*bundle.modules, *tests):
        engine.add_policy(path, text)
    engine.add_data_json(bundle.data_json)
    engine.set_enable_coverage(True)
    engine.set_input_json("{}")
    return engine


def _results(engine: Any, test: Declared) -> Iterator[RegoResult]:
    """Yield the result of a test, or of each of its cases."""
    name = f"{test.package}.{test.name}"
    value, problem = _value(engine, name)
    if not test.over_cases:
        passed = value is True
        rule_ids = _rule_ids(test.text)
        yield RegoResult(name, passed, "" if passed else problem or "not true", rule_ids)
        return
    cases, _ = _value(engine, f"{test.package}.{test.cases}")
    if not isinstance(cases, dict) or not cases:
        yield RegoResult(name, False, f"there is no object `{test.cases}` with its cases")
        return
    held = value if isinstance(value, dict) else {}
    for note, case in cases.items():
        passed = held.get(note) is True
        rule_ids = _rule_ids(json.dumps(case, ensure_ascii=False))
        yield RegoResult(f"{name}[{note}]", passed, "" if passed else problem or "not true", rule_ids)


def _value(engine: Any, name: str) -> tuple[Any, str]:
    """Return the value of a rule, or None and what went wrong."""
    try:
        return json.loads(engine.eval_rule_as_json(f"data.{name}")), ""
    except RuntimeError as error:
        lines = [line for line in str(error).split("Stack backtrace")[0].splitlines() if line.strip()]
        return None, lines[-1].strip() if lines else "the engine failed"


def _rule_ids(text: str) -> tuple[str, ...]:
    return tuple(sorted(set(_RULE_ID.findall(text))))


def _coverage(
    bundle: Bundle, report: Mapping[str, Any]
) -> tuple[dict[str, float], dict[str, tuple[int, ...]]]:
    """Return percent covered by package, and the lines that were not, by file; tests do not count."""
    counted: dict[str, list[int]] = {}
    missed: dict[str, tuple[int, ...]] = {}
    texts = dict(bundle.modules)
    for file in report["files"]:
        text = texts.get(file["path"])
        if text is None:
            continue
        covered, left = file["covered"], file["not_covered"]
        total = counted.setdefault(package_of(text), [0, 0])
        total[0] += len(covered)
        total[1] += len(covered) + len(left)
        if left:
            missed[file["path"]] = tuple(left)
    percent = {name: round(100 * one / all_, 2) if all_ else 100.0 for name, (one, all_) in counted.items()}
    return percent, missed
