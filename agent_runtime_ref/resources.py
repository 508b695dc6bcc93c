"""Where policies, schemas and configs are: argument, then environment, then wheel, then checkout.

A path that was named and does not exist is an error: falling back to the bundled policies would enforce other
rules than the ones that somebody chose.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from agent_runtime_ref.errors import ResourceNotFoundError

__all__ = [
    "ENVIRONMENT",
    "VERIFICATION",
    "configs_path",
    "policies_path",
    "resource_path",
    "schemas_path",
]

ENVIRONMENT = {"policies": "AGENT_RUNTIME_POLICIES"}
# What the signature of the policies is held to, and the environment variable that says it.
VERIFICATION = {
    "verification_key": "AGENT_RUNTIME_POLICIES_VERIFICATION_KEY",
    "algorithm": "AGENT_RUNTIME_POLICIES_ALGORITHM",
    "keyid": "AGENT_RUNTIME_POLICIES_KEYID",
    "scope": "AGENT_RUNTIME_POLICIES_SCOPE",
}

_PACKAGE = Path(__file__).resolve().parent


def resource_path(
    kind: str, argument: str | Path | None = None, *, environ: Mapping[str, str] | None = None
) -> Path:
    """Return the folder (or file) that holds `kind`: "policies", "schemas" or "configs".

    Raises:
        ResourceNotFoundError: what was named does not exist, or the installation is incomplete.
    """
    named = _named(kind, argument, os.environ if environ is None else environ)
    if named is not None:
        if not named.exists():
            raise ResourceNotFoundError(kind, named)
        return named
    for folder in (_PACKAGE / "_data" / kind, _PACKAGE.parent / kind):
        if folder.is_dir():
            return folder
    raise ResourceNotFoundError(kind, _PACKAGE / "_data" / kind)


def _named(kind: str, argument: str | Path | None, environ: Mapping[str, str]) -> Path | None:
    """Return the path that a caller or the environment names; None where neither does."""
    if argument is not None:
        return Path(argument)
    variable = ENVIRONMENT.get(kind)
    # An empty variable counts as unset, as it does for most commands; a shell cannot easily unset one.
    value = environ.get(variable) if variable else None
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
