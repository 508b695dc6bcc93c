"""A bundle that nobody vouches for: what its author wrote is text in every format, and nothing else."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.acceptance.command import Command
from tests.bundles import small, with_rule, with_settings

SCRIPT = "<script>alert(1)</script>"
PLANTED = (
    f"{SCRIPT} | `code` | [link](javascript:alert(2)) ![image](http://evil.example/x.png) "
    "</h3></article><img src=x onerror=alert(3)> **bold** _it_ www.evil.example https://evil.example "
    'a@evil.example "\' onmouseover="alert(4) \x1b[31mred\x1b]0;title\x07 \u202edesrever \u200bhidden'
)
RULE_ID = 'X-1" onfocus="alert(5)" <b>`|'
RULE = f"""\
# METADATA
# title: {json.dumps(PLANTED)}
# description: {json.dumps(PLANTED)}
# custom:
#   rule_id: {json.dumps(RULE_ID)}
#   severity: {json.dumps(PLANTED)}
#   scope: {json.dumps(PLANTED)}
#   controls: [{json.dumps(PLANTED)}, CONTROL-1]
#   attributes: [source, {json.dumps(PLANTED)}]
#   settings: [planted, {json.dumps(PLANTED)}]
deny contains {{"index": index, "rule_id": "MEM-W-991", "reason": {json.dumps(SCRIPT + "|`x`")}}} if {{
	some index, candidate in input.candidates
	candidate.source == "session_state"
}}
"""
CONTROL = {"id": PLANTED, "framework": PLANTED, "title": PLANTED, "evidence": PLANTED, "rules": [PLANTED]}


class Seen(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.tags.add(tag)
        self.attributes += attrs


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A bundle in which every text that a report may show is an attack on its reader."""
    policies = small(tmp_path)
    with_rule(policies, RULE)
    planted = {PLANTED: [PLANTED, 1.5, {PLANTED: None}]}
    with_settings(policies, lambda settings: settings.update(planted=planted))
    with (policies / "compliance/controls.yaml").open("a", encoding="utf-8") as file:
        file.write(f"  - {json.dumps(CONTROL)}\n")
    manifest = {"revision": f"{SCRIPT} | `1`", "roots": ["memory"]}
    (policies / ".manifest").write_text(json.dumps(manifest), encoding="utf-8")
    return policies


def _report(command: Command, policies: Path, style: str) -> str:
    answer = command("policy", "review", "--policies", policies, "--format", style)
    assert answer.code == 1
    return answer.out


def test_html_has_no_element_of_theirs(command: Command, hostile: Path, tmp_path: Path) -> None:
    """The page has the elements and attributes of a harmless bundle's page, and shows the words."""
    page = _report(command, hostile, "html")
    (tmp_path / "harmless").mkdir()
    harmless = command("policy", "review", "--policies", small(tmp_path / "harmless"), "--format", "html").out

    seen, usual = Seen(page), Seen(harmless)

    assert seen.tags - usual.tags <= {"table", "thead", "tbody", "tr", "th", "td", "small", "p", "ul", "li"}
    assert {name for name, _ in seen.attributes} <= {name for name, _ in usual.attributes}
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert {value[0] for name, value in seen.attributes if name == "href" and value} == {"#"}


def test_anchors_of_the_page_are_unique_and_found(command: Command, hostile: Path) -> None:
    """Every link leads to an id of the page, and no id stands twice, whatever rules are called."""
    seen = Seen(_report(command, hostile, "html"))

    ids = [value for name, value in seen.attributes if name == "id"]
    links = {value[1:] for name, value in seen.attributes if name == "href" and value}
    assert len(ids) == len(set(ids))
    assert links <= set(ids)


def test_markdown_has_no_markup_of_theirs(command: Command, hostile: Path) -> None:
    """Read as Markdown with tables and raw HTML, no link, element or column of the report is theirs."""
    text = _report(command, hostile, "markdown")

    page = MarkdownIt("commonmark").enable("table").render(text)

    seen = Seen(page)
    assert seen.tags <= {
        *("h1", "h2", "h3", "p", "ul", "li", "code", "strong"),
        *("table", "thead", "tbody", "tr", "th", "td"),
    }
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    tables = re.findall(r"<table>.*?</table>", page, re.DOTALL)
    assert [set(re.findall(r"<(\w+)>", table)) & {"em", "a"} for table in tables] == [set()] * len(tables)
    for table in tables:
        rows = re.findall(r"<tr>.*?</tr>", table, re.DOTALL)
        assert len({len(re.findall(r"<t[dh]\b", row)) for row in rows}) == 1
    # What a forge makes links of by itself.
    assert not re.search(r"https?://|www\.|\w@\w", text)


@pytest.mark.parametrize("style", ["html", "markdown", "json"])
def test_nothing_acts_on_a_terminal(command: Command, hostile: Path, style: str) -> None:
    """No format holds a control character or one that turns or hides text."""
    text = _report(command, hostile, style)

    assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", text) == []


def test_json_says_what_the_bundle_says(command: Command, hostile: Path) -> None:
    """A program gets the texts as they are; only their notation is harmless."""
    rules = {rule["id"]: rule for rule in json.loads(_report(command, hostile, "json"))["rules"]}

    assert rules[RULE_ID]["title"] == PLANTED
    assert rules["MEM-W-991"]["keeps_out"]


def test_a_rule_that_breaks_on_some_inputs(command: Command, tmp_path: Path) -> None:
    """Where the engine gives no answer about some records, that is an error, and the report is made."""
    policies = small(tmp_path)
    rule = RULE.replace(json.dumps(RULE_ID), '"MEM-W-991"')
    breaks = '\tstartswith(candidate.subject, "user-")\n}'
    with_rule(policies, rule.replace('\tcandidate.source == "session_state"\n}', breaks))

    answer = command("policy", "review", "--policies", policies, "--format", "json")

    assert answer.code == 1
    assert [one["id"] for one in answer.document["rules"]] == ["MEM-R-204", "MEM-W-111", "MEM-W-991"]
    unanswered = {one["place"] for one in answer.document["findings"] if one["id"] == "no-answer"}
    assert unanswered == {"memory.write"}
