"""What the commands about preferences share: whose they are, where they are, and the gates before them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from agent_runtime_ref.cli.options import add_settings, add_user, require_writable, settings_of
from agent_runtime_ref.cli.parsers import worded
from agent_runtime_ref.resources import user_of

if TYPE_CHECKING:
    from agent_runtime_ref.contracts import Caller
    from agent_runtime_ref.preferences import PreferenceStore


def add_whose(parser: argparse.ArgumentParser, *settings: str) -> None:
    """Add whose preferences they are, who acts, where they are, and the settings of the gates."""
    group = add_user(parser, "whose preferences, and who acts")
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
    from agent_runtime_ref.contracts import Caller
    from agent_runtime_ref.errors import AnonymousUserError
    from agent_runtime_ref.preferences.identity import LOCAL_TENANT, is_anonymous

    user = args.user or user_of()
    caller = Caller(
        args.tenant or LOCAL_TENANT, args.principal or user, subject=user, roles=tuple(args.role or ())
    )
    if is_anonymous(caller):
        raise AnonymousUserError
    return caller


def user_in_tenant(caller: Caller) -> str:
    """Return whose preferences were looked for: who asks for another tenant's finds nothing, and sees why."""
    return f"`{caller.own_subject}`, tenant `{caller.tenant_id}`"


@contextmanager
def preferences_of(args: argparse.Namespace, *, hands_over: bool = False) -> Iterator[PreferenceStore]:
    """Yield the preferences at the address in force, behind the gates of the settings.

    What is read of them is looked at, unless it is handed over to an agent.
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
        yield store
