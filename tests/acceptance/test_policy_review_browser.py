"""The report of `policy review` in a real browser: it renders, loads nothing, and fits a phone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from agent_runtime_ref.review import html_text, review_bundle
from tests.acceptance.test_policy_review_foreign import hostile
from tests.browser import Browser, find_browser

__all__ = ["hostile"]  # a fixture

PROGRAM = find_browser()
PHONE, TABLET, DESK = (390, 844), (820, 1180), (1280, 900)
OVERFLOWING = """
[...document.querySelectorAll('body *')]
  .filter(one => one.getClientRects().length && !one.closest('.skip'))
  .filter(one => one.getBoundingClientRect().right > innerWidth + 0.5 || one.scrollWidth > one.clientWidth + 1
    && getComputedStyle(one).display !== 'inline')
  .map(one => one.tagName + '.' + one.className + ': ' + one.textContent.trim().slice(0, 60))
"""
# Luminance contrast of each element with text of its own against the page.
FAINT = """
(() => {
  const numbers = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = colour => numbers(colour).map(one => one / 255)
    .map(one => one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
    .reduce((sum, one, place) => sum + one * [0.2126, 0.7152, 0.0722][place], 0);
  const page = light(getComputedStyle(document.body).backgroundColor);
  return [...document.querySelectorAll('body *')]
    .filter(one => [...one.childNodes].some(part => part.nodeType === 3 && part.textContent.trim()))
    .map(one => [one, light(getComputedStyle(one).color)])
    .filter(([one, text]) => (Math.max(page, text) + 0.05) / (Math.min(page, text) + 0.05) < 4.5)
    .map(([one]) => one.tagName + '.' + one.className);
})()
"""


pytestmark = pytest.mark.skipif(
    PROGRAM is None and os.environ.get("CI") != "true", reason="no Chromium on this machine"
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on the bundled policies."""
    path = tmp_path_factory.mktemp("report") / "review.html"
    path.write_text(html_text(review_bundle()), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A tab that the tests of this module share."""
    assert PROGRAM is not None, "CI must have a Chromium"
    with Browser(PROGRAM) as tab:
        yield tab


def test_it_renders_and_loads_nothing(browser: Browser, report: Path) -> None:
    """The page is there with all rules, asks for nothing but itself, and its own policy is not broken."""
    browser.size(*DESK)
    browser.open(report)

    assert browser.evaluate("document.title").startswith("Policy review")
    assert browser.evaluate("getComputedStyle(document.querySelector('h1')).fontWeight") == "650"
    assert browser.evaluate("document.querySelectorAll('article').length") == browser.evaluate(
        "document.querySelectorAll('#overview tbody tr').length"
    )
    assert browser.evaluate("document.querySelectorAll('article').length") > 40
    assert (browser.requests, browser.problems) == ([report.as_uri()], [])


def test_links_lead_to_their_rules(browser: Browser, report: Path) -> None:
    """A click in the table of rules brings that rule into sight; every link has a place to go to."""
    browser.size(*DESK)
    browser.open(report)
    browser.evaluate("document.querySelector('#overview a[href=\"#rule-MEM-W-111\"]').click()")

    top = browser.evaluate("document.getElementById('rule-MEM-W-111').getBoundingClientRect().top")
    assert (browser.evaluate("location.hash"), 0 <= top < 200) == ("#rule-MEM-W-111", True)
    broken = browser.evaluate(
        "[...document.querySelectorAll('a')].map(one => one.getAttribute('href'))"
        ".filter(one => !one.startsWith('#') || !document.getElementById(one.slice(1)))"
    )
    assert broken == []


@pytest.mark.parametrize("size", [PHONE, TABLET, DESK], ids=["phone", "tablet", "desk"])
def test_nothing_overflows(browser: Browser, report: Path, size: tuple[int, int]) -> None:
    """No element is wider than the window, or than what it stands in."""
    browser.size(*size)
    browser.open(report)

    assert browser.evaluate("document.documentElement.scrollWidth") == size[0]
    assert browser.evaluate(OVERFLOWING) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(browser: Browser, report: Path, scheme: str) -> None:
    """Every text has a contrast of at least 4.5 to the page, by day and by night."""
    browser.size(*DESK)
    browser.prefer(scheme)
    browser.open(report)

    ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (scheme == "dark") == (int(ground.split("(")[1].split(",")[0]) < 128)
    assert browser.evaluate(FAINT) == []
    browser.prefer("light")


def test_paper_shows_every_test(browser: Browser, report: Path) -> None:
    """What is folded on a screen is printed, and the contents beside the text are not."""
    browser.size(*DESK)
    browser.prefer("light", media="print")
    browser.open(report)

    assert browser.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    heights = browser.evaluate(
        "[...document.querySelectorAll('details ul')].map(one => one.getBoundingClientRect().height)"
    )
    assert heights
    assert min(heights) > 0
    browser.prefer("light")


def test_landmarks_and_headings(browser: Browser, report: Path) -> None:
    """A screen reader finds banner, contents and main part, one title, and no heading that skips a level."""
    browser.size(*DESK)
    browser.open(report)
    nodes = browser.page("Accessibility.getFullAXTree")["nodes"]
    roles = [node.get("role", {}).get("value") for node in nodes]

    assert {"banner", "navigation", "main", "contentinfo", "table", "columnheader"} <= set(roles)
    levels = browser.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4')].map(one => Number(one.tagName[1]))"
    )
    assert levels.count(1) == 1
    assert [pair for pair in pairwise(levels) if pair[1] > pair[0] + 1] == []


def test_a_hostile_bundle_is_words(browser: Browser, hostile: Path, tmp_path: Path) -> None:
    """Nothing that a foreign bundle says runs, is loaded or widens the page."""
    page = tmp_path / "hostile.html"
    page.write_text(html_text(review_bundle(hostile)), encoding="utf-8")
    browser.size(*PHONE)
    browser.open(page)

    assert (browser.requests, browser.problems) == ([page.as_uri()], [])
    assert browser.evaluate("document.querySelectorAll('script, img, iframe, [onmouseover]').length") == 0
    assert browser.evaluate(OVERFLOWING) == []
