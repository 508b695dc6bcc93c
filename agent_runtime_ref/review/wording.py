"""Sentences that the HTML and the Markdown form of a review share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agent_runtime_ref.review.model import LOW, SEVERITIES, Review, RuleView
from agent_runtime_ref.review.situations import REVIEWS
from agent_runtime_ref.review.text import plain, value_text

__all__ = [
    "EXAMPLES_NOTE",
    "SIDES",
    "effect_word",
    "glance",
    "groups",
    "looks_at",
    "rules_in_order",
    "setting_rows",
    "tests_sentence",
]

PARTS = (
    ("reading", "Rules for reading", "What may be asked, and which records an answer may hold."),
    ("writing", "Rules for writing", "What may be kept, removed, held back or taken out."),
    ("reviewing", "Rules for reviewing", "What is let out of quarantine, and by whom."),
)
PACKAGES = (("memory.read",), ("memory.write",), REVIEWS)
# What the two columns of examples are called, by effect.
SIDES = {
    "quarantine": ("Lets in", "Holds back"),
    "obligation": ("Leaves as it is", "Acts on"),
    "wall": ("Lets in", "Hides"),
    "selector": ("Lets in", "Leaves out"),
}
_WORDS = {
    "deny": "refusal",
    "wall": "wall",
    "selector": "selection",
    "filter": "filter",
    "quarantine": "quarantine",
    "obligation": "obligation",
}
_REVIEWED = "the record in quarantine"
_SCOPES = {"query": "the request as a whole", "record": "each record", "candidate": "each record to be kept"}
EXAMPLES_NOTE = (
    "Every example was computed for this report. Each seed record below was put to these policies as it is "
    "and with attributes changed: to the values that the settings name, and to the numbers just above and "
    "below each threshold. What is shown is what the policies answered. Where an example does not say "
    "otherwise, user-42 of the record’s own tenant searches, a day after the record was kept, or writes it."
)


def effect_word(effect: str) -> str:
    """Return the name of an effect."""
    return _WORDS.get(effect, "unknown")


def groups(review: Review) -> Iterator[tuple[str, str, str, list[RuleView]]]:
    """Yield anchor, title, sentence and rules of each part of the report that has rules."""
    for (anchor, title, sentence), packages in zip(PARTS, PACKAGES, strict=True):
        rules = sorted((one for one in review.rules if one.package in packages), key=lambda one: one.rule_id)
        if rules:
            yield anchor, title, sentence, rules
    known = {package for packages in PACKAGES for package in packages}
    others = [rule for rule in review.rules if rule.package not in known]
    if others:
        yield (
            "others",
            "Other rules",
            "They lie in packages of their own; the examples show where they take part in a decision.",
            others,
        )


def rules_in_order(review: Review) -> list[RuleView]:
    """Return all rules in the order in which the report goes through them."""
    return [rule for _, _, _, rules in groups(review) for rule in rules]


def glance(review: Review) -> list[str]:
    """Return what a reader should know first, a sentence each."""
    rules, controls = _counted(len(review.rules), "rule"), _counted(len(review.controls), "control")
    serve = "serves" if len(review.rules) == 1 else "serve"
    if not review.has_catalogue:
        named = "names" if len(review.rules) == 1 else "name"
        told = f"{rules}, which {named} {controls} of which there is no readable catalogue."
    else:
        told = f"{rules} {serve} {controls}."
    found = [_counted(count, word) for word in SEVERITIES if (count := review.count(word))]
    return [
        told,
        _tests_glance(review),
        f"Findings: {', '.join(found)}." if found else "There are no findings.",
    ]


def _tests_glance(review: Review) -> str:
    if not review.tests_run:
        return "No tests could be run."
    passed = "all pass" if not review.tests_failed else f"{review.tests_failed:,} fail"
    covered = ", ".join(f"{plain(name)} {percent:g} %" for name, percent in review.coverage.items())
    return f"{_counted(review.tests_run, 'test')} ran, {passed}; lines that they reach: {covered}."


def _counted(number: int, word: str) -> str:
    if word in SEVERITIES:
        plural = {"error": "errors", "warning": "warnings", LOW: "of low severity"}[word]
        return f"{number:,} {word if number == 1 and word != LOW else plural}"
    return f"{number:,} {word if number == 1 else word + 's'}"


def tests_sentence(rule: RuleView) -> str:
    """Return how well a rule is tested."""
    if not rule.tests:
        return "No test names this rule."
    passed = sum(1 for one in rule.tests if one.passed)
    total = len(rule.tests)
    said = f"{_counted(total, 'test')}, {'all' if passed == total and total > 1 else passed} passed"
    if total == 1:
        said = f"1 test, {'passed' if passed else 'failed'}"
    lines = ", ".join(map(str, rule.missed))
    return f"{said}; {f'lines that no test reaches: {lines}' if lines else 'every line is reached'}."


def looks_at(rule: RuleView) -> str:
    """Return what a rule looks at."""
    place = _SCOPES.get(rule.scope, plain(rule.scope))
    if rule.package in REVIEWS and rule.scope == "candidate":
        place = _REVIEWED
    names = ", ".join(plain(name) for name in rule.attributes)
    return f"{place}: {names}" if names and place else names or place


def setting_rows(used: Mapping[str, Any], settings: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return what is used of `settings` as pairs of a name, its steps joined, and a value in words."""
    return tuple((" › ".join(path), text) for path, text in _leaves(used, settings, ()) if path)


def _leaves(value: Any, whole: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the leaves of `value`, a part of `whole`: names that stand for yes or no are one list."""
    if isinstance(value, Mapping) and value and not _are_names(whole):
        for name, inner in value.items():
            yield from _leaves(inner, whole[name], (*path, plain(name)))
    elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        yield path, "; ".join(value_text(one) for one in value)
    else:
        yield path, value_text(value)


def _are_names(value: Mapping[str, Any]) -> bool:
    return all(isinstance(one, bool) for one in value.values())
