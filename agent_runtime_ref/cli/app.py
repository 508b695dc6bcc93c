"""Choosing a command, running it, and turning whatever happens into an exit code.

The table below is all that `--help` needs: a command's module, and with it the gates, the engine and the
readers of documents, is imported only when that command was chosen.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from agent_runtime_ref.cli.parsers import PROGRAM, Parser
from agent_runtime_ref.cli.terminal import shown

# Command -> module, line of the help. A module has `add_parser(subparsers)` and `run(args) -> int`.
COMMANDS = {
    "inspect-memory": ("inspect_memory", "show records, governed, and why each one is let in or kept out"),
    "read": ("read", "run a retrieval query through the read gate"),
    "write": ("write", "offer a memory to the write gate"),
    "recall": ("recall", "recall what a user talked about, through the read gate"),
    "forget": ("forget", "remove everything about a subject, and print the receipt"),
    "migrate": ("migrate", "make or migrate the schema of a PostgreSQL store, as its owner"),
    "quarantine": ("quarantine", "work the review queue: list, show, release, reject"),
    "policy": ("policy", "decide by the policies, test, review, build them, and replay a change"),
    "trace": ("trace", "look at what the decision log says about a trace or a record"),
    "session": ("session", "show or clear the constraints of a session, or export what is known of it"),
    "preferences": ("preferences", "a user's long-term preferences: list, add, forget, export, clean"),
    "lint": ("lint", "check schemas, documents, configs, seeds and policies"),
    "run": ("run", "one agent turn: precheck, retrieval, context, reply, then the work behind it"),
    "demo": ("demo", "a guided tour over a store that is removed afterwards"),
}
# As shells count: 128 and the number of the signal.
_INTERRUPTED = 130
_PIPE_CLOSED = 141
_DESCRIPTION = "Governed memory for agents: what is read or written passes a policy; each decision is kept."
_EPILOG = """\
exit codes:
  0 done, 1 refused or findings, 2 usage, configuration or unreadable input, 3 internal or engine failure

example:
  agent-runtime-ref inspect-memory --explain
"""


def main_with(argv: Sequence[str]) -> int:
    """Return the exit code of the command in `argv`; nothing is raised, whatever happens."""
    debug = "--debug" in argv
    try:
        code = _dispatched(argv)
        _flush()
    except SystemExit as ended:  # argparse, after --help or a mistake in usage
        return _code_of_exit(ended)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        _let_go_of_stdout()
        return _PIPE_CLOSED
    except Exception as error:
        return _told(error, debug=debug)
    return code


def parser_for(command: str | None) -> Parser:
    """Return the parser in which `command` is complete and the others are a line of help."""
    parser = Parser(prog=PROGRAM, description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action="store_true", help="print the version and end")
    add_global_options(parser, default=None)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, (module, line) in COMMANDS.items():
        if name == command:
            _module(module).add_parser(subparsers)
            for leaf in leaves(subparsers.choices[name]):
                add_global_options(leaf, default=argparse.SUPPRESS)
        else:
            subparsers.add_parser(name, help=line, add_help=False)
    return parser


def add_global_options(parser: argparse.ArgumentParser, *, default: str | None) -> None:
    """Add what every command takes, before its name or after; a later one wins."""
    known = parser._option_string_actions
    if "--settings" not in known:
        parser.add_argument("--settings", metavar="FILE", default=default, help="a runtime.yaml")
    if "--log-format" not in known:
        parser.add_argument(
            "--log-format",
            choices=("console", "json"),
            default=default,
            help="how diagnostics look on standard error; default: console",
        )
    if "--debug" not in known:
        flag = False if default is None else default
        parser.add_argument(
            "--debug", action="store_true", default=flag, help="show the traceback of an error"
        )


def _chosen(parser: argparse.ArgumentParser, args: argparse.Namespace) -> argparse.ArgumentParser:
    """Return the parser of the command that was chosen, or of the one below it."""
    for name in (args.command, getattr(args, "member", None)):
        below = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
        if below and name is not None:
            parser = below[0].choices[name]
    return parser


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parsers that have no further commands below them."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield parser
    for action in below:
        for child in action.choices.values():
            yield from leaves(child)


def _dispatched(argv: Sequence[str]) -> int:
    argv = _asked_for_help(argv)
    word = _first_word(argv)
    command = word if word in COMMANDS else None
    parser = parser_for(command)
    if word is not None and command is None:
        parser.error(_unknown(word))
    args, unknown = parser.parse_known_args(list(argv))
    if unknown:
        # Told by the parser of the command, whose help has the options that there are.
        _chosen(parser, args).error(f"unrecognized arguments: {' '.join(unknown)}")
    if args.version:
        from agent_runtime_ref import __version__
        from agent_runtime_ref.cli.output import write

        write(f"{PROGRAM} {__version__}")
        return 0
    if args.command is None:
        parser.error(f"which command? One of {', '.join(COMMANDS)}")
    from agent_runtime_ref.cli import log_output
    from agent_runtime_ref.telemetry import diagnostics

    output = log_output.Output(log_output.format_of(args.log_format))
    trace = log_output.traceback_of if args.debug else None
    with diagnostics.told_by(output, trace=trace), diagnostics.bound(command=args.command):
        code: int = _module(COMMANDS[args.command][0]).run(args)
    return code


def _asked_for_help(argv: Sequence[str]) -> Sequence[str]:
    """Return `argv` with `help` and `help COMMAND` as the options that mean the same."""
    if argv and argv[0] == "help":
        return [*argv[1:], "--help"]
    return argv


def _unknown(word: str) -> str:
    """Return the sentence for a command that there is not, with the one that was meant where one is close."""
    import difflib

    near = difflib.get_close_matches(word, COMMANDS, 1)
    hint = f"did you mean `{near[0]}`?" if near else f"one of {', '.join(COMMANDS)}"
    return f"no command `{word}`; {hint}"


def _first_word(argv: Sequence[str]) -> str | None:
    """Return the first word in `argv` that is no global option or its value: the command."""
    words = iter(argv)
    for word in words:
        if word in ("--settings", "--log-format"):
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None


def _module(name: str) -> Any:
    return import_module(f"agent_runtime_ref.cli.{name}")


def _told(error: Exception, *, debug: bool) -> int:
    """Say on stderr what went wrong, and return the exit code."""
    from agent_runtime_ref.cli.exit_codes import code_of, sentence_of

    if debug:
        import traceback

        traceback.print_exception(error)
    with contextlib.suppress(OSError):  # nobody may be left to be told
        print(shown(sentence_of(error)), file=sys.stderr)
    if isinstance(error.__cause__ or error, OSError):
        _let_go_of_stdout()
    return code_of(error)


def _code_of_exit(ended: SystemExit) -> int:
    try:
        _flush()
    except BrokenPipeError:
        _let_go_of_stdout()
    except Exception as error:
        return _told(error, debug=False)
    if isinstance(ended.code, int):
        return ended.code
    return 0 if ended.code is None else 2


def _flush() -> None:
    if sys.stdout is not None:
        from agent_runtime_ref.cli.output import kept

        with kept():
            sys.stdout.flush()


def _let_go_of_stdout() -> None:
    """Point standard output at nothing, so that the interpreter's last flush succeeds."""
    stdout = sys.__stdout__
    if stdout is not None and sys.stdout is stdout:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
