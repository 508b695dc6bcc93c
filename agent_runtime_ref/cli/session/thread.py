"""What the commands about a thread share: whose it is, and the sessions behind the gates."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_runtime_ref.cli import acting
from agent_runtime_ref.cli.acting import OTHERS
from agent_runtime_ref.cli.options import (
    add_settings,
    add_user,
    names_store,
    opened,
    require_writable,
    settings_of,
)
from agent_runtime_ref.cli.parsers import worded

if TYPE_CHECKING:
    from agent_runtime_ref.contracts import Caller
    from agent_runtime_ref.runtime import GovernedMemory
    from agent_runtime_ref.session_state import Sessions


def add_thread(parser: argparse.ArgumentParser) -> None:
    """Add the thread, whose it is, who looks, and the settings."""
    parser.add_argument("thread", type=worded, metavar="THREAD", help="the id of the thread")
    add_user(parser, "whose thread, and who acts", acts=f"who acts; default: the user. {OTHERS}")
    add_settings(parser)


def caller_of(args: argparse.Namespace) -> Caller:
    """Return who acts, about whose thread."""
    return acting.caller_of(args, session_id=args.thread)


def whose_thread(args: argparse.Namespace) -> str:
    """Return a thread and whose it is: who left out --user or --tenant sees where nothing was found."""
    caller = caller_of(args)
    return f"`{args.thread}` of `{caller.own_subject}`, tenant `{caller.tenant_id}`"


@contextmanager
def sessions_of(
    args: argparse.Namespace, *, hands_over: bool = False, removes: bool = False
) -> Iterator[Sessions]:
    """Yield the sessions in the folder that the environment names, behind the gates of the settings.

    What is read of them is looked at, unless it is handed over to an agent.

    Raises:
        PolicyDeniedError: the thread is another's than the principal's, and no role lets him.
    """
    from agent_runtime_ref.session_state import Sessions
    from agent_runtime_ref.telemetry.turns import looking

    look = nullcontext() if hands_over else looking()
    with look, opened(args) if names_store(args) else _without_store(args) as memory:
        caller = caller_of(args)
        # A thread's records are about its life, which is nobody's name: whose it is has to be asked before.
        if acting.acts_for_another(caller):
            acting.require_right(memory, caller, removes=removes)
        yield Sessions(memory)


def _without_store(args: argparse.Namespace) -> GovernedMemory:
    """Return a memory of this process: the files are what is looked at, and seeds have no part in them."""
    from agent_runtime_ref.runtime import GovernedMemory

    settings = replace(settings_of(args), store="memory:")
    require_writable("log", settings.log)
    require_writable("trace", settings.trace)
    return GovernedMemory.from_settings(settings, follow_policies=False)
