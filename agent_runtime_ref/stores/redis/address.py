"""Addresses of Redis stores: what they may say, and how they may be shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from agent_runtime_ref.errors import StoreAddressError

WRITTEN = "redis://USER@HOST:PORT/NUMBER, or rediss:// for TLS"
_PORT = 6379
_OPTIONS = ("ssl_ca_certs",)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is, who logs in, and which of its databases is meant."""

    tls: bool
    host: str
    port: int
    database: int
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: str | None = None  # of the authorities that may vouch for the server; None: those of the system

    @property
    def shown(self) -> str:
        """The address without its password: it stands in errors, receipts and output."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        user = f"{self.user}@" if self.user else ""
        return f"{'rediss' if self.tls else 'redis'}://{user}{host}:{self.port}/{self.database}"

    def options(self) -> dict[str, Any]:
        """What the driver is told of it; a certificate is always demanded, and for this very host."""
        told: dict[str, Any] = {"host": self.host, "port": self.port, "db": self.database}
        if self.password is not None:
            told |= {"username": self.user or None, "password": self.password}
        if self.tls:
            told |= {"ssl_cert_reqs": "required", "ssl_check_hostname": True, "ssl_ca_certs": self.ca_file}
        return told


def parsed(url: str) -> Address:
    """The address that `url` is.

    Raises:
        StoreAddressError: it is none; said without any part of it, since each may be a misplaced password.
    """
    try:
        parts = urlsplit(url)
        port = _PORT if parts.port is None else parts.port
        query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise _refused("it cannot be read") from None
    if parts.scheme not in ("redis", "rediss") or not url.startswith(f"{parts.scheme}://"):
        raise _refused("it has another form")
    if not parts.hostname or "\0" in url or parts.fragment:
        raise _refused("it names no host" if not parts.hostname else "it has a part that means nothing")
    number = parts.path.strip("/") or "0"
    if not (number.isascii() and number.isdigit() and len(number) < 6):
        raise _refused("behind the host stands the number of a database")
    if parts.username and parts.password is None:
        raise _refused("a user logs in with a password")
    options = dict(query)
    if set(options) - set(_OPTIONS) or len(options) != len(query):
        raise _refused(f"the only option is {_OPTIONS[0]}, once")
    if options and parts.scheme != "rediss":
        raise _refused("certificates belong to rediss://")
    return Address(
        tls=parts.scheme == "rediss",
        host=parts.hostname,
        port=port,
        database=int(number),
        user=unquote(parts.username) if parts.username else None,
        password=None if parts.password is None else unquote(parts.password),
        ca_file=options.get(_OPTIONS[0]),
    )


def _refused(problem: str) -> StoreAddressError:
    return StoreAddressError("redis:", f"{problem}; write it as {WRITTEN}")
