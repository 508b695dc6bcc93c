"""`policy review`: what it finds wrong with a bundle, and where it says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.command import Command
from tests.acceptance.reviews import FRIDAY, SMALL_RULES
from tests.acceptance.reviews import found as _found
from tests.acceptance.reviews import reviewed as _reviewed
from tests.acceptance.reviews import rules as _rules
from tests.acceptance.reviews import texts as _texts
from tests.bundles import small, with_rule


class TestFindings:
    """What a reviewer has to know of, and the exit code."""

    def test_none(self, command: Command, tmp_path: Path) -> None:
        """A bundle in which every rule has its test and its control ends in 0."""
        answer = _reviewed(command, small(tmp_path))

        assert (_found(answer), answer.code, list(_rules(answer.document))) == ([], 0, SMALL_RULES)

    def test_a_rule_without_test_and_control(self, command: Command, tmp_path: Path) -> None:
        """Both are errors with their place, and the command ends in 1; the rule has its examples."""
        policies = small(tmp_path)
        with_rule(policies, FRIDAY)

        answer = _reviewed(command, policies)

        assert {("rule-without-control", "error"), ("rule-without-test", "error")} <= set(_found(answer))
        assert {one["place"] for one in answer.document["findings"]} == {"memory/write/own.rego:6"}
        assert answer.code == 1
        assert (
            _texts(_rules(answer.document)["MEM-W-990"]["keeps_out"])[0]
            == "mem-003 as it is: refused: friday"
        )

    @pytest.mark.parametrize("text", ["x: [", "controls: {}", "controls: [{id: A}]"])
    def test_controls_that_cannot_be_read(self, command: Command, tmp_path: Path, text: str) -> None:
        """A list that is there and cannot be read is an error, and nothing is said to be served."""
        policies = small(tmp_path)
        (policies / "compliance/controls.yaml").write_text(text, encoding="utf-8")

        answer = _reviewed(command, policies)
        page = command("policy", "review", "--policies", policies, "--format", "markdown").out

        assert (_found(answer), answer.code) == ([("controls-unreadable", "error")], 1)
        assert " serve " not in page
        assert "no readable catalogue" in page

    def test_controls_that_are_no_file(self, command: Command, tmp_path: Path) -> None:
        """A folder in its place is no missing list; a missing one is a warning."""
        policies = small(tmp_path)
        path = policies / "compliance/controls.yaml"
        path.unlink()
        assert _found(_reviewed(command, policies)) == [("controls-missing", "warning")]

        path.mkdir()
        assert _found(_reviewed(command, policies)) == [("controls-unreadable", "error")]

    def test_a_control_without_rules(self, command: Command, tmp_path: Path) -> None:
        """It is a warning, and no error."""
        policies = small(tmp_path)
        with (policies / "compliance/controls.yaml").open("a", encoding="utf-8") as file:
            file.write("  - {id: SOC-2, framework: SOC, title: Access, evidence: None yet., rules: []}\n")

        answer = _reviewed(command, policies)

        assert (_found(answer), answer.code) == ([("control-without-rule", "warning")], 0)

    def test_controls_and_metadata_that_disagree(self, command: Command, tmp_path: Path) -> None:
        """A control that lists a rule which does not name it, or is not there, is an error."""
        policies = small(tmp_path)
        with (policies / "compliance/controls.yaml").open("a", encoding="utf-8") as file:
            listed = "rules: [MEM-W-111, MEM-X-1]"
            file.write("  - {id: SOC-2, framework: SOC, title: Access, evidence: Two., " + listed + "}\n")

        answer = _reviewed(command, policies)

        assert _found(answer) == [("control-disagrees", "error"), ("control-lists-unknown-rule", "error")]

    def test_a_test_that_fails(self, command: Command, tmp_path: Path) -> None:
        """A failing test is an error, and is shown as failed with the rule that it names."""
        policies = small(tmp_path)
        (policies / "memory/own_test.rego").write_text(
            'package memory.own_test\n\nimport rego.v1\n\ntest_wrong if "MEM-W-111" == "other"\n',
            encoding="utf-8",
        )

        answer = _reviewed(command, policies)

        assert (_found(answer), answer.code) == ([("test-failed", "error")], 1)
        assert answer.document["findings"][0]["place"] == "memory/own_test.rego:5"
        tests = _rules(answer.document)["MEM-W-111"]["tests"]
        assert {"name": "memory.own_test.test_wrong", "passed": False} in tests

    def test_cases_that_fail(self, command: Command, tmp_path: Path) -> None:
        """Failing cases of one test are one finding, which counts them."""
        policies = small(tmp_path)
        (policies / "memory/own_test.rego").write_text(
            'package memory.own_test\n\nimport rego.v1\n\nowned := {"a": 1, "b": 2, "c": 3}\n\n'
            "test_owned[note] if {\n\tsome note, value in owned\n\tvalue == 3\n}\n",
            encoding="utf-8",
        )

        (finding,) = _reviewed(command, policies).document["findings"]

        assert (finding["id"], finding["place"]) == ("test-failed", "memory/own_test.rego:7")
        assert "test_owned does not pass in 2 of 3 cases" in finding["message"]

    def test_tests_that_do_not_parse(self, command: Command, tmp_path: Path) -> None:
        """They are an error of the bundle, and the report is made."""
        policies = small(tmp_path)
        (policies / "memory/own_test.rego").write_text("package memory.own_test\n\ntest_x if {\n", "utf-8")

        answer = _reviewed(command, policies)

        assert ([one for one, _ in _found(answer)], answer.code) == (["tests-broken"], 1)

    def test_a_rule_without_metadata(self, command: Command, tmp_path: Path) -> None:
        """A rule that only its head names is in the report, told as undescribed."""
        policies = small(tmp_path)
        with_rule(policies, FRIDAY.rpartition("settings: []\n")[2])

        answer = _reviewed(command, policies)

        told = {one for one, _ in _found(answer)}
        assert {"rule-undescribed", "no-title", "no-description", "no-severity"} <= told
        assert _rules(answer.document)["MEM-W-990"]["keeps_out"]

    def test_a_setting_that_metadata_does_not_name(self, command: Command, tmp_path: Path) -> None:
        """It is shown with its value, and is a finding of low severity."""
        policies = small(tmp_path)
        path = policies / "memory/write/write.rego"
        text = path.read_text(encoding="utf-8").replace("settings: [limits]", "settings: []")
        path.write_text(text, encoding="utf-8")

        answer = _reviewed(command, policies)

        assert (_found(answer), answer.code) == ([("setting-unnamed", "low")], 0)
        assert _rules(answer.document)["MEM-W-111"]["settings"] == {"limits": {"size_bytes_max": 65_536}}

    def test_a_setting_that_the_rule_does_not_use(self, command: Command, tmp_path: Path) -> None:
        """Named in METADATA alone it would make a reader believe in a bound that there is not."""
        policies = small(tmp_path)
        path = policies / "memory/write/write.rego"
        text = path.read_text(encoding="utf-8").replace("settings: [limits]", "settings: [limits, classes]")
        path.write_text(text, encoding="utf-8")

        answer = _reviewed(command, policies)

        assert (_found(answer), answer.code) == ([("setting-unused", "warning")], 0)
        (finding,) = answer.document["findings"]
        assert finding["message"] == "MEM-W-111 does not use classes, which its METADATA names"

    @pytest.mark.parametrize("below", ["", FRIDAY.rpartition("settings: []\n")[2].replace("990", "989")])
    def test_metadata_without_its_rule(self, command: Command, tmp_path: Path, below: str) -> None:
        """Words above nothing, or above another rule, are an error: nobody decides what they promise."""
        policies = small(tmp_path)
        with_rule(policies, FRIDAY.rpartition("settings: []\n")[0] + "settings: []\n" + below)

        answer = _reviewed(command, policies)

        told = {one["message"] for one in answer.document["findings"] if one["id"] == "rule-unanswered"}
        assert told == {"METADATA describes MEM-W-990, and no rule answers with it"}
        assert answer.code == 1
