"""Addresses of PostgreSQL stores, and how they may be shown."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from agent_runtime_ref.errors import StoreAddressError

_SECRETS = frozenset({"password", "sslpassword"})


def shown(url: str) -> str:
    """The address without passwords: it stands in errors, receipts and output."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "postgresql:"
    user, at, host = parts.netloc.rpartition("@")
    netloc = f"{user.partition(':')[0]}{at}{host}"
    query = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] not in _SECRETS]
    return (
        urlunsplit((parts.scheme, netloc, parts.path, urlencode(query), ""))
        if netloc or query
        else (f"{parts.scheme}://{parts.path}")
    )


def checked(url: str) -> str:
    """The address, if it is one that libpq understands.

    Raises:
        StoreAddressError: it is not.
    """
    from psycopg import Error
    from psycopg.conninfo import conninfo_to_dict

    if "\0" in url or not url.startswith("postgresql://"):
        raise StoreAddressError(shown(url), "write it as postgresql://USER@HOST:PORT/DATABASE")
    try:
        conninfo_to_dict(url)
    except Error:
        # Without libpq's own words: they may quote the password.
        problem = "libpq cannot read it; write it as postgresql://USER@HOST:PORT/DATABASE"
        raise StoreAddressError(shown(url), problem) from None
    return url
