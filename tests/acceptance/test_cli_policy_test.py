"""`policy test` as its users call it: what it prints in each format, and how it ends."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref.__main__ import main
from agent_runtime_ref.policy import rego_tests
from tests.tiny_bundle import ABOVE, NO_SURVIVOR, ONE_SURVIVOR, RULE, tiny_bundle

UNTESTED = RULE + '\nnote := "few" if {\n\tinput.limit < 5\n}\n'
# A case whose name holds what neither a terminal nor XML should get as it is.
STRANGE = (
    'cases := {"a\\u001b[31m<b>\\u0000": 1}\n\n'
    "test_cases[note] if {\n\tsome note, value in cases\n\tvalue == 2\n}\n"
)


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Run the command and return its exit code and what it printed."""
    code = main(["policy", "test", *words])
    out, err = capsys.readouterr()
    return code, out, err


def document(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """Run the command and return its exit code and the JSON it printed."""
    code, out, _ = told(capsys, "--format", "json", *words)
    return code, json.loads(out)


class TestText:
    """Lines for people."""

    def test_all_is_well(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Tests that pass, reach everything and notice every change end with 0."""
        code, out, err = told(capsys, "--policies", str(tiny_bundle(tmp_path)), "--mutate")

        assert (code, err) == (0, "")
        assert out.splitlines() == [
            "3 tests, 0 failed",
            "memory.tiny: 100 % of lines, 1 of 1 rule reached",
            "6 changes tried, 0 survived; 0 equivalent, 0 did not compile",
        ]

    def test_a_survivor(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A change that nobody notices is named and ends with 1; without --mutate it is not looked for."""
        bundle = str(tiny_bundle(tmp_path, tests=ONE_SURVIVOR))

        code, out, _ = told(capsys, "--policies", bundle, "--mutate")

        assert code == 1
        place, change = "memory/tiny/tiny.rego:9: MEM-T-001#1", "`input.limit > 100` -> `input.limit > 101`"
        assert out.splitlines()[-2] == f"survived: {place}: number: {change}"
        assert told(capsys, "--policies", bundle)[0] == 0

    def test_a_test_that_fails(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """It is named and ends with 1; what fails already is not mutated, and that is said."""
        bundle = tiny_bundle(tmp_path, tests=NO_SURVIVOR + "test_wrong if tiny.deny == 7\n")

        code, out, err = told(capsys, "--policies", str(bundle), "--mutate")

        assert code == 1
        place = "memory/tiny/tiny_test.rego:21"
        assert out.startswith(f"{place}: failed: memory.tiny_test.test_wrong: not true\n4 tests, 1 failed\n")
        assert "note: the tests state what the settings they came with make of a case" in err
        assert "warning: no rule was changed, since tests fail already" in err

    def test_what_no_test_reaches(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Lines and rules are named by their places; a test to be written is told."""
        bundle = tiny_bundle(
            tmp_path, UNTESTED.replace("> 100", "> 1000"), "todo_test_it if true\n\n" + ABOVE
        )
        text = (bundle / "memory/tiny/tiny_test.rego").read_text(encoding="utf-8")
        (bundle / "memory/tiny/tiny_test.rego").write_text(
            text.replace('{one.rule_id | some one in found} == {"MEM-T-001"}', "found == set()"),
            encoding="utf-8",
        )

        code, out, _ = told(capsys, "--policies", str(bundle))

        assert code == 0
        assert out.splitlines() == [
            "to do: memory.tiny_test.test_it",
            "1 test, 0 failed",
            "memory.tiny: 50 % of lines, 0 of 1 rule reached",
            "memory/tiny/tiny.rego: no test reaches line 8, 12",
            "memory/tiny/tiny.rego:8: no test reaches the rule MEM-T-001",
        ]

    def test_no_tests(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A bundle without tests says so and ends with 1."""
        code, out, err = told(capsys, "--policies", str(tiny_bundle(tmp_path, tests="")), "--mutate")

        assert code == 1
        assert out == "0 tests, 0 failed\n"
        assert "there are no tests" in err

    def test_cases_that_fail(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Cases of one test stand below it with their rules, at most twenty; how many there are is said."""
        cases = ", ".join(f'"{number:02}": "MEM-T-{number:03}"' for number in range(30))
        body = 'test_cases[note] if {\n\tsome note, rule_id in cases\n\trule_id == "MEM-T-007"\n}\n'
        bundle = tiny_bundle(tmp_path, tests=f"cases := {{{cases}}}\n\n{body}")

        code, out, _ = told(capsys, "--policies", str(bundle))
        lines = out.splitlines()

        assert code == 1
        assert lines[0].endswith("failed: memory.tiny_test.test_cases: 29 of 30 cases")
        assert lines[1] == "  [00] (MEM-T-000): not true"
        assert lines[21:23] == ["  and 9 more; --format json has all of them", "30 tests, 29 failed"]

    @pytest.mark.parametrize("name", ["missing/report.txt", ".", ""])
    def test_a_report_that_cannot_be_written(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        """That is said before any test is run."""
        monkeypatch.setattr(rego_tests, "run_rego_tests", lambda _: pytest.fail("tests were run"))
        monkeypatch.chdir(tmp_path)
        code, out, err = told(capsys, "--policies", str(tiny_bundle(tmp_path)), "-o", name)

        assert (code, out) == (2, "")
        assert f"report not written to `{name}`" in err

    def test_strange_names(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """The name of a case moves no cursor."""
        _, out, _ = told(capsys, "--policies", str(tiny_bundle(tmp_path, tests=STRANGE)))

        assert "  [a\\x1b[31m<b>\\x00]: not true\n" in out


class TestJson:
    """What other programs read."""

    def test_keys(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """The documented keys are there, whether or not rules are changed."""
        code, plain = document(capsys, "--policies", str(tiny_bundle(tmp_path)))

        assert code == 0
        assert {name: plain[name] for name in ("tests", "failed", "coverage")} == {
            "tests": 3,
            "failed": [],
            "coverage": {"memory.tiny": 100.0},
        }
        assert plain["mutants"] == {"tried": 0, "survived": [], "ran": False}

    def test_survivors(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Each survivor says where it is, of which rule, and what was changed."""
        bundle = tiny_bundle(tmp_path, UNTESTED, ONE_SURVIVOR + "test_it := 5\n")
        code, failing = document(capsys, "--policies", str(bundle))
        (bundle / "memory/tiny/tiny_test.rego").write_text(
            (bundle / "memory/tiny/tiny_test.rego").read_text(encoding="utf-8").replace("test_it := 5", ""),
            encoding="utf-8",
        )
        mutated_code, mutated = document(capsys, "--policies", str(bundle), "--mutate")

        assert (code, mutated_code) == (1, 1)
        assert failing["failed"] == [
            {
                "name": "memory.tiny_test.test_it",
                "detail": "not true",
                "file": "memory/tiny/tiny_test.rego",
                "line": 16,
                "rules": [],
            }
        ]
        assert mutated["missed_lines"] == {"memory/tiny/tiny.rego": [12]}
        assert mutated["mutants"]["tried"] == 12
        assert mutated["mutants"]["survived"][0] == {
            "file": "memory/tiny/tiny.rego",
            "line": 9,
            "rule": "MEM-T-001#1",
            "rule_id": "MEM-T-001",
            "operation": "number",
            "original": "input.limit > 100",
            "mutated": "input.limit > 101",
        }


class TestJunit:
    """What CI systems show."""

    def test_it_parses(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """An XML parser reads back each test, each failure, what is to be written and each survivor."""
        bundle = tiny_bundle(tmp_path, tests=ONE_SURVIVOR + "todo_test_later if true\n")
        report = tmp_path / "tests.xml"

        code, out, _ = told(
            capsys, "--policies", str(bundle), "--mutate", "--format", "junit", "-o", str(report)
        )
        root = ElementTree.parse(report).getroot()
        suites = {suite.get("name"): suite for suite in root}

        assert (code, out) == (1, "")
        assert root.attrib == {"name": "agent-runtime-ref policy test", "tests": "4", "failures": "1"}
        assert {
            name: (one.get("tests"), one.get("failures"), one.get("skipped")) for name, one in suites.items()
        } == {
            "memory.tiny_test": ("3", "0", "1"),
            "mutation": ("1", "1", "0"),
        }
        assert [case.get("name") for case in suites["memory.tiny_test"]] == [
            "test_above",
            "test_at_the_bound",
            "test_later",
        ]
        (case,) = suites["mutation"]
        assert case.get("file") == "memory/tiny/tiny.rego"
        assert "`input.limit > 100` -> `input.limit > 101`" in str(case[0].get("message"))

    def test_names_that_xml_cannot_hold(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A case may be called anything; its failure is read back all the same."""
        code, out, _ = told(
            capsys, "--policies", str(tiny_bundle(tmp_path, tests=STRANGE)), "--format", "junit"
        )
        (case,) = ElementTree.fromstring(out.encode()).iter("testcase")

        assert code == 1
        assert (case.get("classname"), case.get("name")) == (
            "memory.tiny_test",
            "test_cases[a\\u001b[31m<b>\\u0000]",
        )
        assert case[0].tag == "failure"

    def test_no_survivor_is_a_case_that_passes(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Where everything was noticed, the suite of changes has one case, which says how many."""
        code, out, _ = told(capsys, "--policies", str(tiny_bundle(tmp_path)), "--mutate", "--format", "junit")
        suite = ElementTree.fromstring(out.encode()).findall("testsuite")[-1]

        assert code == 0
        assert [(case.get("name"), len(case)) for case in suite] == [("6 changes noticed", 0)]


class TestUnusable:
    """What ends with 2, in one line."""

    @pytest.mark.parametrize(
        ("spoil", "said"),
        [
            (("memory/tiny/tiny.rego", "package memory.tiny {"), "memory/tiny/tiny.rego:1:"),
            (
                ("memory/tiny/tiny_test.rego", "package memory.tiny_test\n\ntest_x if {"),
                "memory/tiny/tiny_test.rego:3:",
            ),
            (("memory/settings/data.json", "{}"), "memory/settings/data.json"),
            (("equivalent_mutants.yaml", "equivalent: 5\n"), "equivalent_mutants.yaml:1:13:"),
            (("equivalent_mutants.yaml", "a: [\n"), "equivalent_mutants.yaml:2:1:"),
        ],
    )
    def test_unusable(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil: tuple[str, str], said: str
    ) -> None:
        """Rego that is none, settings that are none, a file of equivalent changes that is none."""
        bundle = tiny_bundle(tmp_path)
        (bundle / spoil[0]).write_text(spoil[1], encoding="utf-8")

        code, out, err = told(capsys, "--policies", str(bundle), "--mutate")

        assert (code, out, err.count("\n")) == (2, "", 1)
        assert said in err or "memory.settings" in err or "policy_settings" in err

    def test_nowhere(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A folder that is not there, and a report that cannot be written."""
        assert told(capsys, "--policies", str(tmp_path / "nowhere"))[0] == 2
        code, _, err = told(
            capsys, "--policies", str(tiny_bundle(tmp_path)), "-o", str(tmp_path / "no" / "file.xml")
        )
        assert (code, "report not written" in err) == (2, True)
