"""The bundled policies: their Rego tests, that each rule fires in one, and their lint."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_runtime_ref.policy import Bundle, load_bundle
from agent_runtime_ref.policy.lint import lint_bundle
from agent_runtime_ref.policy.rego_tests import RegoReport, run_rego_tests
from agent_runtime_ref.resources import policies_path

RULES = [rule.rule_id for rule in load_bundle().rules]


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    """The bundled policies."""
    return load_bundle()


@pytest.fixture(scope="module")
def report() -> RegoReport:
    """The outcome of the bundled Rego tests, run once."""
    return run_rego_tests()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the bundled policies that a test may spoil."""
    copy = tmp_path / "policies"
    shutil.copytree(policies_path(), copy)
    return copy


class TestRegoTests:
    """The tests beside the rules, run in the embedded engine."""

    def test_all_pass(self, report: RegoReport) -> None:
        """Every declared test, and every case of it, is true."""
        assert [(one.name, one.detail) for one in report.failed] == []

    def test_every_line_is_reached(self, report: RegoReport) -> None:
        """Line coverage of every policy is complete."""
        assert report.coverage == {rule.package: 100.0 for rule in load_bundle().rules}
        assert report.missed == {}

    @pytest.mark.parametrize("rule_id", RULES)
    def test_each_rule_fires(self, report: RegoReport, rule_id: str) -> None:
        """A test that passes compares the ids of the rules that answered with the rule's own."""
        assert report.tests_of(rule_id)

    def test_a_wrong_case_fails(self, folder: Path) -> None:
        """A case that is not true is named, though an engine leaves it out of its answer."""
        rules = folder / "memory/read/read.rego"
        spoiled = rules.read_text(encoding="utf-8").replace(
            '"reason": "purpose_unknown"', '"reason": "other"'
        )
        rules.write_text(spoiled, encoding="utf-8")

        failed = {one.name for one in run_rego_tests(folder).failed}

        assert failed == {
            "memory.read_test.test_denied[an unknown purpose]",
            "memory.read_test.test_denied[no purpose]",
        }

    def test_a_test_that_is_undefined_fails(self, folder: Path) -> None:
        """A test that does not appear in the answer has not passed."""
        path = folder / "memory/read/read_test.rego"
        text = path.read_text(encoding="utf-8")
        path.write_text(text + "\ntest_nothing if input.nothing == 1\n", encoding="utf-8")

        assert [one.name for one in run_rego_tests(folder).failed] == ["memory.read_test.test_nothing"]


class TestCatalogue:
    """What METADATA says of the rules."""

    def test_ids_are_unique(self, bundle: Bundle) -> None:
        """An id in a decision leads to one rule."""
        assert len(RULES) == len(set(RULES))

    def test_each_rule_says_what_it_is_for(self, bundle: Bundle) -> None:
        """Title, description, severity and at least one control stand with each rule."""
        bare = [one.rule_id for one in bundle.rules if not (one.title and one.description and one.controls)]

        assert bare == []

    def test_each_setting_is_named_by_a_rule(self, bundle: Bundle) -> None:
        """A setting that no rule names would be one that changes nothing."""
        named = {name for rule in bundle.rules for name in rule.settings}
        beside = {"version", "trust_ranks", "unproven_trust_max", "durable_on_volatile_stores"}

        assert set(bundle.settings) - named - beside == set()


SPOILED: dict[str, tuple[str, Callable[[str], str], str]] = {
    "syntax": ("memory/read/walls.rego", lambda text: text + "\nallow {\n", "LINT-P-001"),
    "import": (
        "memory/read/walls.rego",
        lambda text: text.replace("import future.keywords.not\n", ""),
        "LINT-P-002",
    ),
    "clock": ("memory/read/walls.rego", lambda text: text + "\nnow := time.now_ns()\n", "LINT-P-003"),
    "interpolation": ("memory/read/walls.rego", lambda text: text + '\nname := $"a"\n', "LINT-P-003"),
    "unicode class": (
        "memory/read/walls.rego",
        lambda text: text + '\nok if regex.match("^\\\\d+$", input.x)\n',
        "LINT-P-003",
    ),
    "letters": ("memory/read/walls.rego", lambda text: text + "\nname := upper(input.x)\n", "LINT-P-004"),
    "severity": (
        "memory/read/walls.rego",
        lambda text: text.replace("severity: critical", "severity: big"),
        "LINT-P-005",
    ),
    "no METADATA": (
        "memory/read/walls.rego",
        lambda text: text + '\ndeny contains {"rule_id": "MEM-R-199", "reason": "x"} if input.x == 1\n',
        "LINT-P-005",
    ),
    "broken METADATA": (
        "memory/read/walls.rego",
        lambda text: text.replace("# custom:", "# custom: ["),
        "LINT-P-005",
    ),
    "id twice": (
        "memory/read/walls.rego",
        lambda text: text.replace("rule_id: MEM-R-002", "rule_id: MEM-R-001"),
        "LINT-P-006",
    ),
    "id without a rule": (
        "memory/read/walls.rego",
        lambda text: text.replace("rule_id: MEM-R-002", "rule_id: MEM-R-099"),
        "LINT-P-007",
    ),
    "unknown control": (
        "memory/read/walls.rego",
        lambda text: text.replace("GDPR-5-1-C", "GDPR-99", 1),
        "LINT-P-008",
    ),
    "control without its rule": (
        "compliance/controls.yaml",
        lambda text: text.replace("      - MEM-R-001\n", "", 1),
        "LINT-P-008",
    ),
    "untested rule": (
        "memory/read/read_test.rego",
        lambda text: text.replace("MEM-R-015", "MEM-R-915"),
        "LINT-P-009",
    ),
    "cases that cannot be counted": (
        "memory/read/read_test.rego",
        lambda text: text + "\ntest_lost[note] if some note in [1]\n",
        "LINT-P-010",
    ),
    "exclusion without a clause": (
        "memory/read/walls.rego",
        lambda text: (
            text + '\nexcluded contains {"index": 0, "rule_id": "MEM-R-250", "reason": "x"} if input.x\n'
        ),
        "LINT-P-011",
    ),
    "settings": ("memory/settings/data.json", lambda text: text.replace('"limits"', '"limit"'), "LINT-P-000"),
}


class TestLint:
    """What lint finds in a bundle, and that it finds nothing in ours."""

    def test_the_bundled_policies_are_clean(self) -> None:
        """Our own bundle passes its own lint."""
        assert lint_bundle(policies_path()) == ()

    @pytest.mark.parametrize("case", SPOILED)
    def test_found(self, folder: Path, case: str) -> None:
        """Each way of spoiling a bundle has a finding with its file."""
        name, spoil, lint_id = SPOILED[case]
        path = folder / name
        text = path.read_text(encoding="utf-8")
        assert spoil(text) != text
        path.write_text(spoil(text), encoding="utf-8")

        found = [one for one in lint_bundle(folder) if one.rule_id == lint_id]

        assert found
        assert all(one.line >= 1 and one.column >= 1 and one.message for one in found)

    def test_a_rule_without_an_id_is_named_by_what_it_adds_to(self, folder: Path) -> None:
        """Its name cannot be told, since it has none."""
        path = folder / "memory/read/walls.rego"
        path.write_text(
            path.read_text(encoding="utf-8") + '\ndeny contains {"reason": "x"} if input.x == 1\n'
        )

        (found,) = [one for one in lint_bundle(folder) if one.rule_id == "LINT-P-005"]

        assert found.message == "a rule of `deny` answers without a rule_id, so METADATA cannot name it"

    def test_an_exclusion_may_say_that_the_plan_is_incomplete(self, folder: Path) -> None:
        """A rule without a clause is in order once the plan admits it."""
        path = folder / "memory/read/walls.rego"
        rule = '\nexcluded contains {"index": 0, "rule_id": "MEM-R-250", "reason": "x"} if input.x\n'
        path.write_text(
            path.read_text(encoding="utf-8") + rule + '\nincomplete contains "MEM-R-250"\n', encoding="utf-8"
        )

        assert [one for one in lint_bundle(folder) if one.rule_id == "LINT-P-011"] == []
