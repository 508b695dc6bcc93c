"""HTTP servers on loopback that do what a policy server must not: slow, dripping, lying, silent.

A `FaultServer` shows the modules and settings of a bundle as an OPA does, so that a client takes it for one,
and answers decisions in whatever way the test says.
"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from agent_runtime_ref.policy.bundle import Bundle

Behaviour = Callable[[socket.socket, bytes], None]
_LENGTH = re.compile(rb"^content-length: *(\d+)", re.IGNORECASE | re.MULTILINE)
_PACKAGE = re.compile(r"^package ([\w.]+)", re.MULTILINE)


class FaultServer:
    """Answers POST as `behaviour` says, and GET as an OPA that runs `bundle`; a context manager."""

    def __init__(self, behaviour: Behaviour, bundle: Bundle | None = None) -> None:
        self.behaviour = behaviour
        self.heads: list[bytes] = []  # request line and headers of each request
        self.slow_seconds = 0.0  # how long it takes to list its policies
        self._bundle = bundle
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._ended = threading.Event()

    @property
    def engine(self) -> str:
        """The engine that asks this server."""
        return f"opa:http://127.0.0.1:{self.port}"

    def posts(self) -> int:
        """Return how many questions arrived."""
        return sum(head.startswith(b"POST ") for head in self.heads)

    def __enter__(self) -> FaultServer:
        self._spawn(self._accept)
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        # A blocked accept is not ended by closing its socket, but by a last visitor.
        socket.create_connection(("127.0.0.1", self.port)).close()
        self._listener.close()
        for one in list(self._open):
            one.close()
        for thread in self._threads:
            thread.join(10)

    def _spawn(self, work: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                visitor, _ = self._listener.accept()
            except OSError:
                if self._ended.is_set():
                    return  # closed between the look and the call
                raise
            visitor.settimeout(0.2)
            self._open.add(visitor)
            self._spawn(self._serve, visitor)

    def _serve(self, visitor: socket.socket) -> None:
        try:
            while not self._ended.is_set():
                head, body = self._request(visitor)
                if not head:
                    return
                self.heads.append(head)
                if head.startswith(b"GET "):
                    self._told(visitor, head)
                else:
                    self.behaviour(visitor, body)
        except OSError:
            pass  # the client has left, as it should
        finally:
            self._open.discard(visitor)
            visitor.close()

    def _request(self, visitor: socket.socket) -> tuple[bytes, bytes]:
        data = b""
        while b"\r\n\r\n" not in data:
            part = self._received(visitor)
            if not part:
                return b"", b""
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        while length is not None and len(body) < int(length[1]):
            body += self._received(visitor)
        return head, body

    def _received(self, visitor: socket.socket) -> bytes:
        while not self._ended.is_set():
            try:
                return visitor.recv(65536)
            except TimeoutError:
                continue
        return b""

    def _told(self, visitor: socket.socket, head: bytes) -> None:
        """Answer what an OPA that runs the bundle would."""
        path = head.split(b" ", 2)[1].decode()
        if self._bundle is None:
            self.behaviour(visitor, b"")
        elif path == "/v1/policies":
            time.sleep(self.slow_seconds)
            modules = [_module(name, text) for name, text in self._bundle.modules]
            visitor.sendall(answer({"result": modules}))
        else:
            value: Any = json.loads(self._bundle.data_json)
            for part in path.removeprefix("/v1/data/").split("/"):
                value = value[part]
            visitor.sendall(answer({"result": value}))


def _module(name: str, text: str) -> dict[str, Any]:
    package = _PACKAGE.search(text)
    assert package is not None
    parts = [{"type": "var", "value": "data"}]
    parts += [{"type": "string", "value": part} for part in package[1].split(".")]
    return {"id": name, "raw": text, "ast": {"package": {"path": parts}}}


def provenance(bundle: Bundle) -> dict[str, Any]:
    """Return what an OPA says of the bundle in each answer."""
    return {"version": "1.22.3", "bundles": {"memory": {"revision": bundle.revision}}}


def answer(document: Any, *, status: str = "200 OK", headers: str = "") -> bytes:
    """Return an HTTP answer with a JSON body, or with the bytes given."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def saying(data: bytes) -> Behaviour:
    """Answer with these bytes."""
    return lambda visitor, _: visitor.sendall(data)


def ending(data: bytes) -> Behaviour:
    """Answer with these bytes, and end the connection."""

    def behave(visitor: socket.socket, _: bytes) -> None:
        visitor.sendall(data)
        visitor.shutdown(socket.SHUT_RDWR)

    return behave


def dripping(data: bytes, *, start: int = 0, every: float = 0.05) -> Behaviour:
    """Answer with these bytes, one at a time from the position `start` on."""

    def behave(visitor: socket.socket, _: bytes) -> None:
        visitor.sendall(data[:start])
        for place in range(start, len(data)):
            visitor.sendall(data[place : place + 1])
            time.sleep(every)

    return behave


def late(data: bytes, seconds: float) -> Behaviour:
    """Answer with these bytes, after so many seconds."""

    def behave(visitor: socket.socket, _: bytes) -> None:
        time.sleep(seconds)
        visitor.sendall(data)

    return behave


def endless(head: bytes, part: bytes) -> Behaviour:
    """Answer without an end."""

    def behave(visitor: socket.socket, _: bytes) -> None:
        visitor.settimeout(5)
        visitor.sendall(head)
        while True:
            visitor.sendall(part)

    return behave
