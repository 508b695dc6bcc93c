"""Where lint looks, what it passes over, and the places and order of what it finds."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from agent_runtime_ref.errors import UsageError
from agent_runtime_ref.linting import lint_paths
from agent_runtime_ref.linting.findings import finding
from tests.unit.lint_files import (
    RECORD,
    REGO,
    REGO_TEST,
    SEED,
    SETTINGS,
    bundle,
    example,
    lint_files,
    schema,
    seeds,
)


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in the folder of the files, so that paths are short."""
    monkeypatch.chdir(tmp_path)


def test_all_errors_of_all_files_come_in_one_run(tmp_path: Path) -> None:
    """Several errors in several files, in the order of path, line, column and rule."""
    files = (
        seeds("{tenant_id: no, confidence: 5}", "7")
        | {"b.yaml": RECORD.replace("English", "5")}
        | bundle(rego=REGO.replace("tenant_id != ", "tenant_id % 1.5 != "), settings=json.dumps({}))
    )
    found = lint_files(tmp_path, files).findings

    assert list(found) == sorted(found, key=lambda one: (one.path, one.line, one.column, one.rule_id))
    assert {"LINT-C-001", "LINT-D-001", "LINT-P-101", "LINT-P-003"} == {one.rule_id for one in found}
    assert ("memory.yaml", 3, 19) in [(one.path, one.line, one.column) for one in found]
    assert ("b.yaml", 5, 8, "Memory record field must be a string: value") in [
        (one.path, one.line, one.column, one.message) for one in found
    ]


def test_a_setting_is_found_at_its_line(tmp_path: Path) -> None:
    """Errors and references of settings have the line of the setting."""
    text = json.dumps(SETTINGS | {"inspection_purpose": "curiosity"}, indent=1)
    line = text[: text.index("curiosity")].count("\n") + 1

    (one,) = lint_files(tmp_path, bundle(settings=text)).findings

    assert (one.rule_id, one.path, one.line) == ("LINT-P-102", "policies/memory/settings/data.json", line)


def test_a_control_is_found_at_its_rule(tmp_path: Path) -> None:
    """A control that lists a rule too many is found where it lists it."""
    controls = str(bundle()["policies/compliance/controls.yaml"]).replace("[MEM", "[MEM-R-999, MEM")

    (one,) = lint_files(tmp_path, bundle(controls=controls)).findings

    assert (one.rule_id, one.line, one.column) == ("LINT-P-008", 6, 13)


def test_a_broken_file_of_a_bundle_does_not_hide_the_others(tmp_path: Path) -> None:
    """A module that is no text and another that is not portable are both found, each in its place."""
    files = bundle(test=b"package memory.read_test\n\xff", rego=REGO + "\nnow := time.now_ns()\n")
    found = lint_files(tmp_path, files).findings

    assert [(one.rule_id, one.path.rpartition("/")[2], one.line) for one in found] == [
        ("LINT-P-003", "read.rego", 22),
        ("LINT-F-001", "read_test.rego", 2),
    ]


def test_a_value_of_the_wrong_type_is_told_once(tmp_path: Path) -> None:
    """What follows from a wrong type (no pattern, no bound) is not told beside it."""
    found = lint_files(tmp_path, {"a.yaml": RECORD.replace("tenant-acme", "5")}).findings

    assert [one.message for one in found] == ["Memory record field must be a string: tenant_id"]


def test_what_is_somebody_elses_is_not_checked_and_that_is_said(tmp_path: Path) -> None:
    """Other YAML in a folder is a warning and not counted; environments and such are left out."""
    broken = "a: [1\n"
    files = {
        "memory.yaml": seeds(SEED)["memory.yaml"],
        "values.yaml": "kind: Deployment\n---\nkind: !Other Service\n",
        "package.json": '{"name": "other"}',
        "k8s/deny.rego": "package kubernetes\ndeny := true\n",
        ".hidden/memory.yaml": broken,
        "node_modules/memory.yaml": broken,
        "env/pyvenv.cfg": "",
        "env/memory.yaml": broken,
    }
    report = lint_files(tmp_path, files)

    assert [(one.rule_id, one.severity, one.path) for one in report.findings] == [
        ("LINT-D-003", "warning", "package.json"),
        ("LINT-D-003", "warning", "values.yaml"),
    ]
    assert report.files == ("memory.yaml",)


@pytest.mark.parametrize("name", ["note.yaml", "note.json"])
def test_an_unreadable_file_is_found_in_a_folder_too(tmp_path: Path, name: str) -> None:
    """What fails by its name fails in its folder."""
    report = lint_files(tmp_path, {name: "{a: [1\n"})

    assert [(one.rule_id, one.severity) for one in report.findings] == [("LINT-F-001", "error")]
    assert lint_paths([name]).findings == report.findings


def test_a_candidate_is_known_by_its_fields(tmp_path: Path) -> None:
    """A class that is missing is told, wherever the file was found."""
    text = "tenant_id: t\nkind: validated_fact\ncontent: x\nsource: s\n"
    report = lint_files(tmp_path, {"fact.yaml": text})

    assert {one.rule_id for one in report.findings} == {"LINT-D-001"}
    assert any("memory_class" in one.message for one in report.findings)
    assert report.files == ("fact.yaml",)


def test_a_query_that_is_refused_whole_is_a_warning(tmp_path: Path) -> None:
    """A purpose that the policy does not know, or too many records, are told by the policy itself."""
    query = {
        "kind": "retrieval_query",
        "trace_id": "t",
        "session_id": "s",
        "tenant_id": "tenant-acme",
        "principal_id": "user-42",
        "purpose": "answer_generation",
        "allowed_classes": ["long_term"],
        "limit": 5,
    }
    files = {
        "a.json": json.dumps(query),
        "b.json": json.dumps(query | {"purpose": "gossip"}),
        "c.json": json.dumps(query | {"limit": 1000}),
    }
    found = lint_files(tmp_path, files).findings

    assert [(one.rule_id, one.severity, one.path) for one in found] == [
        ("LINT-D-004", "warning", "b.json"),
        ("LINT-D-004", "warning", "c.json"),
    ]
    assert "purpose_unknown" in found[0].message


@pytest.mark.parametrize(
    ("text", "rule_id", "line"),
    [
        ("engine: embedded\nstore: postgres://x\n", "LINT-C-014", 2),
        ("store: 'sqlite:memory.db'\npolicies:\n  path: gone\n", "LINT-C-012", 3),
        ("store: memory\n", "LINT-C-014", 1),
        ("policies:\n  scope: memory\n", "LINT-C-013", 2),
        ("policies:\n  keyid: one\n  verification_key: gone.pem\n", "LINT-C-013", 3),
    ],
)
def test_settings_that_would_not_open_are_found(tmp_path: Path, text: str, rule_id: str, line: int) -> None:
    """A store of no known kind, policies or a key that are not there are found at their line."""
    (one,) = lint_files(tmp_path, {"runtime.yaml": text}).findings

    assert (one.rule_id, one.line) == (rule_id, line)


def test_an_unreadable_file_of_ours_is_found(tmp_path: Path) -> None:
    """A folder of configs is ours: a file in it that is no YAML is found with its place."""
    found = lint_files(tmp_path, {"configs/collector.yaml": "a: 1\na: 2\n"}).findings

    assert [(one.rule_id, one.path, one.line, one.column) for one in found] == [
        ("LINT-F-001", "configs/collector.yaml", 2, 1)
    ]


def test_a_module_is_checked_as_part_of_its_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named alone, with or without a manifest, a module is held to tests, controls and settings."""
    files = bundle(test=REGO_TEST.replace("MEM-R-101", "MEM-R-1"))
    lint_files(tmp_path, files)
    module = tmp_path / "policies/memory/read/read.rego"

    with_manifest = lint_paths([module]).findings
    (tmp_path / "policies/.manifest").unlink()

    assert [one.rule_id for one in with_manifest] == ["LINT-P-009"]
    assert lint_paths([module]).findings == with_manifest
    assert lint_paths([module]).files == ("policies/memory/read/read.rego",)
    assert lint_paths([tmp_path]).findings == with_manifest
    assert lint_paths([tmp_path / "policies/memory"]).findings == with_manifest
    monkeypatch.chdir(module.parent)
    assert [one.path for one in lint_paths(["read.rego"]).findings] == ["read.rego"]


def test_a_module_that_is_named_tells_only_of_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong with other files of the bundle, or with all of it, is told where they are named."""
    lint_files(tmp_path, bundle(settings="{}", rego=REGO + "\nnow := time.now_ns()\n"))
    monkeypatch.chdir(tmp_path / "policies/memory/read")
    (tmp_path / "policies/memory/read/alone.rego").write_text("package other\n\nimport rego.v1\n\nx := \n")

    assert [(one.path, one.rule_id) for one in lint_paths(["read.rego"]).findings] == [
        ("read.rego", "LINT-P-003")
    ]
    found = lint_paths(["alone.rego"]).findings
    assert {one.path for one in found} == {"alone.rego"}
    assert "LINT-P-001" in {one.rule_id for one in found}


def test_an_archive_is_linted_by_its_modules(tmp_path: Path) -> None:
    """A bundle as an archive is loaded and its modules looked at."""
    lint_files(tmp_path, bundle(rego=REGO + "\nnow := time.now_ns()\n"))
    with tarfile.open(tmp_path / "b.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "policies", arcname=".")
    (tmp_path / "odd.tar.gz").write_bytes(b"no archive")

    found = lint_paths(["b.tar.gz", "odd.tar.gz"]).findings

    assert [(one.path, one.rule_id) for one in found] == [
        ("b.tar.gz/memory/read/read.rego", "LINT-P-003"),
        ("odd.tar.gz", "LINT-P-000"),
    ]


def test_a_schema_brings_its_examples(tmp_path: Path) -> None:
    """A schema that is named alone is tried on its examples; an example alone is held to its direction."""
    lint_files(tmp_path, example("valid", "a.yaml", "text: 5\n"))
    schema_path = tmp_path / "schemas/note.schema.json"

    found = [one.rule_id for one in lint_paths([schema_path]).findings]

    assert found == ["LINT-X-001", "LINT-X-005"]
    assert [
        one.rule_id for one in lint_paths([tmp_path / "schemas/examples/note/valid/a.yaml"]).findings
    ] == ["LINT-X-001"]


def test_a_path_twice_is_checked_once(tmp_path: Path) -> None:
    """Overlapping paths add nothing."""
    once = lint_files(tmp_path, seeds("{tenant_id: t}"))

    assert lint_paths([tmp_path, "memory.yaml", tmp_path / "memory.yaml"]) == once


def test_a_settings_file_is_held_to_its_schema_whatever_its_name(tmp_path: Path) -> None:
    """What is said to be a runtime.yaml is one."""
    lint_files(tmp_path, schema() | {"odd.yaml": "engine: abacus\n"})

    found = lint_paths(["schemas"], settings="odd.yaml").findings

    assert [(one.path, one.rule_id) for one in found] == [("odd.yaml", "LINT-C-011")]


def test_a_schema_may_be_true_or_false(tmp_path: Path) -> None:
    """`true` and `false` are schemas, too, and have no sentences."""
    found = lint_files(tmp_path, schema(properties={"text": True, "other": False})).findings

    assert [one.rule_id for one in found if one.rule_id != "LINT-S-008"] == []


@pytest.mark.parametrize("name", ["gone", "empty", "notes.txt"])
def test_a_path_with_nothing_to_lint_is_a_mistake_of_usage(tmp_path: Path, name: str) -> None:
    """A path is never ignored, not even beside one in which there is something."""
    lint_files(tmp_path, seeds(SEED))
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("kind: memory_record\n")

    with pytest.raises(UsageError, match=f"`{name}`"):
        lint_paths(["memory.yaml", name])


def test_a_folder_that_cannot_be_listed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed folder does not make for a clean run."""
    import os

    lint_files(tmp_path, seeds(SEED) | {"closed/a.yaml": RECORD})
    listed = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)

    assert [(one.path, one.rule_id) for one in lint_paths([tmp_path]).findings] == [("closed", "LINT-F-001")]


def test_findings_are_one_line_that_no_terminal_acts_on() -> None:
    """Line breaks, escapes and direction marks in the user's values become escapes; letters stay."""
    one = finding("LINT-F-001", Path("a\n\x1b[31m.yaml"), "中文 café\r\n\u202e\x00 \ud800 \U000e0041")

    assert one.path == "a\\n\\x1b[31m.yaml"
    assert one.message == "中文 café\\r\\n\\u202e\\x00 \\ud800 \\U000e0041"
