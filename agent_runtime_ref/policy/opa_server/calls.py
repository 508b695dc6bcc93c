"""A call to the server: when it must end, what it connected, and sockets that keep to it.

The timeout of a socket begins anew with each byte, so a server that drips one a second is never late. Here
every wait is for what is left of the whole call: looking up the name, connecting, TLS, sending, reading.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
from time import monotonic
from typing import Any

from agent_runtime_ref.errors import EngineFailureError

__all__ = ["Call", "Connections", "DeadlineSocket", "DeadlineTLSSocket", "Within", "connected"]


class Connections:
    """How many connections a client has made so far: each may have reached another server than the last."""

    def __init__(self) -> None:
        self.made = 0
        self._lock = threading.Lock()

    def add(self) -> None:
        """Count one more."""
        with self._lock:
            self.made += 1


class Call:
    """One call, from now on for so many seconds."""

    __slots__ = ("_connections", "ends_at", "made", "seconds")

    def __init__(self, seconds: float, connections: Connections) -> None:
        self.seconds = seconds
        self.ends_at = monotonic() + seconds
        self.made = 0  # connections that this call made itself
        self._connections = connections

    @property
    def left(self) -> float:
        """Seconds until the end, zero or less when it has passed."""
        return self.ends_at - monotonic()

    def require(self) -> float:
        """Return the seconds until the end.

        Raises:
            EngineFailureError: reason engine_timeout, it has passed.
        """
        left = self.left
        if left <= 0:
            raise self.passed()
        return left

    def passed(self) -> EngineFailureError:
        """Return the refusal of a call that took too long."""
        return EngineFailureError("engine_timeout", f"no answer within {self.seconds * 1000:.0f} ms")

    def connected(self) -> None:
        """Note that a connection was made, before anything is sent over it."""
        self.made += 1
        self._connections.add()


class _Current(threading.local):
    """The call that this thread makes; a socket is handed from one to the next."""

    call: Call | None = None


_CURRENT = _Current()


class Within:
    """A block of code whose sockets keep to the end of a call."""

    __slots__ = ("_call",)

    def __init__(self, call: Call) -> None:
        self._call = call

    def __enter__(self) -> None:
        _CURRENT.call = self._call

    def __exit__(self, *_: object) -> None:
        _CURRENT.call = None


def _left() -> float | None:
    """Return the seconds that this thread may still wait; None outside any call, as when closing."""
    call = _CURRENT.call
    if call is None:
        return None
    left = call.left
    if left <= 0:
        raise TimeoutError("deadline passed")
    return left


class DeadlineSocket(socket.socket):
    """A socket that waits no longer than the call of its thread may take."""

    def recv_into(self, *arguments: Any, **options: Any) -> int:
        """Receive, within the deadline."""
        self.settimeout(_left())
        return super().recv_into(*arguments, **options)

    def sendall(self, *arguments: Any, **options: Any) -> None:
        """Send everything, within the deadline."""
        self.settimeout(_left())
        super().sendall(*arguments, **options)


class DeadlineTLSSocket(ssl.SSLSocket):
    """The same over TLS, where sending everything is a loop of its own."""

    def recv_into(self, *arguments: Any, **options: Any) -> int:
        """Receive, within the deadline."""
        self.settimeout(_left())
        return super().recv_into(*arguments, **options)

    def send(self, *arguments: Any, **options: Any) -> int:
        """Send what fits, within the deadline."""
        self.settimeout(_left())
        return super().send(*arguments, **options)


def connected(host: str, port: int, options: Any) -> DeadlineSocket:
    """Return a socket connected to the first address of `host` that answers.

    Raises:
        OSError: none does; TimeoutError where the deadline passed over it.
    """
    failure: OSError = OSError(f"no address of {host}")
    for family, kind, protocol, _, address in _addresses(host, port):
        sock = DeadlineSocket(family, kind, protocol)
        try:
            for option in options or ():
                sock.setsockopt(*option)
            sock.settimeout(_left())
            sock.connect(address)
            sock.settimeout(_left())  # a TLS handshake takes its time from here
            if _CURRENT.call is not None:
                _CURRENT.call.connected()
            return sock
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
    raise failure


def _addresses(host: str, port: int) -> list[Any]:
    """Return where `host` is; the system's lookup cannot be interrupted, so a thread waits for it."""
    found: list[Any] = []
    failed: list[OSError] = []

    def look_up() -> None:
        try:
            found.extend(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            failed.append(error if isinstance(error, OSError) else OSError(str(error)))

    if _is_address(host):
        look_up()  # only parsed
    else:
        seeker = threading.Thread(target=look_up, name="opa-lookup", daemon=True)
        seeker.start()
        seeker.join(_left())
        if seeker.is_alive():
            raise TimeoutError(f"looking up {host} took too long")
    if failed:
        raise failed[0]
    return found


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
