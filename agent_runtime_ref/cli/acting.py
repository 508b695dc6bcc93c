"""Who acts on what is a user's own: for himself, or by a role that the policy knows.

A shell lets everybody write any name behind --user. So nobody acts for a user because he named him: whoever
is not the user is asked about as himself, and the gates say whether his roles let him.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_runtime_ref.resources import user_of

if TYPE_CHECKING:
    from agent_runtime_ref.contracts import Caller
    from agent_runtime_ref.runtime import GovernedMemory

# What a user's own data may be of; a look at one of them is asked about as a look at all.
CLASSES = ("short_term", "long_term", "profile")
OTHERS = "Another acts by his roles, as far as the policy lets them"
_PURPOSE = "answer_generation"


def caller_of(args: argparse.Namespace, *, session_id: str | None = None) -> Caller:
    """Return who acts, about whom: one name stands for the other, the environment for both."""
    from agent_runtime_ref.contracts import Caller
    from agent_runtime_ref.preferences.identity import LOCAL_TENANT

    user = args.user or args.principal or user_of()
    return Caller(
        args.tenant or LOCAL_TENANT,
        args.principal or user,
        session_id=session_id,
        subject=user,
        roles=tuple(args.role or ()),
    )


def acts_for_another(caller: Caller) -> bool:
    """Tell whether the principal is somebody else than the user."""
    return caller.principal_id != caller.own_subject


def require_right(memory: GovernedMemory, caller: Caller, *, removes: bool = False) -> None:
    """Return if the policy lets the caller's principal look at what is the user's, or have it removed.

    The decision is that of a read, of an inspection by whom the policy calls an operator, or, with `removes`,
    that of erasing the user; it is logged like any.

    Raises:
        PolicyDeniedError, EngineFailureError, DecisionLogError: he may not, or nobody can say.
    """
    from agent_runtime_ref.clock import RandomIds
    from agent_runtime_ref.preferences.paging import require_look

    if removes:
        memory.forget(subject=caller.own_subject, caller=replace(caller, subject=None), dry_run=True)
        return
    require_look(
        memory,
        caller=caller,
        as_operator=not memory.bundle.settings["operator_roles"].keys().isdisjoint(caller.roles),
        purpose=_PURPOSE,
        classes=CLASSES,
        ids=RandomIds(),
    )
