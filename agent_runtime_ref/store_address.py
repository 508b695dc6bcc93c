"""How the address of a store may be shown: a server's may hold a password, wherever it was mistyped."""

from __future__ import annotations

import re

__all__ = ["SCHEMES", "shown"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*", re.ASCII)
# A path or nothing follows these; `@` is a character of a file's name like any other.
_PATHS = frozenset({"memory", "seeds", "jsonl", "file", "sqlite"})
SCHEMES = _PATHS | {"postgresql", "redis", "rediss"}  # with which an address may begin


def shown(address: str) -> str:
    """Return the address if it is a file's, and of one that may be a server's the scheme alone.

    What was meant cannot be known where the scheme is no known one, so nothing behind it is repeated.
    """
    scheme, colon, _ = address.partition(":")
    if "://" not in address and (scheme in _PATHS or "@" not in address):
        return address
    return f"{scheme}:" if colon and _SCHEME.fullmatch(scheme) else "..."
