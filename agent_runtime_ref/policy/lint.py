"""What a policy bundle must have beside rules that parse: ids, METADATA, controls, tests, a complete plan.

All findings of a bundle come from one run; whether a rule is right is for its tests to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_runtime_ref.errors import BundleError
from agent_runtime_ref.policy.bundle import Bundle, load_bundle
from agent_runtime_ref.policy.bundle_files import read_tests
from agent_runtime_ref.policy.controls import CONTROLS, Control, NoControls, read_controls
from agent_runtime_ref.policy.metadata import Annotation, RuleInfo, annotations_of, package_of
from agent_runtime_ref.policy.portable import PolicyFinding, masked, not_portable, position
from agent_runtime_ref.policy.rego_tests import declared_tests

__all__ = ["lint_bundle"]

SEVERITIES = frozenset({"low", "medium", "high", "critical"})
SCOPES = frozenset({"query", "record", "candidate"})
_HEAD = re.compile(r"^(deny|quarantine|obligations|excluded|clauses) contains \{", re.MULTILINE)
_HEAD_ID = re.compile(r'"rule_id":\s*"([^"\n]*)"')
_INCOMPLETE = re.compile(r'^incomplete contains "([^"\n]*)"', re.MULTILINE)
_PLACE = re.compile(r":(\d+):(\d+)")


@dataclass(frozen=True, slots=True)
class Head:
    """A rule that puts an id into a decision."""

    collection: str
    rule_id: str
    path: str
    line: int
    column: int


def lint_bundle(path: Path) -> tuple[PolicyFinding, ...]:
    """Return everything that is wrong with the bundle in a folder or archive, by file and line."""
    try:
        bundle = load_bundle(path)
    except BundleError as error:
        return (PolicyFinding(str(path), 1, 1, "error", "LINT-P-000", f"{error.reason}: {error.detail}"),)
    tests: tuple[tuple[str, str], ...] = ()
    try:
        tests = read_tests(path)
        unread: tuple[PolicyFinding, ...] = ()
    except BundleError as error:
        unread = (PolicyFinding(str(path), 1, 1, "error", "LINT-P-012", error.detail),)
    found = [finding for module in (*bundle.modules, *tests) for finding in _parse(*module)]
    found += [finding for module in bundle.modules for finding in not_portable(*module)]
    found += _structure(bundle)
    found += unread or _tested(bundle, tests)
    found += _controlled(bundle, path)
    return tuple(sorted(found, key=lambda one: (one.path, one.line, one.column, one.rule_id, one.message)))


def _parse(path: str, text: str) -> Iterator[PolicyFinding]:
    import regorus

    try:
        regorus.Engine().add_policy(path, text)
    except RuntimeError as error:
        said = str(error).split("Stack backtrace")[0]
        place = _PLACE.search(said)
        line, column = (int(place[1]), int(place[2])) if place else (1, 1)
        message = next((one.strip() for one in said.splitlines() if "error:" in one), "does not parse")
        yield PolicyFinding(path, line, column, "error", "LINT-P-001", message.removeprefix("error: "))


def _structure(bundle: Bundle) -> Iterator[PolicyFinding]:
    """Yield what is wrong between the heads of the rules and their METADATA."""
    heads = [head for module in bundle.modules for head in _heads(*module)]
    described = {rule.rule_id for rule in bundle.rules}
    for path, text in bundle.modules:
        for annotation in annotations_of(text):
            yield from _annotation(path, annotation, bundle.settings)
    seen: set[str] = set()
    for rule in bundle.rules:
        if rule.rule_id in seen:
            yield _about(rule, "LINT-P-006", f"rule id `{rule.rule_id}` stands in two METADATA comments")
        seen.add(rule.rule_id)
        if all(head.rule_id != rule.rule_id for head in heads):
            yield _about(rule, "LINT-P-007", f"no rule answers with the id `{rule.rule_id}`")
    for head in {one.rule_id: one for one in reversed(heads)}.values():
        if head.rule_id not in described:
            message = f"rule `{head.rule_id}` has no METADATA with title, severity and controls"
            if not head.rule_id:
                message = (
                    f"a rule of `{head.collection}` answers without a rule_id, so METADATA cannot name it"
                )
            yield PolicyFinding(head.path, head.line, head.column, "error", "LINT-P-005", message)
    yield from _plan(bundle, heads)


def _heads(path: str, text: str) -> Iterator[Head]:
    code, _ = masked(text)
    for match in _HEAD.finditer(code):
        end = code.find("\n}", match.end())
        named = _HEAD_ID.search(text, match.end(), len(text) if end < 0 else end)
        yield Head(match[1], named[1] if named else "", path, *position(text, match.start()))


def _plan(bundle: Bundle, heads: Sequence[Head]) -> Iterator[PolicyFinding]:
    """Yield exclusions without a clause: a store that carries out the plan alone would not apply them."""
    said = {head.rule_id for head in heads if head.collection == "clauses"}
    said |= {name for _, text in bundle.modules for name in _INCOMPLETE.findall(text)}
    for head in heads:
        if head.collection == "excluded" and head.rule_id not in said:
            message = (
                f"`{head.rule_id}` excludes records but has no clause; add one, or `incomplete contains`"
            )
            yield PolicyFinding(head.path, head.line, head.column, "error", "LINT-P-011", message)


def _annotation(path: str, one: Annotation, settings: Mapping[str, Any]) -> Iterator[PolicyFinding]:
    def finding(message: str) -> PolicyFinding:
        return PolicyFinding(path, one.line, 1, "error", "LINT-P-005", message)

    if one.problem is not None or not isinstance(one.value, Mapping):
        yield finding(f"METADATA is no mapping in YAML: {one.problem or 'no mapping'}")
        return
    custom = one.value.get("custom")
    if not isinstance(custom, Mapping) or "rule_id" not in custom:
        return
    for name in ("title", "description"):
        if not str(one.value.get(name) or "").strip():
            yield finding(f"`{custom['rule_id']}` has no {name}")
    for message in _custom(custom, settings):
        yield finding(f"`{custom['rule_id']}` {message}")


def _custom(custom: Mapping[str, Any], settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the part of METADATA that is ours."""
    if custom.get("severity") not in SEVERITIES:
        yield f"needs a severity: {', '.join(sorted(SEVERITIES))}"
    if custom.get("scope") not in SCOPES:
        yield f"needs a scope: {', '.join(sorted(SCOPES))}"
    for name in ("controls", "attributes", "settings"):
        if not isinstance(custom.get(name), list):
            yield f"needs a list of {name}, which may be empty"
    if not custom.get("controls"):
        yield "serves no control"
    for name in custom.get("settings") or ():
        if name not in settings:
            yield f"names the setting `{name}`, which there is not"


def _tested(bundle: Bundle, tests: Sequence[tuple[str, str]]) -> Iterator[PolicyFinding]:
    text = "\n".join(one for _, one in tests)
    packages = {package_of(one) for _, one in tests}
    for name in sorted(
        {rule.package for rule in bundle.rules} - {one.removesuffix("_test") for one in packages}
    ):
        path = next(path for path, one in bundle.modules if package_of(one) == name)
        yield PolicyFinding(path, 1, 1, "error", "LINT-P-009", f"package `{name}` has no tests")
    for rule in bundle.rules:
        if f"{rule.package}_test" in packages and f'"{rule.rule_id}"' not in text:
            yield _about(rule, "LINT-P-009", f"no test names the rule `{rule.rule_id}`")
    for test in declared_tests(tests):
        source = dict(tests)[test.file]
        if test.over_cases and not re.search(rf"(?m)^{test.cases} :=", source):
            message = f"`{test.name}` runs over cases, so `{test.cases}` must be the object that holds them"
            yield PolicyFinding(test.file, test.line, 1, "error", "LINT-P-010", message)


def _controlled(bundle: Bundle, path: Path) -> Iterator[PolicyFinding]:
    """Yield where METADATA and controls.yaml do not say the same."""
    controls = read_controls(path)
    if isinstance(controls, NoControls):
        yield PolicyFinding(CONTROLS, 1, 1, "error", "LINT-P-008", str(controls))
        return
    by_id: dict[str, Control] = {control.control_id: control for control in controls}
    rules = {rule.rule_id: rule for rule in bundle.rules}
    for rule in rules.values():
        for name in rule.controls:
            if name not in by_id:
                yield _about(rule, "LINT-P-008", f"control `{name}` is not in {CONTROLS}")
            elif rule.rule_id not in by_id[name].rule_ids:
                yield _about(rule, "LINT-P-008", f"control `{name}` does not list the rule `{rule.rule_id}`")
    for control in controls:
        for rule_id in control.rule_ids:
            if rule_id not in rules or control.control_id not in rules[rule_id].controls:
                message = f"control `{control.control_id}` lists `{rule_id}`, whose METADATA does not name it"
                yield PolicyFinding(CONTROLS, 1, 1, "error", "LINT-P-008", message)


def _about(rule: RuleInfo, lint_id: str, message: str) -> PolicyFinding:
    return PolicyFinding(rule.file, rule.line, 1, "error", lint_id, message)
