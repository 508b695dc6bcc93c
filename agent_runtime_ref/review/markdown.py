"""The review as Markdown, for a merge request or a wiki; nothing of a bundle is markup in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from agent_runtime_ref.review.model import Example, Review, RuleView
from agent_runtime_ref.review.sentences import effect_sentence
from agent_runtime_ref.review.text import is_identifier, plain
from agent_runtime_ref.review.wording import (
    EXAMPLES_NOTE,
    SIDES,
    effect_word,
    glance,
    groups,
    looks_at,
    rules_in_order,
    tests_sentence,
)

__all__ = ["markdown_text"]

# Whatever begins markup in any common dialect, an address or a name that becomes a link among it. What stands
# within a word begins nothing.
_MARKS = re.compile(
    r"[\\`*{}\[\]()!|<>&~$@^]|(?<![A-Za-z0-9])[_+=#-]|[_+=#-](?![A-Za-z0-9])"
    r"|:(?=//)|(?<=mailto):|(?<=xmpp):|(?<=\d)\.(?= )|(?i:(?<=www)\.)"
)
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "|": "&#124;", "@": "&#64;", ":": "&#58;", ".": "&#46;"}


def markdown_text(review: Review) -> str:
    """Return the document."""
    parts = ["# Policy review", " ".join(_esc(one) for one in glance(review))]
    identity = (
        ("revision", review.revision),
        ("version of the settings", review.version),
        ("digest", review.digest),
    )
    parts.append("\n".join(f"- {name}: {_code(value)}" for name, value in identity if value))
    parts += [
        "## Findings",
        _findings(review),
        "## Controls",
        _controls(review),
        "## Rules at a glance",
        _overview(review),
    ]
    for _, title, sentence, rules in groups(review):
        parts += [f"## {title}", sentence]
        for rule in rules:
            parts += _rule(rule)
    rows = [
        (_code(one.record_id), _esc(one.content), _esc(one.trust), _esc(one.result)) for one in review.seeds
    ]
    parts += ["## How examples are made", EXAMPLES_NOTE]
    parts.append(_table(("seed", "content", "trust", "when written"), rows))
    return "\n\n".join(parts) + "\n"


def _esc(text: object) -> str:
    """Return text in which a reader of Markdown sees no markup."""
    return _MARKS.sub(lambda match: _ENTITIES.get(match[0]) or "\\" + match[0], plain(text))


def _code(text: object) -> str:
    """Return a name as code; what is no plain name is text."""
    shown = plain(text)
    return (
        f"`{shown}`"
        if is_identifier(shown) or re.fullmatch(r"[\w./:-]{1,200}", shown, re.ASCII)
        else _esc(shown)
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _findings(review: Review) -> str:
    if not review.findings:
        return "Nothing was found that a reviewer has to know of."
    rows = [
        (one.severity, _code(one.finding_id), _esc(one.message), _code(one.place)) for one in review.findings
    ]
    return _table(("severity", "id", "finding", "place"), rows)


def _controls(review: Review) -> str:
    rows = [
        (
            _code(one.control_id),
            _esc(one.framework),
            _esc(one.title),
            _esc(one.evidence),
            ", ".join(_code(rule_id) for rule_id in one.rule_ids) or "no rule",
        )
        for one in review.controls
    ]
    return _table(("control", "framework", "title", "what it asks for", "rules"), rows)


def _overview(review: Review) -> str:
    rows = []
    for rule in rules_in_order(review):
        passed = sum(1 for one in rule.tests if one.passed)
        row = (_code(rule.rule_id), _esc(rule.title), effect_word(rule.effect), _esc(rule.severity))
        rows.append((*row, f"{passed} of {len(rule.tests)}"))
    return _table(("rule", "title", "effect", "severity", "tests passed"), rows)


def _rule(rule: RuleView) -> Iterator[str]:
    yield f"### {_esc(rule.rule_id)}"
    title, description = _esc(rule.title) or "no title", _esc(rule.description)
    said = [f"**{title}.** {description or 'Its METADATA has no description.'}"]
    if effect := effect_sentence(rule.package, rule.effect):
        said.append(effect)
    yield "\n".join(said)
    yield "\n".join(_facts(rule))
    inside, outside = SIDES.get(rule.effect, ("Lets in", "Refuses" if rule.effect == "deny" else "Keeps out"))
    yield f"{inside}:\n\n{_examples(rule.admits)}"
    yield f"{outside}:\n\n{_examples(rule.keeps_out)}"


def _facts(rule: RuleView) -> Iterator[str]:
    yield f"- severity: {_esc(rule.severity) or 'not given'}"
    if rule.reasons:
        yield f"- reason given: {', '.join(_code(one) for one in rule.reasons)}"
    if looked := looks_at(rule):
        yield f"- looks at: {_esc(looked)}"
    for name, value in rule.setting_rows:
        yield f"- setting {_esc(name)}: {_esc(value)}"
    yield f"- controls: {', '.join(_code(one) for one in rule.controls) or 'none'}"
    yield f"- tests: {_esc(tests_sentence(rule))}"
    yield f"- defined in: {_code(f'{rule.file}:{rule.line}')}"


def _examples(examples: Sequence[Example]) -> str:
    if not examples:
        return "- No example was found."
    return "\n".join(f"- {_esc(one.sentence)} — {_esc(one.result)}" for one in examples)
