"""`lint` as its users call it: exit codes, formats, and a clean result for what is bundled."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agent_runtime_ref.__main__ import main
from agent_runtime_ref.resources import policies_path, schemas_path

BROKEN = "memory:\n  seed_records:\n    - {tenant_id: no, memory_class: profile}\n    - 7\n"
UNNUMBERED = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "urn:example:schema:note",
    "type": "object",
}


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder."""
    monkeypatch.chdir(tmp_path)


def test_what_is_bundled_is_clean(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a path, schemas, examples, configs and policies are checked, and nothing is found."""
    code = main(["lint", "--fail-on", "warning"])
    output = capsys.readouterr()

    assert (code, output.out) == (0, "")
    assert "0 errors, 0 warnings" in output.err


def test_all_findings_of_a_file_with_their_places(capsys: pytest.CaptureFixture[str]) -> None:
    """One run tells everything, a line each, and ends in code 1; what to do is told beside it."""
    Path("memory.yaml").write_text(BROKEN)

    code = main(["lint", "memory.yaml"])
    output = capsys.readouterr()

    assert code == 1
    assert output.out.splitlines() == [
        "memory.yaml:3:7: error LINT-C-001 Memory record #1 field is required: content",
        "memory.yaml:3:7: error LINT-C-001 Memory record #1 field is required: kind",
        "memory.yaml:3:7: error LINT-C-001 Memory record #1 field is required: source",
        "memory.yaml:3:19: error LINT-C-001 Memory record #1 field must be a string: tenant_id",
        "memory.yaml:4:7: error LINT-C-001 Memory record #2 must be a mapping",
    ]
    assert "LINT-C-001: mend" in output.err


@pytest.mark.parametrize(
    ("fail_on", "code"), [("error", 0), ("warning", 1), ("never", 0)], ids=["error", "warning", "never"]
)
def test_a_warning_fails_only_where_that_is_asked_for(fail_on: str, code: int) -> None:
    """`--fail-on` says which severity ends in code 1."""
    Path("note.schema.json").write_text(json.dumps(UNNUMBERED))

    assert main(["lint", "note.schema.json", "--fail-on", fail_on]) == code


def test_errors_do_not_fail_where_nothing_is_to() -> None:
    """With `--fail-on never` a report is written and the step goes on."""
    Path("memory.yaml").write_text(BROKEN)

    assert main(["lint", "memory.yaml", "--fail-on", "never"]) == 0


@pytest.mark.parametrize("paths", [["gone.yaml"], ["memory.yaml", "gone.yaml"], ["empty"]])
def test_nothing_to_look_at_is_a_mistake_of_usage(
    paths: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A path that is not there, or holds nothing, ends in code 2 with one line that names it."""
    Path("memory.yaml").write_text(BROKEN)
    Path("empty").mkdir()

    code = main(["lint", *paths])
    output = capsys.readouterr()

    assert (code, output.out, len(output.err.splitlines())) == (2, "", 1)
    assert f"`{paths[-1]}`" in output.err


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"memory: *x\n", b"a: 1\n---\na: 2\n", b"\xef\xbb\xbfa: 1\n"]
)
def test_an_unreadable_file_is_a_finding(content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is there and cannot be read is found with its place, and ends in code 1."""
    Path("memory.yaml").write_bytes(content)

    code = main(["lint", "memory.yaml", "--format", "json"])
    (found,) = json.loads(capsys.readouterr().out)["findings"]

    assert (code, found["rule_id"], found["path"]) == (1, "LINT-F-001", "memory.yaml")
    assert (found["line"], found["column"]) >= (1, 1)


@pytest.mark.parametrize("style", ["text", "json", "sarif", "junit", "github"])
def test_every_format_goes_to_a_file(style: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With `-o` the report is in the file and nothing is on standard output."""
    Path("memory.yaml").write_text(BROKEN)

    code = main(["lint", "memory.yaml", "--format", style, "-o", "report"])
    text = Path("report").read_text(encoding="utf-8")

    assert (code, capsys.readouterr().out) == (1, "")
    if style == "junit":
        assert ElementTree.fromstring(text).get("failures") == "5"
    elif style in ("json", "sarif"):
        document = json.loads(text)
        assert len(document["findings"] if style == "json" else document["runs"][0]["results"]) == 5
    else:
        assert len(text.splitlines()) == 5


def test_a_report_that_cannot_be_written_is_a_mistake_of_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """Code 2, and the file is named."""
    Path("memory.yaml").write_text(BROKEN)

    assert main(["lint", "memory.yaml", "-o", "gone/report"]) == 2
    assert "`gone/report`" in capsys.readouterr().err


def test_mistakes_in_rules_and_settings(capsys: pytest.CaptureFixture[str]) -> None:
    """A copy of the bundled policies, changed in two files, has a finding in each."""
    shutil.copytree(policies_path(), "policies")
    for name, old, new in (
        ("memory/settings/data.json", '"ttl_days": 30', '"ttl_days": null'),
        ("memory/read/filters.rego", "day_ns := 86400000000000", "day_ns := 86400000000000.5"),
    ):
        path = Path("policies", name)
        path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")

    code = main(["lint", "policies", "--format", "json"])
    found = json.loads(capsys.readouterr().out)["findings"]

    assert code == 1
    assert {one["rule_id"] for one in found} == {"LINT-P-003", "LINT-P-103"}
    assert {one["path"] for one in found} == {
        "policies/memory/read/filters.rego",
        "policies/memory/settings/data.json",
    }


def test_the_same_run_gives_the_same_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    """Order does not depend on the order of the paths or of the folder."""
    Path("memory.yaml").write_text(BROKEN)
    Path("a.schema.json").write_text("{}")
    outputs = set()
    for paths in (["memory.yaml", "a.schema.json"], ["a.schema.json", "memory.yaml"], ["."]):
        main(["lint", *paths, "--format", "sarif"])
        outputs.add(capsys.readouterr().out)

    assert len(outputs) == 1


def test_linting_leaves_nothing_behind() -> None:
    """The command only looks: no file is made, neither here nor in the home folder."""
    Path("memory.yaml").write_text(
        "memory:\n  seed_records:\n    - {tenant_id: t, memory_class: short_term, kind: working_note, "
        "content: C, source: session_state}\n"
    )
    home = Path(os.environ["AGENT_RUNTIME_HOME"])
    before = sorted(home.rglob("*"))

    assert main(["lint", "memory.yaml", str(schemas_path())]) == 0
    assert [path.name for path in Path().iterdir()] == ["memory.yaml"]
    assert sorted(home.rglob("*")) == before


def test_a_dash_is_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    """`-o -` prints the report and makes no file of that name."""
    Path("memory.yaml").write_text(BROKEN)

    assert main(["lint", "memory.yaml", "-o", "-", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)
    assert not Path("-").exists()
