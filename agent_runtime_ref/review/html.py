"""The review as one HTML page: nothing is loaded, nothing runs, and nothing of a bundle is markup."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from html import escape

from agent_runtime_ref.review.html_rules import rule_article
from agent_runtime_ref.review.model import Review
from agent_runtime_ref.review.style import STYLE
from agent_runtime_ref.review.text import is_identifier, plain
from agent_runtime_ref.review.wording import EXAMPLES_NOTE, effect_word, glance, groups, rules_in_order

__all__ = ["html_text"]

Links = Callable[[str], str]  # from a rule id to what the page shows of it, as markup


def html_text(review: Review) -> str:
    """Return the page."""
    anchors = rule_anchors(review)

    def linked(rule_id: str) -> str:
        shown = f'<span class="id">{_esc(rule_id)}</span>'
        return f'<a href="#{anchors[rule_id]}">{shown}</a>' if rule_id in anchors else shown

    sections = [
        _findings(review),
        _controls(review, linked),
        _overview(review, linked),
        *_rules(review, anchors),
        _seeds(review),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n'
        + _head(review)
        + '<body>\n<a class="skip" href="#main">Skip to the report</a>\n<div class="page">\n'
        + _header(review)
        + '<div class="body">\n'
        + _contents(review, anchors)
        + '<main id="main">\n'
        + "".join(sections)
        + "</main>\n</div>\n<footer><p>Which rules serve which control is a claim of whoever wrote the "
        + "policies, not a certificate.</p></footer>\n</div>\n</body>\n</html>\n"
    )


def rule_anchors(review: Review) -> dict[str, str]:
    """Return an anchor for each rule; an id that is no plain name gets a number."""
    return {
        rule.rule_id: f"rule-{rule.rule_id}" if is_identifier(rule.rule_id) else f"unnamed-{number}"
        for number, rule in enumerate(review.rules, start=1)
    }


def _esc(text: object) -> str:
    return escape(plain(text))


def _head(review: Review) -> str:
    """Return the head; its policy lets the page use this style and nothing else, from anywhere."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>Policy review, revision {_esc(review.revision)}</title>\n"
        f"<style>{STYLE}</style>\n</head>\n"
    )


def _header(review: Review) -> str:
    rows = (
        ("Revision", review.revision),
        ("Version of the settings", review.version),
        ("Digest", review.digest),
    )
    listed = "".join(f"<dt>{name}</dt><dd><code>{_esc(value)}</code></dd>" for name, value in rows if value)
    return (
        '<header>\n<p class="kicker">Policy review</p>\n'
        "<h1>What these policies let in and what they keep out</h1>\n"
        f'<p class="glance">{_esc(" ".join(glance(review)))}</p>\n'
        f'<dl class="identity">{listed}</dl>\n</header>\n'
    )


def _contents(review: Review, anchors: dict[str, str]) -> str:
    items = [
        ("findings", "Findings", ""),
        ("controls", "Controls", ""),
        ("overview", "Rules at a glance", ""),
    ]
    for anchor, title, _, rules in groups(review):
        inner = "".join(
            f'<li><a href="#{anchors[one.rule_id]}">{_esc(one.rule_id)}</a></li>' for one in rules
        )
        items.append((anchor, title, f"<ul>{inner}</ul>"))
    items.append(("examples", "How examples are made", ""))
    listed = "\n".join(f'<li><a href="#{anchor}">{title}</a>{inner}</li>' for anchor, title, inner in items)
    return (
        f'<nav aria-labelledby="contents">\n<h2 id="contents">Contents</h2>\n<ul>\n{listed}\n</ul>\n</nav>\n'
    )


def _section(anchor: str, title: str, sentence: str, body: str) -> str:
    said = f"<p>{escape(sentence)}</p>\n" if sentence else ""
    head = f'<section id="{anchor}" aria-labelledby="{anchor}-title">\n<h2 id="{anchor}-title">{title}</h2>\n'
    return f"{head}{said}{body}</section>\n"


def _table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    labels: Sequence[str],
    widths: Sequence[int],
    label: str,
) -> str:
    """Return a table of cells that are markup already.

    `labels` stand before a cell that has a line of its own; `widths` are classes of width, 0 for the rest.
    """
    head = "".join(
        f'<th role="columnheader" scope="col" class="w{width}">{one}</th>'
        for one, width in zip(heads, widths, strict=True)
    )
    body = "".join(
        '<tr role="row">'
        + "".join(
            f'<td role="cell"{mark}>{cell}</td>' for cell, mark in zip(row, _marks(labels), strict=True)
        )
        + "</tr>\n"
        for row in rows
    )
    return (
        f'<table role="table" aria-label="{label}">\n'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>\n'
        f'<tbody role="rowgroup">\n{body}</tbody>\n</table>\n'
    )


def _marks(labels: Sequence[str]) -> list[str]:
    return [f' data-label="{label}"' if label else "" for label in labels]


def severity_mark(severity: str) -> str:
    """Return a severity; one that is not known has no colour."""
    known = severity if severity in ("critical", "high", "medium", "low", "error", "warning") else ""
    return f'<span class="severity {known}">{_esc(severity) or "not given"}</span>'


def _findings(review: Review) -> str:
    if not review.findings:
        return _section("findings", "Findings", "Nothing was found that a reviewer has to know of.", "")
    rows = [
        (
            severity_mark(one.severity),
            f"{_esc(one.message)}<small>{_esc(one.finding_id)}</small>",
            f"<code>{_esc(one.place)}</code>",
        )
        for one in review.findings
    ]
    table = _table(
        ("Severity", "Finding", "Place"), rows, labels=("", "", "Place"), widths=(1, 0, 4), label="Findings"
    )
    sentence = (
        "An error means that the policies are not shown to do what they say; "
        "the other findings are for your judgement."
    )
    return _section("findings", "Findings", sentence, table)


def _controls(review: Review, linked: Links) -> str:
    rows = []
    for one in review.controls:
        behind = "".join(f"<li>{linked(rule_id)}</li>" for rule_id in one.rule_ids)
        title = _esc(one.title) or "(no title)"
        rows.append(
            (
                f'<span class="id">{_esc(one.control_id)}</span><small>{_esc(one.framework)}</small>',
                f"{title}<small>{_esc(one.evidence)}</small>",
                f'<ul class="refs">{behind}</ul>' if behind else '<span class="bad">no rule</span>',
            )
        )
    table = _table(
        ("Control", "What it asks for", "Rules behind it"),
        rows,
        labels=("", "", "Rules"),
        widths=(3, 0, 4),
        label="Controls",
    )
    return _section("controls", "Controls", "Each control and the rules that serve it.", table)


def _overview(review: Review, linked: Links) -> str:
    rows = []
    for rule in rules_in_order(review):
        passed = sum(1 for one in rule.tests if one.passed)
        mark = "good" if passed and passed == len(rule.tests) else "bad"
        rows.append(
            (
                linked(rule.rule_id),
                _esc(rule.title) or "(no title)",
                _esc(effect_word(rule.effect)),
                severity_mark(rule.severity),
                f'<span class="{mark}">{passed} of {len(rule.tests)}</span>',
            )
        )
    heads = ("Rule", "Title", "Effect", "Severity", "Tests passed")
    table = _table(
        heads, rows, labels=("", "", "Effect", "", "Tests passed"), widths=(2, 0, 1, 1, 1), label="Rules"
    )
    return _section("overview", "Rules at a glance", "", table)


def _rules(review: Review, anchors: dict[str, str]) -> list[str]:
    known = {one.control_id for one in review.controls if one.title}
    titles = {one.control_id: one.title for one in review.controls if one.control_id in known}
    return [
        _section(
            anchor,
            title,
            sentence,
            "".join(rule_article(rule, anchors[rule.rule_id], titles) for rule in rules),
        )
        for anchor, title, sentence, rules in groups(review)
    ]


def _seeds(review: Review) -> str:
    rows = []
    for one in review.seeds:
        about = _esc(f"{one.kind} of {one.source}, class {one.memory_class}")
        content = f"{_esc(one.content)}<small>{about}</small>"
        rows.append(
            (f'<span class="id">{_esc(one.record_id)}</span>', content, _esc(one.trust), _esc(one.result))
        )
    heads = ("Seed", "Content", "Trust", "When written")
    table = _table(
        heads, rows, labels=("", "", "Trust", "When written"), widths=(1, 0, 1, 2), label="Seed records"
    )
    return _section("examples", "How examples are made", EXAMPLES_NOTE, table)
