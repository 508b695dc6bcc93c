"""What the commands about preferences share: whose they are, where they are, and the gates before them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent_runtime_ref.cli import acting
from agent_runtime_ref.cli.options import (
    add_settings,
    add_user,
    names_store,
    opened,
    require_writable,
    settings_of,
)
from agent_runtime_ref.cli.parsers import worded
from agent_runtime_ref.errors import UsageError

if TYPE_CHECKING:
    from agent_runtime_ref.contracts import Caller
    from agent_runtime_ref.preferences import PreferenceStore
    from agent_runtime_ref.runtime import GovernedMemory


def add_whose(parser: argparse.ArgumentParser, *settings: str) -> None:
    """Add whose preferences they are, who acts, where they are, and the settings of the gates."""
    group = add_user(
        parser, "whose preferences, and who acts", acts=f"who acts; default: the user. {acting.OTHERS}"
    )
    group.add_argument(
        "--preferences",
        type=worded,
        metavar="ADDRESS",
        help="file:DIR, sqlite:PATH or redis://...; default: AGENT_RUNTIME_PREFERENCES, else a folder "
        "below AGENT_RUNTIME_HOME",
    )
    add_settings(parser, *(settings or ("engine", "policies", "trace")))


def caller_of(args: argparse.Namespace) -> Caller:
    """Return who acts, about whose preferences.

    Raises:
        AnonymousUserError: that is nobody in particular, who has none.
    """
    from agent_runtime_ref.errors import AnonymousUserError
    from agent_runtime_ref.preferences.identity import is_anonymous

    caller = acting.caller_of(args)
    if is_anonymous(caller):
        raise AnonymousUserError
    return caller


def user_in_tenant(caller: Caller) -> str:
    """Return whose preferences were looked for: who asks for another tenant's finds nothing, and sees why."""
    return f"`{caller.own_subject}`, tenant `{caller.tenant_id}`"


@contextmanager
def preferences_of(
    args: argparse.Namespace,
    *,
    hands_over: bool = False,
    removes: bool = False,
    creates: bool = False,
    asks: bool = False,
) -> Iterator[PreferenceStore]:
    """Yield the preferences at the address in force, behind the gates of the settings.

    What is read of them is looked at, unless it is handed over to an agent. Whether the principal may have
    them is asked before where he is another than the user, with `asks` of the user too.

    Raises:
        PolicyDeniedError: they are another's than the principal's, and no role lets him.
        UsageError: a place was named that holds none, and the command does not make it (`creates`).
    """
    from agent_runtime_ref.preferences import PreferenceStore
    from agent_runtime_ref.telemetry.turns import looking

    settings = settings_of(args)
    require_writable("trace", settings.trace)
    with (
        nullcontext() if hands_over else looking(),
        PreferenceStore(
            args.preferences,
            engine=settings.engine,
            policies=settings.policies,
            policies_digest=settings.policies_digest,
            verification=settings.verification,
            opa=settings.opa,
            log_mask=settings.log_mask,
            trace=settings.trace,
        ) as store,
    ):
        if not creates:
            _require_place(args)
        caller = caller_of(args)
        if asks or acting.acts_for_another(caller):
            with _gate(args, store, caller) as memory:
                acting.require_right(memory, caller, removes=removes)
        yield store


@contextmanager
def _gate(args: argparse.Namespace, store: PreferenceStore, caller: Caller) -> Iterator[GovernedMemory]:
    """Yield the memory whose policies say who may do what, in whose log it stands then."""
    from agent_runtime_ref.runtime import GovernedMemory

    memory = store.memory_of(caller)
    if memory is not None:
        yield memory
    elif hasattr(args, "store") and names_store(args):
        with opened(args) as memory:
            yield memory
    else:  # he has no preferences; who may ask for them is decided all the same
        settings = replace(settings_of(args), store="memory:")
        with GovernedMemory.from_settings(settings, follow_policies=False) as memory:
            yield memory


def _require_place(args: argparse.Namespace) -> None:
    """Return if the place of the preferences is there, or is only the one that the first of them makes.

    Raises:
        UsageError: it was named, and is not there: a mistyped one would look like a user without any.
    """
    from agent_runtime_ref.preferences.places import VARIABLE

    named = args.preferences or os.environ.get(VARIABLE, "").strip()
    scheme, _, name = named.partition(":")
    if scheme not in ("file", "sqlite", "jsonl") or not name.strip() or "\0" in name or name.startswith("//"):
        return  # opening it says what is wrong with the address
    if not Path(name).exists():
        origin = "--preferences" if args.preferences else VARIABLE
        raise UsageError(
            f"no store at `{name}` ({origin}); name an existing one, or make it with `preferences add`"
        )
