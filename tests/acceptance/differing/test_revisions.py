"""`policy diff`: policies as they are in a git revision."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref.resources import policies_path
from tests.acceptance.command import Command
from tests.acceptance.replay_logs import policies_with

WHO = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


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
