"""The reference pages against what their generator writes."""

from __future__ import annotations

import pytest

from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.telemetry.events import CATALOGUE
from docs.generate.__main__ import FOLDER, PAGES
from docs.generate.from_code import error_classes
from docs.generate.from_policies import effect_of


@pytest.mark.parametrize("name", PAGES)
def test_page_is_as_generated(name: str) -> None:
    """A reference page says what the code, the schemas and the policies say; `make docs` mends it."""
    assert PAGES[name]() == (FOLDER / name).read_text(encoding="utf-8")


def test_each_error_has_its_own_code_and_a_meaning() -> None:
    """A code names one class; only the two kinds of wrong document share their parent's message."""
    classes = error_classes()

    assert len({one.code for one in classes}) == len(classes)
    assert [one.__name__ for one in classes if not (one.__doc__ or "").strip()] == []


def test_each_error_message_stands_word_for_word() -> None:
    """Whoever looks up a message finds it."""
    text = (FOLDER / "errors.md").read_text(encoding="utf-8")

    assert [one.code for one in error_classes() if one.message not in text] == []


def test_each_event_has_its_section() -> None:
    """Whoever looks up an event finds it."""
    text = (FOLDER / "events.md").read_text(encoding="utf-8")

    assert [name for name in CATALOGUE if f"\n## {name}\n" not in text] == []


def test_each_rule_says_what_it_does() -> None:
    """A rule with METADATA denies, quarantines, obliges or limits a plan, and gives its reason."""
    bundle = load_bundle()
    modules = dict(bundle.modules)
    effects = {rule.rule_id: effect_of(rule, modules[rule.file]) for rule in bundle.rules}

    assert [
        one for one, (effect, reason) in effects.items() if reason is None and effect != "obligation"
    ] == []


def test_each_number_among_the_settings_has_its_bounds() -> None:
    """A meaning beside them does not hide them."""
    rows = (FOLDER / "settings.md").read_text(encoding="utf-8").splitlines()
    named = {row.split("`")[1]: row for row in rows if row.startswith("| `")}

    assert "Limits: 65536 to 1099511627776." in named["log_rotate_bytes"]
    assert "Limits: 60 to 315360000." in named["log_rotate_seconds"]
