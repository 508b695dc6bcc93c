"""`policy diff`: what two sets of policies differ in, wherever they are."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref.resources import policies_path
from tests.acceptance.command import Command
from tests.acceptance.replay_logs import SETTINGS, policies_with

FILTERS = "memory/read/filters.rego"
CONTROLS = "compliance/controls.yaml"
WHO = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


def _changed(settings: dict[str, Any]) -> None:
    settings["trust_floors"]["low"] = ["short_term", "long_term"]
    settings["trust_floors"]["medium"] = ["profile"]
    settings["limits"]["query_max"] = 50
    settings["limits"]["fresh"] = True


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Policies with other settings, a rule retitled and rewritten, one gone, and one control more."""
    path = policies_with(tmp_path, _changed)
    rules = path / FILTERS
    text = rules.read_text(encoding="utf-8")
    assert "# title: Only active records" in text
    text = text.replace("# title: Only active records", "# title: Only live records")
    start = text.index("# METADATA\n# title: A summary never stands")
    rules.write_text(
        text[:start].replace('candidate.status == "active"', 'candidate.status == "live"'), "utf-8"
    )
    controls = path / CONTROLS
    added = (
        "  - id: NEW-1\n    framework: House\n    title: New\n    evidence: None.\n    rules: [MEM-R-202]\n"
    )
    controls.write_text(controls.read_text(encoding="utf-8").rstrip("\n") + "\n" + added, encoding="utf-8")
    return path


def _archive(folder: Path, target: Path) -> Path:
    with tarfile.open(target, "w:gz") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.name.endswith("_test.rego"):
                raw = path.read_bytes()
                entry = tarfile.TarInfo(f"/{path.relative_to(folder).as_posix()}")
                entry.size = len(raw)
                archive.addfile(entry, io.BytesIO(raw))
    return target


def _repository(folder: Path, *versions: Path) -> Path:
    """Return a repository with a commit, tagged v1, v2 ..., for each version of `policies`."""
    top = folder / "repository"
    top.mkdir()
    _git(top, "init", "--quiet")
    for number, version in enumerate(versions, start=1):
        shutil.rmtree(top / "policies", ignore_errors=True)
        shutil.copytree(version, top / "policies")
        _git(top, "add", "--all")
        _git(top, "commit", "--quiet", "--message", "policies")
        _git(top, "tag", f"v{number}")
    return top


def _git(top: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=top, check=True, capture_output=True, env={**os.environ, **WHO})


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


def test_revisions_are_compared(command: Command, tmp_path: Path, other: Path, monkeypatch: Any) -> None:
    """A revision is read without a checkout, with its folder `policies` or the one that is named."""
    top = _repository(tmp_path, policies_path(), other)
    monkeypatch.chdir(top)

    assert command("policy", "diff", "v1", "v1:policies").code == 0
    assert command("policy", "diff", "v2", other).code == 0
    assert command("policy", "diff", "HEAD~1", policies_path()).code == 0
    document = command("policy", "diff", "v1", "v2", "--format", "json").document
    assert [one["rule_id"] for one in document["rules"]["removed"]] == ["MEM-R-207"]
    assert document["old"]["source"] == "v1"


def test_links_in_a_revision_are_not_followed(command: Command, tmp_path: Path, monkeypatch: Any) -> None:
    """A link is no file of a bundle, whatever it leads to."""
    version = policies_with(tmp_path, lambda one: None)
    (version / "memory/read/extra.rego").symlink_to("/etc/passwd")
    top = tmp_path / "repository"
    top.mkdir()
    _git(top, "init", "--quiet")
    shutil.copytree(version, top / "policies", symlinks=True)
    _git(top, "add", "--all")
    _git(top, "commit", "--quiet", "--message", "policies")
    monkeypatch.chdir(top)

    assert command("policy", "diff", "HEAD", policies_path()).out == "no difference\n"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("--output=/tmp/x", "is no folder, no bundle and no git revision"),
        ("--upload-pack=touch x:y", "is no folder, no bundle and no git revision"),
        ("nowhere", "git knows no revision `nowhere` here"),
        ("v1:nowhere", "there is no `nowhere` in git revision `v1`"),
        ("v1:../../etc", "there is no `../../etc` in git revision `v1`"),
        (":policies", "is no folder, no bundle and no git revision"),
        ("v1;touch x", "is no folder, no bundle and no git revision"),
    ],
)
def test_what_is_no_revision_is_refused(
    command: Command, tmp_path: Path, monkeypatch: Any, name: str, said: str
) -> None:
    """Nothing that git could take for an option gets to it; each mistake is one sentence and code 2."""
    top = _repository(tmp_path, policies_path())
    monkeypatch.chdir(top)
    answer = command("policy", "diff", "--", name, policies_path())

    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert not (top / "x").exists()


def test_git_that_is_missing_is_said(command: Command, tmp_path: Path, monkeypatch: Any) -> None:
    """Without git, or outside of a repository, a revision cannot be named: a sentence and code 2."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    answer = command("policy", "diff", "main", policies_path())
    assert answer.code == 2
    assert "`main` is no folder and no bundle, and this folder is in no git repository" in answer.err

    monkeypatch.setenv("PATH", str(tmp_path))
    answer = command("policy", "diff", "main", policies_path())
    assert (answer.code, "git is not installed" in answer.err) == (2, True)


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


def test_what_is_large_in_a_revision_is_not_read(command: Command, tmp_path: Path, monkeypatch: Any) -> None:
    """A file that decides nothing may have any size; one that does is refused by its size alone."""
    version = tmp_path / "version"
    shutil.copytree(policies_path(), version)
    with (version / "notes.bin").open("wb") as file:
        file.truncate(20 * 1024 * 1024)
    top = _repository(tmp_path, version)
    with (version / "memory/data.json").open("wb") as file:
        file.truncate(20 * 1024 * 1024)
    shutil.copytree(version, top / "large")
    _git(top, "add", "--all")
    _git(top, "commit", "--quiet", "--message", "large")
    monkeypatch.chdir(top)
    asked: list[tuple[str, ...]] = []
    run = subprocess.run

    def watched(words: Any, **more: Any) -> Any:
        asked.append(tuple(words))
        return run(words, **more)

    monkeypatch.setattr(subprocess, "run", watched)
    kept = command("policy", "diff", "v1", policies_path())
    read = len([words for words in asked if "--batch" in words])
    refused = command("policy", "diff", "HEAD:large", policies_path())
    archive = command("policy", "diff", "HEAD:large/notes.bin", policies_path())

    assert (kept.code, read) == (0, 1)
    assert (refused.code, archive.code) == (2, 2)
    assert "20971520 bytes" in refused.err
    assert len([words for words in asked if "--batch" in words]) == read
