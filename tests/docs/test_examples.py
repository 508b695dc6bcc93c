"""The examples of README, tutorial and how-to guides, run as they stand; and every link followed."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from agent_runtime_ref.__main__ import main
from tests.docs.pages import CHECKOUT, Block, anchors, blocks, links, pages, taught

COMMAND = "agent-runtime-ref"
EXIT = re.compile(r"# exits (\d)\s*$")


def _name(page: Path) -> str:
    return page.relative_to(CHECKOUT).as_posix()


@pytest.fixture
def own_environment() -> Iterator[None]:
    """What a page sets in the environment ends with it, or later tests would keep things elsewhere."""
    with patch.dict(os.environ):
        yield


@pytest.mark.usefixtures("own_environment")
@pytest.mark.parametrize("page", taught(), ids=_name)
def test_examples_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever types the blocks of a page, top to bottom in an empty folder, gets what it says."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "page"}
    printed = ""
    for block in blocks(page):
        if block.file is not None:
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), namespace)  # noqa: S102
            printed = capsys.readouterr().out
        elif block.language == "sh" and block.text.startswith(COMMAND):
            _run_commands(block, page)
            printed = capsys.readouterr().out
        elif block.language == "text":
            assert _matches(block.text, printed), f"{_name(page)}:{block.line}: printed was\n{printed}"


def _run_commands(block: Block, page: Path) -> None:
    """Run each command of a block in this process; it ends with 0 unless the line says otherwise."""
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        assert words[0] == COMMAND, f"{_name(page)}:{block.line}: `{words[0]}` cannot be run here"
        stated = EXIT.search(line)
        expected = int(stated[1]) if stated else 0
        assert main(words[1:]) == expected, f"{_name(page)}:{block.line}: {line}"


def _matches(expected: str, printed: str) -> bool:
    """Compare line by line; `...` stands for whatever differs from run to run, alone for any lines."""
    pattern = "".join(
        "(?:.*\n)*" if line.strip() == "..." else ".*".join(map(re.escape, line.split("..."))) + "\n"
        for line in expected.splitlines()
    )
    return re.fullmatch(pattern, re.sub(r" +\n", "\n", printed)) is not None


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_the_package_is_installed_from_a_checkout(page: Path) -> None:
    """It is on no index, and whoever takes its name there would be installed instead."""
    for line in page.read_text(encoding="utf-8").splitlines():
        for words in re.findall(r"pip install ([^`|]+)", line):
            assert re.match(r"'?\.", words), line


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    """A relative link names a file of the project, and a heading in it where it names one."""
    broken = []
    for target in links(page):
        if "://" in target or target.startswith("mailto:"):
            continue
        file, _, anchor = target.partition("#")
        place = page if not file else page.parent / file
        if not place.exists() or (anchor and anchor not in anchors(place)):
            broken.append(target)

    assert broken == []


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_headings_descend_step_by_step(page: Path) -> None:
    """A page has one title, and no heading skips a level."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    levels = [len(marks) for marks in re.findall(r"^(#+) ", text, re.MULTILINE)]

    assert levels.count(1) == 1
    assert [pair for pair in pairwise(levels) if pair[1] > pair[0] + 1] == []
