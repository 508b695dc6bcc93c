"""One rule as a part of the HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from agent_runtime_ref.review.model import Example, RuleView
from agent_runtime_ref.review.sentences import effect_sentence
from agent_runtime_ref.review.text import plain
from agent_runtime_ref.review.wording import SIDES, looks_at, tests_sentence

__all__ = ["rule_article"]

_SEVERITIES = ("critical", "high", "medium", "low")
_NO_EXAMPLE = "No example was found."


def rule_article(rule: RuleView, anchor: str, controls: Mapping[str, str]) -> str:
    """Return the article about a rule; `controls` are titles by their ids."""
    severity = rule.severity if rule.severity in _SEVERITIES else ""
    effect = " ".join(
        one
        for one in (
            _esc(effect_sentence(rule.package, rule.effect)),
            f"{_label(rule)}: {', '.join(f'<code>{_esc(one)}</code>' for one in rule.reasons)}."
            if rule.reasons
            else "",
        )
        if one
    )
    return (
        f'<article id="{anchor}" aria-labelledby="{anchor}-title">\n'
        f'<div class="above"><a class="id" href="#{anchor}">{_esc(rule.rule_id)}</a>'
        f'<span class="severity {severity}">{_esc(rule.severity) or "severity not given"}</span></div>\n'
        f'<h3 id="{anchor}-title">{_esc(rule.title) or "(no title)"}</h3>\n'
        f'<p class="lead">{_esc(rule.description) or "Its METADATA has no description."}</p>\n'
        + (f'<p class="effect">{effect}</p>\n' if effect else "")
        + _sides(rule)
        + _facts(rule, controls)
        + "</article>\n"
    )


def _label(rule: RuleView) -> str:
    return "What it demands" if rule.effect == "obligation" else "Reason given"


def _esc(text: object) -> str:
    return escape(plain(text))


def _sides(rule: RuleView) -> str:
    inside, outside = SIDES.get(rule.effect, ("Lets in", "Keeps out"))
    if rule.effect == "deny":
        outside = "Refuses"
    columns = [
        ("side", inside, _examples(rule.admits, results=False)),
        ("side out", outside, _examples(rule.keeps_out, results=True)),
    ]
    listed = "".join(f'<div class="{name}">\n<h4>{head}</h4>\n{body}</div>\n' for name, head, body in columns)
    return f'<div class="sides">\n{listed}</div>\n'


def _examples(examples: Sequence[Example], *, results: bool) -> str:
    """Return examples as a list; what came of them is said where the heading does not say it already."""
    if not examples:
        return f"<p>{_NO_EXAMPLE}</p>\n"
    listed = "".join(
        f"<li>{_esc(one.sentence)}{f'<span>{_esc(one.result)}</span>' if results else ''}</li>\n"
        for one in examples
    )
    return f"<ul>\n{listed}</ul>\n"


def _facts(rule: RuleView, controls: Mapping[str, str]) -> str:
    rows = [("Looks at", _esc(looks_at(rule)))]
    if rule.setting_rows:
        values = "".join(f"<dt>{_esc(name)}</dt><dd>{_esc(value)}</dd>" for name, value in rule.setting_rows)
        rows.append(("Settings", f'<dl class="values">{values}</dl>'))
    served = "; ".join(
        f'<span class="id">{_esc(one)}</span> {_esc(controls.get(one, ""))}'.rstrip() for one in rule.controls
    )
    rows += [
        ("Controls", served or '<span class="bad">none</span>'),
        ("Tests", _tests(rule)),
        ("Defined in", f"<code>{_esc(rule.file)}:{rule.line}</code>"),
    ]
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>\n" for name, value in rows if value)
    return f'<dl class="facts">\n{listed}</dl>\n'


def _tests(rule: RuleView) -> str:
    sentence = _esc(tests_sentence(rule))
    if not rule.tests:
        return f'<span class="bad">{sentence}</span>'
    listed = "".join(
        f"<li>{_esc(one.name)}{'' if one.passed else ' <span class=bad>failed</span>'}</li>"
        for one in rule.tests
    )
    return f"<details><summary>{sentence}</summary><ul>{listed}</ul></details>"
