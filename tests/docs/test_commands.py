"""The page about the commands, and the help of each of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_runtime_ref.__main__ import main
from agent_runtime_ref.cli.app import COMMANDS, leaves, parser_for
from agent_runtime_ref.cli.reference import page

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"


def _calls() -> list[list[str]]:
    return [leaf.prog.split()[1:] for name in COMMANDS for leaf in _leaves(name)]


def _leaves(name: str) -> list[object]:
    parser = parser_for(name)
    choices = next(action.choices for action in parser._actions if action.dest == "command")
    return list(leaves(choices[name]))


def test_the_page_is_what_the_parsers_say() -> None:
    """docs/reference/commands.md is generated; whoever changes an option writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("words", _calls(), ids=" ".join)
def test_every_command_has_help_with_an_example(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """--help ends in 0 on stdout, and shows how the command is called."""
    code = main([*words, "--help"])
    said = capsys.readouterr()

    assert (code, said.err) == (0, "")
    assert f"example:\n  agent-runtime-ref {' '.join(words)}" in said.out
    assert "--debug" in said.out


@pytest.mark.parametrize("words", _calls(), ids=" ".join)
def test_every_option_says_what_it_is(words: list[str]) -> None:
    """No option stands there without a word."""
    (leaf,) = [leaf for leaf in _leaves(words[0]) if leaf.prog.split()[1:] == words]
    assert all(action.help for action in leaf._actions)
