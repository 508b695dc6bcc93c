"""What a review consists of: rules in plain words, controls, findings; values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "ERROR",
    "LOW",
    "SEVERITIES",
    "WARNING",
    "Change",
    "ControlView",
    "Example",
    "Finding",
    "Review",
    "RuleView",
    "SeedView",
    "TestUse",
]

ERROR, WARNING, LOW = "error", "warning", "low"
SEVERITIES = (ERROR, WARNING, LOW)


@dataclass(frozen=True, slots=True)
class Change:
    """One attribute of a document that an example changes; `removed` where it is taken away."""

    attribute: str  # trust_rank, or caller.roles, query.limit, operation
    was: Any
    now: Any
    removed: bool = False


@dataclass(frozen=True, slots=True)
class Example:
    """What the policies decided on one document: a seed, or a seed with a few attributes changed."""

    base: str  # id of the seed, or whom a removal is about
    situation: str  # search, inspection, write or removal
    changes: tuple[Change, ...]
    outcome: str  # let in, kept out, refused, quarantined, redacted
    reasons: tuple[str, ...]
    rule_ids: tuple[str, ...]  # every rule that took part
    sentence: str
    result: str


@dataclass(frozen=True, slots=True)
class TestUse:
    """A Rego test, or a case of one, that names a rule."""

    __test__ = False  # no test class of this project's own tests

    name: str
    passed: bool


@dataclass(frozen=True, slots=True)
class RuleView:
    """A rule as a reviewer sees it."""

    rule_id: str
    title: str
    description: str
    severity: str
    controls: tuple[str, ...]
    attributes: tuple[str, ...]
    scope: str
    effect: str  # deny, wall, selector, filter, quarantine, obligation, or empty
    reasons: tuple[str, ...]
    settings: Mapping[str, Any]  # the parts that it uses, with their present values
    setting_rows: tuple[tuple[str, str], ...]  # the same as names and values in words
    package: str
    file: str
    line: int
    lines: tuple[tuple[int, int], ...]  # first and last line of each part
    missed: tuple[int, ...]  # lines of it that no test reached
    tests: tuple[TestUse, ...] = ()
    admits: tuple[Example, ...] = ()
    keeps_out: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True)
class ControlView:
    """A control of a framework and the rules behind it, by controls.yaml or by their METADATA."""

    control_id: str
    framework: str
    title: str
    evidence: str
    rule_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something that a reviewer has to know of."""

    severity: str
    finding_id: str
    place: str  # file:line in the bundle, or the file
    message: str


@dataclass(frozen=True, slots=True)
class SeedView:
    """A record that the examples are made of, and what the write policy gives it."""

    record_id: str
    memory_class: str
    kind: str
    source: str
    content: str
    trust: str
    result: str


@dataclass(frozen=True, slots=True)
class Review:
    """The whole review of one bundle."""

    digest: str
    revision: str
    version: str
    rules: tuple[RuleView, ...]
    controls: tuple[ControlView, ...]
    findings: tuple[Finding, ...]
    seeds: tuple[SeedView, ...]
    coverage: Mapping[str, float] = field(default_factory=dict)  # package -> percent of its lines
    tests_run: int = 0
    tests_failed: int = 0
    has_catalogue: bool = True  # False: the controls are those that METADATA names

    def count(self, severity: str) -> int:
        """Return how many findings have a severity."""
        return sum(1 for one in self.findings if one.severity == severity)
