"""What the tests of a bundle reach: lines by package, and rules by their ids.

A head is evaluated only when its body holds, so a head that was reached is a rule that fired. An engine
counts lines; where a head and its body share one, they are set apart before the engine sees them. The line
then counts as reached when either is, and the rule as fired when its head is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_runtime_ref.policy.metadata import package_of
from agent_runtime_ref.policy.rego_source import line_of, rules_in

__all__ = ["Apart", "Coverage", "RuleCoverage", "coverage_of", "set_apart"]


@dataclass(frozen=True, slots=True)
class RuleCoverage:
    """What the tests reach of the rules that answer with one id."""

    rule_id: str
    package: str
    file: str
    line: int  # of the first head
    bodies: int
    fired: int  # bodies that held in a test
    missed: tuple[int, ...]  # lines of `file`

    @property
    def reached(self) -> bool:
        """Say whether the rule answered in any test."""
        return self.fired > 0


@dataclass(frozen=True, slots=True)
class Coverage:
    """Lines and rules that tests reach."""

    lines: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # package -> covered, of how many
    missed: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # file -> lines
    rules: tuple[RuleCoverage, ...] = ()

    @property
    def percent(self) -> dict[str, float]:
        """Lines covered, in percent, by package."""
        return {
            name: round(100 * covered / total, 2) if total else 100.0
            for name, (covered, total) in self.lines.items()
        }


@dataclass(frozen=True, slots=True)
class Apart:
    """A module whose heads have lines of their own, and the line of the file that each line came from."""

    path: str
    text: str
    origin: tuple[int, ...]

    def lines(self, start: int, end: int) -> range:
        """Return the lines of this text, counted from 1, that a span of bytes touches."""
        raw = self.text.encode("utf-8")
        return range(line_of(raw, start), line_of(raw, max(start, end - 1)) + 1)


def set_apart(path: str, text: str) -> Apart:
    """Return a module in which no body begins on the last line of its head.

    Raises:
        BundleError: the module does not parse.
    """
    raw = text.encode("utf-8")
    cuts = [
        start
        for rule in rules_in(path, text)
        for body in rule.bodies
        for start in (statement["span"]["start"] for statement in body.query["stmts"][:1])
        if line_of(raw, start) == line_of(raw, body.start)
    ]
    parts: list[str] = []
    origin = [1]
    for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        part = raw[start:end].decode("utf-8")
        parts.append(part)
        origin += range(origin[-1] + 1, origin[-1] + 1 + part.count("\n"))
        origin += origin[-1:] if end < len(raw) else []
    return Apart(path, "\n".join(parts), tuple(origin))


def coverage_of(modules: Sequence[Apart], report: Mapping[str, Any]) -> Coverage:
    """Return what an engine that ran `modules` reports, told by the lines of their files."""
    seen = {file["path"]: file for file in report["files"]}
    lines: dict[str, tuple[int, int]] = {}
    missed: dict[str, tuple[int, ...]] = {}
    rules: dict[str, RuleCoverage] = {}
    for module in modules:
        file = seen.get(module.path) or {"covered": (), "not_covered": _lines_of(module)}
        reached = {module.origin[line - 1] for line in file["covered"]}
        left = {module.origin[line - 1] for line in file["not_covered"]} - reached
        package = package_of(module.text)
        before = lines.get(package, (0, 0))
        lines[package] = before[0] + len(reached), before[1] + len(reached) + len(left)
        if left:
            missed[module.path] = tuple(sorted(left))
        for one in _rules(module, package, frozenset(file["not_covered"])):
            known = rules.get(one.rule_id)
            rules[one.rule_id] = one if known is None else _together(known, one)
    return Coverage(lines, missed, tuple(rules[rule_id] for rule_id in sorted(rules)))


def _lines_of(module: Apart) -> list[int]:
    """Return the lines that count in a module of which nothing was evaluated, so no engine tells them."""
    spans = [
        span
        for rule in rules_in(module.path, module.text)
        for span in (
            (rule.head_start, rule.head_end),
            *(
                (one["span"]["start"], one["span"]["end"])
                for body in rule.bodies
                for one in body.query["stmts"]
            ),
        )
    ]
    return sorted({module.lines(*span).start for span in spans})


def _rules(module: Apart, package: str, left: frozenset[int]) -> Iterator[RuleCoverage]:
    """Yield what is reached of each definition that has an id."""
    for rule in rules_in(module.path, module.text):
        if rule.rule_id:
            own = module.lines(rule.start, rule.end)
            fired = left.isdisjoint(module.lines(rule.head_start, rule.head_end))
            missed = tuple(sorted({module.origin[line - 1] for line in own if line in left}))
            line = module.origin[own.start - 1]
            yield RuleCoverage(rule.rule_id, package, module.path, line, 1, int(fired), missed)


def _together(one: RuleCoverage, other: RuleCoverage) -> RuleCoverage:
    """Return two definitions of a rule as one; lines are told of the file that the first lies in."""
    missed = one.missed + (other.missed if other.file == one.file else ())
    return RuleCoverage(
        one.rule_id, one.package, one.file, one.line,
        one.bodies + other.bodies, one.fired + other.fired, tuple(sorted(set(missed))),
    )  # fmt: skip
