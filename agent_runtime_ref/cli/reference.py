"""docs/reference/commands.md, written from the parsers: `python -m agent_runtime_ref.cli.reference [FILE]`.

argparse words its own help differently from one Python to the next, so the page is made from the options
themselves.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from agent_runtime_ref.cli.app import COMMANDS, leaves, parser_for
from agent_runtime_ref.cli.parsers import PROGRAM

_HEAD = f"""\
# Commands

Generated from the parsers by `python -m agent_runtime_ref.cli.reference FILE`; a test compares.

`{PROGRAM}` is the same as `python -m agent_runtime_ref`.
Data goes to standard output, everything else to standard error.
An option wins over its environment variable, that over `runtime.yaml`, and that over the default.

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | refused by the policy, or findings |
| 2 | usage, configuration or unreadable input |
| 3 | internal error, or an engine or store that failed |
| 130 | interrupted |
| 141 | whoever read the output stopped reading |

Options of every command: `--settings FILE` (a runtime.yaml), `--debug` (the traceback of an error), `--help`.

| setting | environment variable |
| --- | --- |
| `--store` | `AGENT_RUNTIME_STORE` |
| `--engine` | `AGENT_RUNTIME_ENGINE` |
| `--policies` | `AGENT_RUNTIME_POLICIES` |
| `--log` | `AGENT_RUNTIME_LOG` |
| `--trace` | `AGENT_RUNTIME_TRACE` |
| `--settings` | `AGENT_RUNTIME_SETTINGS` |

On a terminal a table is the default where a command has one.
`NO_COLOR` turns colours off, and a narrow terminal gets a block for each record.
Characters that a terminal would act on, or that nobody can see, are shown as escapes in every format.
"""
_EVERYWHERE = frozenset({"help", "debug", "settings"})


def page() -> str:
    """Return the whole page."""
    parts = [_HEAD]
    for command in COMMANDS:
        parts.extend(_section(leaf) for leaf in _leaves(command))
    return "\n".join(parts)


def _leaves(command: str) -> Iterator[argparse.ArgumentParser]:
    parser = parser_for(command)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from leaves(action.choices[command])


def _section(parser: argparse.ArgumentParser) -> str:
    name = parser.prog.removeprefix(f"{PROGRAM} ")
    rows = [
        f"| {_name(action)} | {_text(action)} |"
        for action in parser._actions
        if action.dest not in _EVERYWHERE
    ]
    examples = [line.strip() for line in (parser.epilog or "").splitlines() if PROGRAM in line]
    description = " ".join((parser.description or "").split())
    lines = [
        f"## {name}",
        "",
        *_sentences(description),
        "",
        "| option | meaning |",
        "| --- | --- |",
        *rows,
        "",
    ]
    return "\n".join([*lines, "```sh", *examples, "```", ""])


def _sentences(text: str) -> list[str]:
    """Return one line for each sentence, as the house writes its pages."""
    return text.replace(". ", ".\n").splitlines()


def _name(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices is not None and not isinstance(action.metavar, str):
        metavar = ", ".join(map(str, action.choices))
    if not action.option_strings:
        return f"`{metavar}`"
    value = "" if action.nargs == 0 else f" {metavar}"
    return " or ".join(f"`{option}{value}`" for option in action.option_strings)


def _text(action: argparse.Action) -> str:
    text = (action.help or "").replace("|", "\\|")
    return f"{text} (required)" if action.required and action.option_strings else text


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
