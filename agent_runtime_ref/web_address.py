"""How the address of a server may be shown: what stands before and behind its host may be a secret."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

__all__ = ["endpoint_shown", "origin_of"]

_HOST = re.compile(r"[0-9A-Za-z._-]+|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*", re.ASCII)


def origin_of(address: str) -> str | None:
    """Return scheme, host and port of an address of HTTP; None where they cannot be told for sure."""
    try:
        parts = urlsplit(address.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or host is None or not _HOST.fullmatch(host):
        return None
    if "@" in f"{parts.path}{parts.query}{parts.fragment}" or "\\" in address:
        return None  # a `/`, `?` or `#` in a password makes a host of what stands before it; so does a `\\`
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}" + ("" if port is None else f":{port}")


def endpoint_shown(address: str, setting: str | None) -> str:
    """Return the subject of a sentence about an address, which it names as far as it may be shown."""
    origin = origin_of(address)
    told = "endpoint" if origin is None else f"endpoint `{origin}`"
    return told if setting is None else f"{setting}: {told}"
