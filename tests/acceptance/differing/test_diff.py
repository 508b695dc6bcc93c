"""`policy diff`: what two sets of policies differ in, wherever they are."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_runtime_ref.resources import policies_path
from tests.acceptance.command import Command
from tests.acceptance.differing.changes import FILTERS
from tests.acceptance.replay_logs import SETTINGS, policies_with


def _archive(folder: Path, target: Path) -> Path:
    with tarfile.open(target, "w:gz") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.name.endswith("_test.rego"):
                raw = path.read_bytes()
                entry = tarfile.TarInfo(f"/{path.relative_to(folder).as_posix()}")
                entry.size = len(raw)
                archive.addfile(entry, io.BytesIO(raw))
    return target


def test_nothing_differs(command: Command) -> None:
    """The same policies on both sides: code 0, and a word that says so."""
    answer = command("policy", "diff", policies_path(), policies_path())

    assert (answer.code, answer.out) == (0, "no difference\n")


def test_settings_are_told_by_path(command: Command, other: Path) -> None:
    """Each value that differs stands with its path, what it was and what it is; code 1."""
    answer = command("policy", "diff", policies_path(), other, "--format", "json")
    found = answer.document["settings"]

    assert (answer.code, answer.document["same"]) == (1, False)
    assert found["added"] == [{"path": "memory.settings.limits.fresh", "new": True}]
    assert found["removed"] == []
    assert {"path": "memory.settings.limits.query_max", "old": 100, "new": 50} in found["changed"]
    assert {
        "path": "memory.settings.trust_floors.low",
        "old": ["short_term"],
        "new": ["short_term", "long_term"],
    } in found["changed"]
    assert len(found["changed"]) == 3


def test_rules_are_told_by_id(command: Command, other: Path) -> None:
    """A rule that went, one whose METADATA and text changed, with the lines; controls beside them."""
    document = command("policy", "diff", policies_path(), other, "--format", "json").document

    assert [one["rule_id"] for one in document["rules"]["removed"]] == ["MEM-R-207"]
    (changed,) = document["rules"]["changed"]
    assert changed["rule_id"] == "MEM-R-202"
    assert changed["changes"]["title"] == {"old": "Only active records", "new": "Only live records"}
    assert '+\tnot candidate.status == "live"' in changed["changes"]["text"]
    assert [one["control_id"] for one in document["controls"]["added"]] == ["NEW-1"]
    assert document["controls"]["compared"] is True


def test_text_outside_of_rules_is_told_by_package(command: Command, tmp_path: Path) -> None:
    """A helper has no id; that it changed is told with its package."""
    path = policies_with(tmp_path, lambda one: None)
    rules = path / FILTERS
    rules.write_text(rules.read_text(encoding="utf-8") + "\nhelper_of_nobody := 1\n", encoding="utf-8")
    document = command("policy", "diff", policies_path(), path, "--format", "json").document

    # Behind the last rule of a file it counts as that rule's.
    (rule,) = document["rules"]["changed"]
    assert rule["changes"]["text"][-1] == "+helper_of_nobody := 1"
    text = rules.read_text(encoding="utf-8").replace("\nhelper_of_nobody := 1\n", "")
    rules.write_text(text.replace("import rego.v1\n", "import rego.v1\n\nhelper_of_nobody := 1\n"), "utf-8")
    document = command("policy", "diff", policies_path(), path, "--format", "json").document
    (package,) = document["packages"]["changed"]
    assert package["package"] == "memory.read"
    assert "+helper_of_nobody := 1" in package["changes"]["text"]


def test_a_bundle_is_compared_with_a_folder(command: Command, tmp_path: Path, other: Path) -> None:
    """An archive counts as the folder that it was made of."""
    archive = _archive(other, tmp_path / "bundle.tar.gz")

    assert command("policy", "diff", other, archive).code == 0
    assert command("policy", "diff", policies_path(), archive).code == 1


def test_text_and_markdown_count_first(command: Command, other: Path) -> None:
    """People get counts, then rows; what could act on a page or a terminal is text."""
    text = command("policy", "diff", policies_path(), other).out
    assert text.startswith("rules: 0 added, 1 removed, 1 changed\n  ~ MEM-R-202: title")
    assert "  ~ memory.settings.limits.query_max: 100 -> 50\n" in text

    rules = other / FILTERS
    evil = "<script>|@team` [x](http://y)"
    rules.write_text(rules.read_text("utf-8").replace("Only live records", evil), encoding="utf-8")
    page = command("policy", "diff", policies_path(), other, "--format", "markdown").out
    assert page.startswith("## Change of policies\n")
    assert "| rules | 0 | 1 | 1 |" in page
    assert "| changed | memory.settings.limits.query\\_max | 100 -&gt; 50 |" in page
    assert "| &#58;" not in page
    assert "| | " not in page
    for forbidden in ("<script>", "@team", "](http"):
        assert forbidden not in page


def _cut(policies: Path) -> None:
    (policies / "memory/read/own.rego").write_text(
        "package memory.read\n\nimport rego.v1\n\ndeny contains {\n", encoding="utf-8"
    )


def _worded(policies: Path) -> None:
    path = policies / SETTINGS
    value = json.loads(path.read_text(encoding="utf-8"))
    value["limits"]["query_max"] = "many"
    path.write_text(json.dumps(value), encoding="utf-8")


@pytest.mark.parametrize("damage", [_cut, _worded])
def test_policies_that_cannot_be_opened_are_warned_of(
    command: Command, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """What differs is told, and that no memory opens with one of the two, with why, on either side."""
    path = policies_with(tmp_path, lambda _: None)
    damage(path)
    said = f"warning: no memory can be opened with the policies in `{path}`: "
    for words in ((policies_path(), path), (path, policies_path())):
        answer = command("policy", "diff", *words)
        assert (answer.code, said in answer.err) == (1, True)
        assert answer.out

    assert command("policy", "diff", policies_path(), policies_path()).err == ""


def test_a_module_of_helpers_alone_is_compared(command: Command, tmp_path: Path) -> None:
    """A module without any METADATA is told with its package."""
    path = policies_with(tmp_path, lambda _: None)
    (path / "memory/own.rego").write_text("package memory.own\n\nnumber := 1\n", encoding="utf-8")
    document = command("policy", "diff", policies_path(), path, "--format", "json").document

    assert [one["package"] for one in document["packages"]["added"]] == ["memory.own"]


def test_policies_of_another_version_are_compared(command: Command, tmp_path: Path) -> None:
    """A bundle that this version could not decide by has no digest, and can be compared all the same."""
    path = policies_with(tmp_path, lambda one: one.pop("limits"))
    document = command("policy", "diff", path, policies_path(), "--format", "json").document

    assert document["old"]["digest"] is None
    assert all(one["path"].startswith("memory.settings.limits.") for one in document["settings"]["added"])


def _pair(folder: Path, old: str, new: str) -> tuple[Path, Path]:
    """Return two sets of policies that differ in what stands at the end of one module."""
    found = []
    for name, more in (("one", old), ("two", new)):
        path = folder / name
        shutil.copytree(policies_path(), path)
        rules = path / FILTERS
        rules.write_text(f"{rules.read_text(encoding='utf-8')}\n{more}\n", encoding="utf-8")
        found.append(path)
    return found[0], found[1]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("words := `\n# one\n`", "words := `\n# two\n`", 1),
        ('words := "a\u2028# b"', 'words := "a\u2028# c"', 1),
        ("words := 1 # one", "words := 1 # two\n\t# three", 0),
    ],
    ids=["raw-string", "line-separator", "comments"],
)
def test_strings_decide_and_comments_do_not(
    command: Command, tmp_path: Path, old: str, new: str, code: int
) -> None:
    """A change within a string is told whatever it looks like; one of comments alone is none."""
    answer = command("policy", "diff", *_pair(tmp_path, old, new), "--format", "json")

    assert (answer.code, answer.document["same"]) == (code, code == 0)


def test_a_module_without_metadata_is_compared(command: Command, tmp_path: Path) -> None:
    """Helpers need no METADATA: their module counts as text of its package."""
    path = policies_with(tmp_path, lambda _: None)
    (path / "memory/read/more.rego").write_text("package memory.read\n\nmore := 1\n", encoding="utf-8")
    answer = command("policy", "diff", policies_path(), path, "--format", "json")

    assert answer.code == 1
    (changed,) = answer.document["packages"]["changed"]
    assert changed["package"] == "memory.read"
    assert "+more := 1" in changed["changes"]["text"]


def test_a_rule_that_moves_to_another_file_is_the_same(command: Command, tmp_path: Path) -> None:
    """Where in a package a rule stands decides nothing; what the names in it mean does."""
    path = policies_with(tmp_path, lambda _: None)
    rules, moved = path / FILTERS, path / "memory/read/moved.rego"
    # As one that does not change any value.
    shutil.copytree(policies_path(), path, dirs_exist_ok=True)
    text = rules.read_text(encoding="utf-8")
    start = text.index("# METADATA\n# title: A summary never stands")
    head = (
        "package memory.read\n\nimport data.memory.settings\nimport future.keywords.not\nimport rego.v1\n\n"
    )
    rules.write_text(text[:start], encoding="utf-8")
    moved.write_text(head + text[start:], encoding="utf-8")
    same = command("policy", "diff", policies_path(), path)
    moved.write_text(head.replace("import future.keywords.not\n", "") + text[start:], encoding="utf-8")
    other = command("policy", "diff", policies_path(), path, "--format", "json")

    assert same.code == 0
    assert other.code == 1
    assert len(other.document["rules"]["changed"]) == 1


def test_no_two_settings_have_one_path(command: Command, tmp_path: Path) -> None:
    """A name with a dot or a bracket is quoted: it is another place than the one it looks like."""
    one = policies_with(tmp_path, lambda settings: settings.update({"a.b": 1, "c": [{}]})).rename(
        tmp_path / "old"
    )
    two = policies_with(tmp_path, lambda settings: settings.update({"a": {"b": 1}, "c[0]": {}}))
    answer = command("policy", "diff", one, two, "--format", "json")

    assert answer.code == 1
    assert [row["path"] for row in answer.document["settings"]["removed"]] == [
        'memory.settings."a.b"',
        "memory.settings.c[0]",
    ]


def test_roots_are_compared(command: Command, tmp_path: Path) -> None:
    """What a bundle may rule about is a part of it, and no setting."""
    path = policies_with(tmp_path, lambda _: None)
    shutil.copytree(policies_path(), path, dirs_exist_ok=True)
    (path / ".manifest").write_text('{"roots": ["memory", "other"], "rego_version": 1}', encoding="utf-8")
    answer = command("policy", "diff", policies_path(), path, "--format", "json")

    assert answer.code == 1
    assert answer.document["settings"]["changed"] == [
        {"path": ".manifest.roots", "old": ["memory"], "new": ["memory", "other"]}
    ]
