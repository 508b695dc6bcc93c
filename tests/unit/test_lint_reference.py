"""docs/reference/lint-rules.md against the table of rules."""

from __future__ import annotations

import re
from pathlib import Path

from agent_runtime_ref.linting import RULES
from agent_runtime_ref.linting.reference import lint_rules_page
from agent_runtime_ref.linting.rules import GROUPS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "lint-rules.md"


def test_the_page_is_what_the_table_makes_of_it() -> None:
    """Whoever changes a rule writes the page anew."""
    assert lint_rules_page() == PAGE.read_text(encoding="utf-8")


def test_every_rule_says_what_it_demands_and_what_to_do() -> None:
    """Ids have one form, and a group that the page knows; sentences begin and end as the house does."""
    for rule_id, rule in RULES.items():
        assert re.fullmatch(r"LINT-[A-Z]-[0-9]{3}", rule_id)
        assert rule.group in GROUPS
        assert rule.severity in ("error", "warning")
        assert not rule.title.endswith(".")
        assert not rule.remedy.endswith(".")
