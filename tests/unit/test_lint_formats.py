"""The formats of a report: each is read back by a parser of its own kind."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agent_runtime_ref.linting import FORMATS, RULES, Report, rendered
from agent_runtime_ref.linting.findings import finding

WARNING = finding("LINT-S-005", Path("a b.json"), "no version")
ERROR = finding("LINT-D-001", Path("z,1:%.yaml"), 'bad <&"> 100%\n::error::x ]]> \x07', (3, 7))
AGAIN = finding("LINT-D-001", Path("z,1:%.yaml"), 'bad <&"> 100%\n::error::x ]]> \x07', (9, 1))
REPORT = Report(findings=(WARNING, ERROR, AGAIN), files=("a b.json", "clean.yaml", "z,1:%.yaml"))
EMPTY = Report(findings=(), files=("clean.yaml",))


def test_text_is_a_line_for_each_finding() -> None:
    """`file:line:column: severity RULE-ID message`, and nothing else."""
    assert rendered(REPORT, "text").splitlines() == [
        "a b.json:1:1: warning LINT-S-005 no version",
        'z,1:%.yaml:3:7: error LINT-D-001 bad <&"> 100%\\n::error::x ]]> \\x07',
        'z,1:%.yaml:9:1: error LINT-D-001 bad <&"> 100%\\n::error::x ]]> \\x07',
    ]
    assert rendered(EMPTY, "text") == ""


def test_json_is_stable() -> None:
    """The keys and their order are a promise."""
    document = json.loads(rendered(REPORT, "json"))

    assert {key: document[key] for key in list(document)[:-1]} == {
        "schema_version": "1.0",
        "files": 3,
        "errors": 2,
        "warnings": 1,
    }
    assert list(document) == ["schema_version", "files", "errors", "warnings", "findings"]
    assert document["findings"][1] == {
        "path": "z,1:%.yaml",
        "line": 3,
        "column": 7,
        "severity": "error",
        "rule_id": "LINT-D-001",
        "message": ERROR.message,
        "remedy": ERROR.remedy,
    }


def test_github_annotations_are_escaped_and_begin_with_errors() -> None:
    """A runner sees one command a line; errors first, since a step shows ten of each kind."""
    lines = rendered(REPORT, "github").splitlines()

    assert [line.split(" ")[0] for line in lines] == ["::error", "::error", "::warning"]
    assert lines[0].startswith("::error file=z%2C1%3A%25.yaml,line=3,col=7,title=LINT-D-001::bad <&")
    assert "100%25" in lines[0]


def test_junit_is_xml_with_a_failure_for_each_error() -> None:
    """Errors fail, warnings and clean files pass, and the text comes back as it was."""
    root = ElementTree.fromstring(rendered(REPORT, "junit"))
    cases = root.findall("./testsuite/testcase")

    assert (root.get("tests"), root.get("failures"), len(cases)) == ("4", "2", 4)
    assert [case.find("failure") is not None for case in cases] == [False, True, True, False]
    failure = cases[1].find("failure")
    assert failure is not None
    assert failure.get("message") == ERROR.message
    assert cases[3].get("classname") == "clean.yaml"


def test_sarif_has_what_the_standard_demands() -> None:
    """Version, driver, rules, and results that refer to them by id and index."""
    log = json.loads(rendered(REPORT, "sarif"))
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]

    assert (log["version"], log["$schema"].endswith("sarif-schema-2.1.0.json")) == ("2.1.0", True)
    assert run["tool"]["driver"]["name"] == "agent-runtime-ref lint"
    assert [rule["id"] for rule in rules] == list(RULES)
    for rule in rules:
        assert rule["shortDescription"]["text"]
        assert rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("error", "warning")
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert (result["level"] in ("error", "warning"), bool(result["message"]["text"])) == (True, True)


def test_sarif_places_are_relative_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses are relative references, also of files outside the working folder; regions count from 1."""
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    outside = finding("LINT-D-001", tmp_path / "x.yaml", "bad", (3, 7))
    report = Report(findings=(*REPORT.findings, outside), files=())
    results = json.loads(rendered(report, "sarif"))["runs"][0]["results"]
    places = [result["locations"][0]["physicalLocation"] for result in results]

    addresses = [place["artifactLocation"]["uri"] for place in places]
    assert addresses == ["a%20b.json", "z%2C1%3A%25.yaml", "z%2C1%3A%25.yaml", "../x.yaml"]
    assert not any(re.match(r"[a-z]+:|/", address) for address in addresses)
    assert {place["artifactLocation"]["uriBaseId"] for place in places} == {"%SRCROOT%"}
    assert places[1]["region"] == {"startLine": 3, "startColumn": 7}


def test_sarif_fingerprints_do_not_depend_on_lines() -> None:
    """A finding that moved is the same one; two equal ones in a file are two."""

    def fingerprints(*lines: int) -> list[str]:
        found = tuple(finding("LINT-D-001", Path("a.yaml"), "bad", (line, 1)) for line in lines)
        run = json.loads(rendered(Report(findings=found, files=()), "sarif"))["runs"][0]
        return [result["partialFingerprints"]["agentRuntimeLint/v1"] for result in run["results"]]

    assert fingerprints(3, 9) == fingerprints(40, 41)
    assert len(set(fingerprints(3, 9))) == 2


@pytest.mark.parametrize("style", FORMATS)
def test_a_format_is_the_same_each_time_and_ends_its_last_line(style: str) -> None:
    """The same findings give the same bytes, and a clean report is a document, too."""
    for report in (REPORT, EMPTY):
        text = rendered(report, style)

        assert text == rendered(report, style)
        assert text == "" or text.endswith("\n")
        assert "\x07" not in text
