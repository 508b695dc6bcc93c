"""`run`: one turn of the runtime, from a message to its reply."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.exit_codes import DONE, INTERNAL, REFUSED, USAGE
from agent_runtime_ref.cli.options import add_settings, add_tenant, names_store, opened, settings_of
from agent_runtime_ref.cli.output import add_format, format_of, print_document, write
from agent_runtime_ref.cli.parsers import example, worded
from agent_runtime_ref.cli.terminal import note, shown
from agent_runtime_ref.errors import DocumentError, UsageError
from agent_runtime_ref.resources import user_of

if TYPE_CHECKING:
    from agent_runtime_ref.agent import AgentRuntime, TurnResult
    from agent_runtime_ref.config import Settings
    from agent_runtime_ref.contracts import Caller
    from agent_runtime_ref.runtime import GovernedMemory

_SEEDS_TENANT = "tenant-acme"
_CODES = {"complete": DONE, "denied": REFUSED, "failed": INTERNAL}


def add_parser(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "run",
        help="one agent turn: precheck, retrieval, context, reply, then the work behind it",
        description=(
            "Run one agent turn: the policy admits it, memory is read through its gate, a model answers,\n"
            "and what is kept of it passes the write gate. What the user says of himself is curated: what\n"
            "holds now is a constraint of the session, what always holds a preference. Without a model of\n"
            "your own the offline one answers from the context alone."
        ),
        epilog=example(
            "run 'which queue do support tickets use?'",
            "run 'what did we decide last time?' --store sqlite:memory.db --tenant acme --principal ana",
            "run - --format json < message.txt",
        ),
    )
    parser.add_argument("message", metavar="MESSAGE", help="what the user says, - for stdin")
    parser.add_argument(
        "--purpose", type=worded, default="answer_generation", metavar="PURPOSE", help="what it is for"
    )
    _add_caller(parser)
    _add_model(parser)
    parser.add_argument("--show-context", action="store_true", help="print the context before the reply")
    add_format(parser, "text", "json")
    add_settings(parser)


def _add_caller(parser: argparse.ArgumentParser) -> None:
    """Add whose turn it is; beside the bundled seeds, everything has a default."""
    group = parser.add_argument_group("whose turn it is")
    add_tenant(group, f"the tenant; {_SEEDS_TENANT} for the bundled seeds")
    group.add_argument("--principal", type=worded, metavar="PRINCIPAL", help="who asks; default: the user")
    group.add_argument(
        "--subject", type=worded, metavar="SUBJECT", help="the user acted for; default: the principal"
    )
    group.add_argument(
        "--session", type=worded, metavar="SESSION", help="the conversation; default: a new one"
    )
    group.add_argument("--role", action="append", metavar="ROLE", help="a role; may be repeated")


def _add_model(parser: argparse.ArgumentParser) -> None:
    """Add which model answers."""
    group = parser.add_argument_group("the model")
    group.add_argument(
        "--model",
        metavar="URL",
        help="an OpenAI-compatible endpoint, or `offline`; key: AGENT_RUNTIME_MODEL_KEY",
    )
    group.add_argument("--model-name", metavar="NAME", help="how the endpoint calls its model")


def run(args: argparse.Namespace) -> int:
    """Print the reply and return the exit code."""
    message, caller = _message(args.message), _caller(args)
    settings = _settings(args)
    with opened(args, creates=True) as memory, _runtime(args, memory, settings) as runtime:
        result = runtime.run(message, caller=caller, purpose=args.purpose)
        if not runtime.drain():
            note(f"some of the work behind the reply failed; {_afterwards(memory)}")
        if any(event.event_type == "curation_failed" for event in result.events):
            note("the judge failed, so nothing of what was said became a constraint or a preference")
        _print(args, result)
    return _code(result)


def _code(result: TurnResult) -> int:
    """Return the exit code; a folder of sessions that cannot be read is no failure of ours."""
    causes = [one.payload.get("error.type") for one in result.events if one.event_type == "run_failed"]
    return USAGE if causes == ["SessionStateError"] else _CODES[result.status]


def _afterwards(memory: GovernedMemory) -> str:
    """Return what becomes of work that failed: only a store that lasts has a place where it waits."""
    if memory.durable:
        return "it is kept and tried again by the next run"
    return f"store `{memory.store_url}` ends with this command, so say it again when that is mended"


@contextmanager
def _runtime(args: argparse.Namespace, memory: GovernedMemory, settings: Settings) -> Iterator[AgentRuntime]:
    """Yield a runtime over the preferences and sessions that the other commands show."""
    from agent_runtime_ref.agent import AgentRuntime
    from agent_runtime_ref.preferences import PreferenceStore
    from agent_runtime_ref.session_state import Sessions

    # A conversation that nobody named is not gone on with, so its exchanges need no folder.
    sessions = None if args.session is None else Sessions(memory)
    with (
        PreferenceStore() as preferences,
        AgentRuntime.open(memory, settings, sessions=sessions, preferences=preferences) as runtime,
    ):
        yield runtime


def _message(given: str) -> str:
    if given != "-":
        return given
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise UsageError("standard input is no text in the encoding of this terminal") from error


def _caller(args: argparse.Namespace) -> Caller:
    from agent_runtime_ref.contracts import Caller

    tenant = args.tenant
    if tenant is None:
        if names_store(args):
            raise UsageError("a store holds several tenants; name yours with --tenant")
        tenant = _SEEDS_TENANT
    principal = args.principal or args.subject or user_of()
    return Caller(
        tenant, principal, session_id=args.session, subject=args.subject, roles=tuple(args.role or ())
    )


def _settings(args: argparse.Namespace) -> Settings:
    """Return the settings with the model of the options; an option wins over its variable."""
    from dataclasses import replace

    from agent_runtime_ref.config import MODEL, load_settings

    environ = dict(os.environ)
    if args.model is not None:
        environ[MODEL["endpoint"]] = "" if args.model == "offline" else args.model
    if args.model_name is not None:
        environ[MODEL["name"]] = args.model_name
    settings = settings_of(args)
    try:
        agent = load_settings(args.settings, environ=environ).agent
    except DocumentError as error:
        if args.model is None or not str(error.path).startswith("$.agent.model.endpoint"):
            raise
        said = "must be the address of a server, such as http://127.0.0.1:8000/v1, or `offline`"
        raise UsageError(f"--model: {said}") from None
    if args.model == "offline":
        agent = replace(agent, model=replace(agent.model, endpoint=None))
    return replace(settings, agent=agent)


def _print(args: argparse.Namespace, result: TurnResult) -> None:
    if format_of(args, otherwise="text") == "json":
        document = result.to_document()
        print_document(document | {"context": result.context} if args.show_context else document)
    else:
        parts = [result.context] if args.show_context else []
        for line in "\n".join([*parts, result.reply]).strip("\n").splitlines():
            write(shown(line))
    if result.error is not None:
        print(f"agent-runtime-ref: {shown(result.error)}", file=sys.stderr)
