"""Options that several commands share, and the memory they open.

A setting is the option, else its environment variable, else runtime.yaml, else the default; `config` decides.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.parsers import worded
from agent_runtime_ref.cli.terminal import note
from agent_runtime_ref.errors import UsageError

if TYPE_CHECKING:
    from agent_runtime_ref.config import Settings
    from agent_runtime_ref.contracts import Caller
    from agent_runtime_ref.runtime import GovernedMemory

OPERATOR = "operator"
_SHOWN = 3  # files of a folder that was named in the place of one
# Whose tenant an operator has who looks at all of them: a caller needs one, and the log should say this.
ALL_TENANTS = "all-tenants"
_SETTINGS = ("store", "engine", "policies", "log", "trace")
_HELP = {
    "store": (
        "URL",
        "memory:, seeds:, jsonl:, file:, sqlite:FILE, postgresql://... or redis://...; default: the seeds",
    ),
    "engine": ("NAME", "embedded, or opa:http://HOST:PORT; default: embedded"),
    "policies": ("PATH", "a folder of policies or a bundle; default: the bundled ones"),
    "log": ("FILE", "where the decision log of a store goes that keeps none"),
    "trace": ("FILE", "append events to this file, one JSON object a line"),
}


def add_settings(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add the settings called `names`, all of them without one."""
    group = parser.add_argument_group("settings, each also an environment variable or a line of runtime.yaml")
    for name in names or _SETTINGS:
        metavar, text = _HELP[name]
        group.add_argument(f"--{name}", metavar=metavar, help=text)


def add_tenant(group: Any, text: str, *, required: bool = False) -> None:
    """Add `--tenant`, by both of its names, to a parser or a group of one; `text` is its help."""
    group.add_argument(
        "--tenant",
        "--tenant-id",
        dest="tenant",
        type=worded,
        metavar="TENANT",
        required=required,
        help=text,
    )


def add_caller(parser: argparse.ArgumentParser) -> None:
    """Add who acts: tenant and principal are demanded, since no default could be right."""
    group = parser.add_argument_group("who acts")
    add_tenant(group, "the tenant", required=True)
    group.add_argument("--principal", type=worded, metavar="PRINCIPAL", required=True, help="the principal")
    group.add_argument("--role", action="append", metavar="ROLE", help="a role; may be repeated")


def add_user(
    parser: argparse.ArgumentParser,
    title: str,
    *,
    tenant: str = "default: local",
    acts: str = "who acts; default: the user",
    user: str = "the user; default: the principal, else",
) -> Any:
    """Add whose it is and who `acts`, the user himself by default; returns the group."""
    group = parser.add_argument_group(title)
    group.add_argument(
        "--user",
        type=worded,
        metavar="USER",
        help=f"{user} AGENT_RUNTIME_USER_ID, else WORKBUDDY_USER_ID, else local-user",
    )
    add_tenant(group, tenant)
    group.add_argument("--principal", type=worded, metavar="PRINCIPAL", help=acts)
    group.add_argument("--role", action="append", metavar="ROLE", help="a role; may be repeated")
    return group


def caller_of(args: argparse.Namespace, *, roles: tuple[str, ...] = (), subject: str | None = None) -> Caller:
    """Return the caller that the options name; `roles` where they name none."""
    from agent_runtime_ref.contracts import Caller

    named = roles if args.role is None else tuple(args.role)
    return Caller(tenant_id=args.tenant, principal_id=args.principal, subject=subject, roles=named)


def operator_of(tenant_id: str | None) -> Caller:
    """Return the operating system's user as an operator of one tenant, or of all of them."""
    from agent_runtime_ref.contracts import Caller

    tenant = ALL_TENANTS if tenant_id is None else tenant_id
    return Caller(tenant_id=tenant, principal_id=system_user(), roles=(OPERATOR,))


def system_user() -> str:
    """Return the name of the operating system's user; a variable that anybody can set is asked last."""
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):
        import getpass

        try:
            return getpass.getuser()
        except (ImportError, KeyError, OSError):
            return "unknown-user"


def settings_of(args: argparse.Namespace) -> Settings:
    """Return the settings in force for a command."""
    from agent_runtime_ref.config import load_settings

    options = {name: getattr(args, name, None) for name in _SETTINGS}
    return load_settings(args.settings, options=options)


def opened(args: argparse.Namespace, *, creates: bool = False) -> GovernedMemory:
    """Return the governed memory of a command; the caller closes it.

    A store that is a file is made only by a command that writes into it (`creates`).

    Raises:
        UsageError: the file of the store is not there, or not readable.
    """
    from agent_runtime_ref.runtime import GovernedMemory

    settings = settings_of(args)
    if not creates:
        require_store_file(settings.store)
    require_writable("log", settings.log)
    require_writable("trace", settings.trace)
    return GovernedMemory.from_settings(settings, follow_policies=False, must_exist=not creates)


def require_named_store(args: argparse.Namespace, *, only_looks: bool = False) -> None:
    """Return if the command was told which store it is about: by an option, a variable or a settings file.

    Raises:
        UsageError: it was not; the default are seeds that begin and end with the command, so nothing would be
            changed, and nothing was logged in them that could be looked at.
    """
    from agent_runtime_ref.config import ENVIRONMENT

    if names_store(args):
        return
    what = "looks at what was logged in a store" if only_looks else "changes a store"
    raise UsageError(
        f"`{args.command}` {what}, and none is named: name it with --store sqlite:FILE, "
        f"{ENVIRONMENT['store']} or `store` in a runtime.yaml"
    )


def names_store(args: argparse.Namespace) -> bool:
    """Tell whether an option, a variable or a settings file says which store a command is about."""
    from agent_runtime_ref.config import ENVIRONMENT, SETTINGS_VARIABLE

    if args.store or os.environ.get(ENVIRONMENT["store"]):
        return True
    file = args.settings or os.environ.get(SETTINGS_VARIABLE)
    if not file:
        return False
    from agent_runtime_ref.validation import load_document

    return "store" in load_document(Path(file), schema="runtime_config")


def require_writable(option: str, name: str | None) -> None:
    """Return if the file that a setting names, if it names one, can be appended to; it is not made.

    Raises:
        UsageError: it cannot.
    """
    if name is None:
        return
    path = Path(name)
    reason = None
    if path.is_dir():
        reason = "it is a folder"
    elif option == "log" and path.exists() and not path.is_file():
        reason = "it is no file of its own"  # a chain is read back before it is gone on with
    elif not path.absolute().parent.is_dir():
        reason = f"there is no folder `{path.absolute().parent}`"
    elif not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        reason = "this user may not write there"
    if reason is not None:
        raise UsageError(f"{option} `{name}` cannot be written: {reason}; name another file")


def within_limit(asked: int | None, most: int) -> int:
    """Return how many records a command shows: what was asked for, else as many as the policy allows.

    Raises:
        UsageError: more were asked for.
    """
    if asked is not None and asked > most:
        raise UsageError(f"--limit {asked} is above the maximum that the policy sets, {most}")
    return most if asked is None else asked


def note_more(found: int, limit: int, most: int) -> None:
    """Say that there are more records than are shown, where there are: one more was asked for, if allowed."""
    if found > limit:
        note(f"the first {limit} records are shown, and there are more; narrow the search or raise --limit")
    elif found == most:
        note(f"at most {most} records are shown; there may be more, so narrow what you look for")


def require_store_file(address: str) -> None:
    """Return if the file that a store address names, if it names one, is there to be read.

    Raises:
        UsageError: it is not.
    """
    scheme, _, name = address.partition(":")
    if scheme not in ("sqlite", "jsonl", "file") or not name.strip() or "\0" in name or name.startswith("//"):
        return  # opening it says what is wrong with the address
    path = Path(name)
    if not path.exists():
        raise UsageError(
            f"no store at `{path}`; name an existing file, or make one with `agent-runtime-ref write`"
        )
    if path.is_dir():
        held = sorted(one for one in path.glob("*.json") if one.is_file())[:_SHOWN]
        like = ", ".join(f"`file:{one}`" for one in held)
        raise UsageError(f"`{path}` is a folder; name a file in it{f', such as {like}' if held else ''}")
    if not os.access(path, os.R_OK):
        raise UsageError(f"store `{path}` is not readable by this user; change its permissions")


def is_volatile(store_url: str) -> bool:
    """Tell whether a store ends with the process."""
    return store_url.partition(":")[0] in ("seeds", "memory")
