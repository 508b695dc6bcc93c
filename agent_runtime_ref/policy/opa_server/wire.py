"""The client for threads: `OpaClient` of opa-python-client over a session that we keep on a short leash.

The client asks its session to post, and believes what comes back. Ours goes straight to the connection pool
of its own adapter: no proxy and no `~/.netrc` is looked for, no redirect followed, no cookie kept, nothing
tried twice, and the whole call ends at its deadline. It also saves about half of the client's time.
"""

from __future__ import annotations

import http.client
from typing import Any

import requests
from opa_client import OpaClient
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import InvalidHeader, ProtocolError

from agent_runtime_ref.errors import EngineFailureError
from agent_runtime_ref.policy.opa_server.calls import Call, Connections, DeadlineTLSSocket, Within, connected
from agent_runtime_ref.policy.opa_server.replies import (
    ANSWER_BYTES_MAX,
    POLICIES_BYTES_MAX,
    QUERY,
    Question,
    Reply,
    failure_of,
    require_length,
    too_large,
)
from agent_runtime_ref.policy.opa_server.server import OpaServer

__all__ = ["Wire"]


class Wire:
    """Asks through `OpaClient`. Thread-safe: at most `connections` callers at a time, the others wait."""

    def __init__(self, server: OpaServer) -> None:
        self.connections = Connections()
        self._client: Any = _client(server)
        self._session: _Session = self._client._session

    def decision(self, package: str, question: Question) -> Any:
        """Return what the server answers to a question about `package`.decision."""
        return self._client.query_rule(question, package, "decision", QUERY)

    def fetched(self, path: str, call: Call) -> Any:
        """Return what the server tells at `path`, below /v1."""
        reply = self._session.fetch(f"{self._client.root_url}/{path}", call)
        reply.raise_for_status()
        return reply.json()

    def close(self) -> None:
        """Close every connection; one that is in use when its call ends."""
        self._client.close_connection()


def _client(server: OpaServer) -> OpaClient:
    """Return the client, made with our session in place of its own."""

    class Client(OpaClient):  # type: ignore[misc]
        def _init_session(self) -> requests.Session:
            return _Session(server)

    address = server.address
    return Client(host=address.host, port=address.port, ssl=address.secure, retries=0)


class _Session(requests.Session):
    """What the client posts to."""

    def __init__(self, server: OpaServer) -> None:
        super().__init__()
        # What `post` below does not use is closed as well, should the client ever use it.
        self.trust_env = False
        self.max_redirects = 0
        adapter = HTTPAdapter(max_retries=0)
        tls = {} if server.tls is None else {"ssl_context": server.tls}
        adapter.init_poolmanager(1, server.connections, block=True, **tls)
        self.mount("http://", adapter)
        self.mount("https://", adapter)
        self._headers = {
            **server.headers,
            "User-Agent": f"{server.headers['User-Agent']} python-requests/{requests.__version__}",
        }
        if server.tls is not None:
            server.tls.sslsocket_class = DeadlineTLSSocket
        self._address = address = server.address
        manager = adapter.poolmanager
        manager.pool_classes_by_scheme = {"http": _Pool, "https": _TLSPool}
        self._pool = manager.connection_from_host(address.host.strip("[]"), address.port, address.scheme)
        self._root = len(str(address))

    def post(self, url: Any, data: Any = None, json: Any = None, **_: Any) -> Any:
        """Send the client's question, which is JSON already, and return the reply."""
        question: Question = json["input"]
        return self._called("POST", url, question.body, question.call, ANSWER_BYTES_MAX)

    def fetch(self, url: str, call: Call) -> Reply:
        """Return what the server says of itself at `url`."""
        return self._called("GET", url, None, call, POLICIES_BYTES_MAX)

    def _called(self, method: str, url: str, body: bytes | None, call: Call, bytes_max: int) -> Reply:
        with Within(call):
            try:
                return self._exchanged(method, url, body, call.require(), bytes_max)
            except EngineFailureError:
                raise
            except Exception as error:
                # A torn connection shows as a ValueError or AttributeError of `http.client`, too.
                raise failure_of(error, call, self._address, no_http=_is_no_http(error)) from error

    def _exchanged(self, method: str, url: str, body: bytes | None, left: float, bytes_max: int) -> Reply:
        response = self._pool.urlopen(
            method, url[self._root :], body, self._headers, retries=False, redirect=False,
            assert_same_host=False, timeout=left, pool_timeout=left, preload_content=False,
            decode_content=False,
        )  # fmt: skip
        whole = False
        try:
            # After another status more may come, as what a 103 announces: it must not be taken
            # for the next one. Reading on would have the connection back in the pool.
            if response.status != 200:
                return Reply(response.status, b"")
            require_length(response.headers, bytes_max)
            answer = part = response.read(bytes_max + 1, decode_content=False)
            # Only an empty read tells the end from a body cut short, unless its length was announced and met.
            while part and response.length_remaining != 0 and len(answer) <= bytes_max:
                part = response.read(bytes_max + 1 - len(answer), decode_content=False)
                answer += part
            if len(answer) > bytes_max:
                raise too_large(bytes_max)
            whole = True
            return Reply(response.status, answer)
        finally:
            if not whole:
                response.close()  # what is still to come must not become the answer to the next question
            response.release_conn()


class _Connection(HTTPConnection):
    """A connection whose waits end with the deadline of the call that uses it."""

    def _new_conn(self) -> Any:
        return connected(self._dns_host, self.port, self.socket_options)


class _TLSConnection(HTTPSConnection):
    """The same over TLS; the context makes its sockets."""

    def _new_conn(self) -> Any:
        return connected(self._dns_host, self.port, self.socket_options)


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TLSPool(HTTPSConnectionPool):
    ConnectionCls = _TLSConnection


def _is_no_http(error: BaseException) -> bool:
    """Tell whether the server answered with something that is no HTTP, rather than not at all."""
    if isinstance(error, InvalidHeader):  # as two lengths that differ
        return True
    said = error.args[-1] if isinstance(error, ProtocolError) and error.args else error
    silent = (http.client.RemoteDisconnected, http.client.IncompleteRead, ConnectionError)
    return isinstance(said, http.client.HTTPException) and not isinstance(said, silent)
