"""Addresses of PostgreSQL stores, and how they may be shown.

Only libpq reads them: it and any other reader of URLs disagree about where a password ends that has `/`, `?`,
`#` or `@` in it, and what one takes for a host the other takes for half of the password.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from agent_runtime_ref.errors import StoreAddressError

_PREFIX = "postgresql://"
_WRITTEN = (
    "write it as postgresql://USER@HOST:PORT/DATABASE, and in a password each of `%`, `/`, `?`, `#` and `@`"
    " as %25, %2F, %3F, %23 and %40"
)
_PORT_MAX = 65_535


def shown(url: str) -> str:
    """The address without passwords: it stands in errors, receipts and output.

    It is user, hosts, ports and database as libpq has them; of what is no address only the scheme.
    """
    try:
        parts = _parsed(url)
    except StoreAddressError:
        return "postgresql:"
    hosts = parts.get("host", "").split(",")
    ports = parts.get("port", "").split(",")
    if len(ports) == 1:
        ports *= len(hosts)
    # Of two lists that do not fit together libpq says so itself, when it connects.
    pairs = zip(hosts, ports, strict=False)
    places = ",".join(_host(host) + (f":{port}" if port else "") for host, port in pairs)
    user = quote(parts["user"], safe="") + "@" if "user" in parts else ""
    return f"{_PREFIX}{user}{places}" + (f"/{quote(parts['dbname'], safe='')}" if "dbname" in parts else "")


def checked(url: str) -> str:
    """The address, if it is one that libpq understands.

    Raises:
        StoreAddressError: it is not.
    """
    _parsed(url)
    return url


def _parsed(url: str) -> Mapping[str, str]:
    """What libpq makes of an address.

    Raises:
        StoreAddressError: nothing, or what can only be half of a password.
    """
    from psycopg import Error
    from psycopg.conninfo import conninfo_to_dict

    if "\0" in url or not url.startswith(_PREFIX):
        raise _refused("it has another form")
    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    except (Error, ValueError):
        # Without libpq's own words: they may quote the password.
        raise _refused("libpq cannot read it") from None
    if not all(_is_port(port) for port in parts.get("port", "").split(",")):
        raise _refused("its port is no number")
    if "@" in parts.get("host", "") + parts.get("dbname", ""):
        raise _refused("there is an `@` in its host or its database")
    return parts


def _is_port(text: str) -> bool:
    return not text or (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= _PORT_MAX)


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else quote(host, safe="")


def _refused(problem: str) -> StoreAddressError:
    return StoreAddressError("postgresql:", f"{problem}; {_WRITTEN}")
