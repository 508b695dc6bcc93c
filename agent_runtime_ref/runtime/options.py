"""The options by which a memory is opened, checked before anything is read or made."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agent_runtime_ref.contracts.arguments import (
    each_of,
    require,
    require_flag,
    require_parts,
    require_string,
)
from agent_runtime_ref.errors import DocumentValueError
from agent_runtime_ref.policy.signing import Verification

__all__ = ["check_options", "require_path"]


def check_options(
    *,
    store: str,
    engine: str,
    places: Iterable[tuple[str, object]],
    policies_digest: str | None,
    verification: object,
    reload_seconds: object,
    rotation: Iterable[tuple[str, object]],
    opa: object,
    log_mask: Any,
    clock: object,
    ids: object,
    must_exist: bool,
) -> None:
    """Refuse options of `GovernedMemory.open` that are of the wrong type; their values are judged further in.

    Raises:
        DocumentTypeError, DocumentValueError: the sentence begins with the option's name.
    """
    require_string("store", store)
    if "\x00" in store:
        raise DocumentValueError("store: must not contain a NUL character", path="store")
    require_string("engine", engine)
    for name, place in places:
        require_path(name, place)
    require_string("policies_digest", policies_digest, optional=True)
    if verification is not None:
        require("verification", verification, Verification)
    _require_number("reload_seconds", reload_seconds, int, float, wanted="a number")
    for name, number in rotation:
        _require_number(name, number, int, wanted="an integer")
    _require_opa(opa)
    for entry in each_of("log_mask", log_mask, object, wanted="pointers or mappings"):
        require("log_mask", entry, str, Mapping, wanted="a list of pointers or mappings")
        if isinstance(entry, str):
            require_string("log_mask", entry)
    if clock is not None:
        require_parts("clock", clock, "now_us", "monotonic_ns")
    if ids is not None:
        require_parts("ids", ids, "new")
    require_flag("must_exist", must_exist)


def require_path(name: str, value: object) -> None:
    """Refuse what the file system could not be asked about; None is no place and may stand.

    Raises:
        DocumentTypeError: it is neither a string nor a path.
        DocumentValueError: it contains what no name of a file can.
    """
    if value is None:
        return
    require(name, value, str, Path, wanted="a path")
    try:
        named = os.fsencode(str(value))
    except UnicodeEncodeError as error:
        raise DocumentValueError(f"{name}: must be text that a path can be", path=name) from error
    if b"\x00" in named:
        raise DocumentValueError(f"{name}: must not contain a NUL character", path=name)


def _require_number(name: str, value: object, *kinds: type, wanted: str) -> None:
    """Refuse what is no number; true is none, and None stands for no number."""
    if value is not None:
        require(name, value if type(value) is not bool else None, *kinds, wanted=wanted)


def _require_opa(value: object) -> None:
    if value is not None:
        from agent_runtime_ref.policy.opa_server.settings import OpaSettings

        require("opa", value, OpaSettings)
