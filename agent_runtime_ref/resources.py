"""Where policies, schemas and configs are: argument, then environment, then wheel, then checkout.

A path that was named and does not exist is an error: falling back to the bundled policies would enforce other
rules than the ones that somebody chose.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from agent_runtime_ref.errors import ResourceNotFoundError

__all__ = [
    "ENVIRONMENT",
    "VERIFICATION",
    "configs_path",
    "data_home",
    "policies_path",
    "resource_path",
    "schemas_path",
    "user_of",
]

ENVIRONMENT = {"policies": "AGENT_RUNTIME_POLICIES"}
# What the signature of the policies is held to, and the environment variable that says it.
VERIFICATION = {
    "verification_key": "AGENT_RUNTIME_POLICIES_VERIFICATION_KEY",
    "algorithm": "AGENT_RUNTIME_POLICIES_ALGORITHM",
    "keyid": "AGENT_RUNTIME_POLICIES_KEYID",
    "scope": "AGENT_RUNTIME_POLICIES_SCOPE",
}

# What belongs to a user: the first variable that is set counts.
HOMES = ("AGENT_RUNTIME_HOME", "WORKBUDDY_HOME")
USERS = ("AGENT_RUNTIME_USER_ID", "WORKBUDDY_USER_ID")
LOCAL_USER = "local-user"

_PACKAGE = Path(__file__).resolve().parent


def resource_path(kind: str, argument: str | Path | None = None) -> Path:
    """Return the folder (or file) that holds `kind`: "policies", "schemas" or "configs".

    Raises:
        ResourceNotFoundError: what was named does not exist, or the installation is incomplete.
    """
    named = _named(kind, argument)
    if named is not None:
        if not named.exists():
            raise ResourceNotFoundError(kind, named)
        return named
    for folder in (_PACKAGE / "_data" / kind, _PACKAGE.parent / kind):
        if folder.is_dir():
            return folder
    raise ResourceNotFoundError(kind, _PACKAGE / "_data" / kind)


def _named(kind: str, argument: str | Path | None) -> Path | None:
    """Return the path that a caller or the environment names; None where neither does."""
    if argument is not None:
        return Path(argument)
    variable = ENVIRONMENT.get(kind)
    # An empty variable counts as unset, as it does for most commands; a shell cannot easily unset one.
    value = os.environ.get(variable) if variable else None
    return Path(value) if value else None


def policies_path(argument: str | Path | None = None) -> Path:
    """Return the policy bundle: a folder, or an archive where one was named."""
    return resource_path("policies", argument)


def schemas_path() -> Path:
    """Return the folder of the JSON Schemas; they are part of the package and cannot be swapped."""
    return resource_path("schemas")


def configs_path() -> Path:
    """Return the folder of the bundled configurations."""
    return resource_path("configs")


def data_home(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of what belongs to this user; it is named, not made."""
    environ = os.environ if environ is None else environ
    named = _first(HOMES, environ)
    return _platform_folder(environ) if named is None else Path(named)


def user_of(environ: Mapping[str, str] | None = None) -> str:
    """Return whose memory a command looks at where nobody says."""
    return _first(USERS, os.environ if environ is None else environ) or LOCAL_USER


def _platform_folder(environ: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":  # pragma: no cover - macOS
        base = Path.home() / "Library" / "Application Support"
    elif os.name == "nt":  # pragma: no cover - Windows
        base = Path(environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        data = environ.get("XDG_DATA_HOME", "")
        # The specification has relative paths ignored.
        base = Path(data) if data.startswith("/") else Path.home() / ".local" / "share"
    return base / "agent-runtime-ref"


def _first(variables: tuple[str, ...], environ: Mapping[str, str]) -> str | None:
    return next((value for name in variables if (value := environ.get(name, "")).strip()), None)
