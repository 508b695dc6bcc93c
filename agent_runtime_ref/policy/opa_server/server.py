"""The server as a client needs it: address, certificates, headers; refused where it would not be safe."""

from __future__ import annotations

import ipaddress
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from agent_runtime_ref import __version__
from agent_runtime_ref.errors import UsageError
from agent_runtime_ref.policy.opa_server.settings import OpaSettings

__all__ = ["PREFIX", "TOKEN_VARIABLE", "OpaAddress", "OpaServer", "server_of"]

PREFIX = "opa:"
TOKEN_VARIABLE = "AGENT_RUNTIME_OPA_TOKEN"
_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}|\[[0-9A-Fa-f:.]+\]")
_TOKEN = re.compile(r"[\x21-\x7e]{1,8192}")
_ADDRESS = re.compile(r"[\x21-\x7e]*")  # `urlsplit` takes blanks and line ends out, and reads what is left
_HEADERS = {
    "Accept": "application/json",
    # Packing costs more than it saves to the next process, and unpacking has no bound.
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": f"agent-runtime-ref/{__version__}",
}


@dataclass(frozen=True, slots=True)
class OpaAddress:
    """The server of `opa:http://HOST[:PORT]` or `opa:https://HOST[:PORT]`."""

    scheme: str
    host: str  # an IPv6 address in brackets
    port: int

    @property
    def secure(self) -> bool:
        """Whether the server is reached over TLS."""
        return self.scheme == "https"

    @property
    def loopback(self) -> bool:
        """Whether what is sent never leaves this machine."""
        if self.host.lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class OpaServer:
    """Everything that a client of the server is made of."""

    address: OpaAddress
    headers: Mapping[str, str] = field(repr=False)  # the token is among them
    tls: ssl.SSLContext | None
    connections: int


def server_of(engine: str, settings: OpaSettings, environ: Mapping[str, str]) -> OpaServer:
    """Return the server that an engine's name and the settings speak of; nothing is sent yet.

    Raises:
        UsageError: an address, a token or a certificate that could not be used, or not safely.
    """
    address = _address(engine)
    token = _token(settings, address, environ)
    headers = _HEADERS if token is None else {**_HEADERS, "Authorization": f"Bearer {token}"}
    return OpaServer(address, headers, _tls(settings, address), settings.connections)


def _address(engine: str) -> OpaAddress:
    """Return the server that an engine's name speaks of.

    Raises:
        UsageError: it is no address of a server, or carries what the client could not honour.
    """
    text = engine.removeprefix(PREFIX)
    if not _ADDRESS.fullmatch(text):
        raise _misread(ascii(engine)[1:-1], "it holds blanks, or letters that no address has")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise _misread(engine, str(error)) from error
    if parts.scheme not in _PORTS or not host:
        raise _misread(engine, "it must begin with `opa:http://` or `opa:https://` and name a host")
    if "@" in parts.netloc:
        raise _misread(f"{PREFIX}{parts.scheme}://...", f"credentials go into {TOKEN_VARIABLE}")
    if parts.path not in ("", "/") or "?" in text or "#" in text:
        raise _misread(engine, "nothing may stand after host and port")
    host = f"[{host}]" if ":" in host else host
    if not _HOST.fullmatch(host):
        raise _misread(engine, "the host is no name and no address")
    if port == 0:
        raise _misread(engine, "no server listens at port 0")
    return OpaAddress(parts.scheme, host, _PORTS[parts.scheme] if port is None else port)


def _token(settings: OpaSettings, address: OpaAddress, environ: Mapping[str, str]) -> str | None:
    """Return the bearer token, of the environment before the file's; None where there is none.

    Raises:
        UsageError: the file is not readable, the token could not be sent, or would be sent in clear.
    """
    token, origin = environ.get(TOKEN_VARIABLE), TOKEN_VARIABLE
    if not token and settings.token_file is not None:
        origin = settings.token_file
        try:
            token = Path(settings.token_file).read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise UsageError(f"opa token_file `{origin}` cannot be read: {_why(error)}") from error
    elif not token:
        return None
    if not _TOKEN.fullmatch(token):
        raise UsageError(f"the token of {origin} is empty or holds what a header cannot carry; write it anew")
    if not address.secure and not address.loopback:
        raise UsageError(
            f"the token of {origin} would go in clear to {address}; use opa:https://, or leave the token out"
        )
    return token


def _tls(settings: OpaSettings, address: OpaAddress) -> ssl.SSLContext | None:
    """Return how the server's certificate is checked, and ours shown; None without TLS.

    Raises:
        UsageError: a file of certificates is not usable, or is given for a server without TLS.
    """
    named = (settings.ca_file, settings.certificate_file, settings.key_file)
    if not address.secure:
        if any(named):
            raise UsageError(f"certificates mean nothing to {address}; use opa:https://, or leave them out")
        return None
    if settings.key_file is not None and settings.certificate_file is None:
        raise UsageError("opa key_file needs certificate_file beside it")
    try:
        # With a file of its own the context trusts nothing else.
        context = ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ValueError) as error:
        raise UsageError(f"opa ca_file `{settings.ca_file}` is not usable: {_why(error)}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if settings.certificate_file is not None:
        try:
            # An encrypted key must be an error: a question at the terminal would hang a server.
            context.load_cert_chain(settings.certificate_file, settings.key_file, password=lambda: b"")
        except (OSError, ValueError) as error:
            shown = settings.certificate_file
            raise UsageError(f"opa certificate_file `{shown}` is not usable: {_why(error)}") from error
    return context


def _misread(engine: str, why: str) -> UsageError:
    return UsageError(f"engine `{engine}` not understood: {why}; as in opa:http://127.0.0.1:8181")


def _why(error: Exception) -> str:
    """Return what the system says of a file, without repeating its name."""
    return getattr(error, "strerror", None) or type(error).__name__
