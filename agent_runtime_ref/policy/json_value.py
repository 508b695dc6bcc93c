"""JSON as bundles have it: what one reader would take for this and another for that is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from agent_runtime_ref.errors import BundleError

__all__ = ["decoded", "parsed"]


def decoded(name: str, raw: bytes) -> str:
    """Return the text of a file.

    Raises:
        BundleError: reason settings_malformed: it is not UTF-8.
    """
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BundleError("settings_malformed", f"{name} is not UTF-8") from error


def parsed(
    name: str,
    raw: bytes,
    *,
    parse_int: Callable[[str], Any] = int,
    parse_float: Callable[[str], Any] | None = None,
) -> Any:
    """Return the value of a JSON file; duplicate keys, NaN, Infinity and half characters are refused.

    Raises:
        BundleError: reason settings_malformed.
    """
    text = decoded(name, raw)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_constant=_no_constant,
            parse_int=parse_int,
            parse_float=parse_float or _finite,
        )
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise BundleError("settings_malformed", f"{name}: {error}") from error
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key `{twice}` stands twice")
    return value


def _finite(text: str) -> float:
    """Return a number; Python reads one beyond its bounds as infinite, which no engine does."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"`{text[:20]}` is too large a number")
    return number


def _no_constant(name: str) -> Any:
    raise ValueError(f"`{name}` is no number")
