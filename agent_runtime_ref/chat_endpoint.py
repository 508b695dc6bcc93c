"""A question to an OpenAI-compatible endpoint: one deadline, and an answer that is bounded and looked at.

No proxy and no `~/.netrc` is looked for and no redirect is followed: what is sent holds what people said, and
goes to the address that was configured or nowhere. Whatever comes back is somebody else's JSON.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from agent_runtime_ref.errors import ModelError, UsageError
from agent_runtime_ref.web_address import endpoint_shown, origin_of

__all__ = ["ANSWER_BYTES_MAX", "ChatEndpoint"]

ANSWER_BYTES_MAX = 1 << 20
_PATH = "/chat/completions"
_LOOPBACK = ("127.0.0.1", "[::1]", "localhost")
_AGAIN = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True)
class ChatEndpoint:
    """Where chat completions come from. Thread-safe.

    Raises:
        UsageError: `url` is no address of a server, the key cannot stand in a header, or it would travel
            unencrypted to another machine.
    """

    url: str  # such as http://127.0.0.1:8000/v1
    model: str
    key: str | None = field(default=None, repr=False)
    timeout_seconds: float = 30.0  # for all attempts together
    attempts: int = 2
    setting: str | None = None  # that named it, for an error; the address itself may hold a password

    def __post_init__(self) -> None:
        parts = self._address
        if parts.scheme not in ("http", "https") or not parts.host or parts.auth or parts.query:
            raise self._no_address()
        if self.key is not None and not (self.key.isascii() and self.key.isprintable()):
            raise UsageError("the key of the endpoint holds characters that no header can bear")
        if self.key is not None and parts.scheme != "https" and parts.host not in _LOOPBACK:
            shown = endpoint_shown(self.url, self.setting)
            raise UsageError(f"{shown} would be sent its key unencrypted; use https")

    def message(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> Mapping[str, Any]:
        """Return the message of the first choice; `options` go into the request as they are.

        Raises:
            ModelError: there is none in time, or what came back is no chat completion.
        """
        body = {"model": self.model, "messages": list(messages), "stream": False, **options}
        answer = self._exchanged(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
        try:
            document = json.loads(answer)
            message = document["choices"][0]["message"]
        except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
            raise ModelError("malformed", "the answer is no chat completion") from error
        if not isinstance(message, dict):
            raise ModelError("malformed", "the message is no object")
        return message

    @cached_property
    def _address(self) -> Any:
        from urllib3.exceptions import LocationParseError
        from urllib3.util import parse_url

        try:
            return parse_url(self.url)
        except LocationParseError:  # which quotes the address
            raise self._no_address() from None

    def _no_address(self) -> UsageError:
        shown = endpoint_shown(self.url, self.setting)
        problem = "is no address such as http://127.0.0.1:8000/v1, without a user or a query"
        return UsageError(f"{shown} {problem}")

    @cached_property
    def _pool(self) -> Any:
        """The connections; their sockets keep to the deadline of the call that uses them."""
        from urllib3.connection import HTTPConnection, HTTPSConnection
        from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

        from agent_runtime_ref.policy.opa_server.calls import DeadlineTLSSocket, connected

        def new_connection(self: Any) -> Any:
            return connected(self._dns_host, self.port, self.socket_options)

        secure = self._address.scheme == "https"
        base, kind = (
            (HTTPSConnectionPool, HTTPSConnection) if secure else (HTTPConnectionPool, HTTPConnection)
        )
        connection = type("_Connection", (kind,), {"_new_conn": new_connection})
        pool = type("_Pool", (base,), {"ConnectionCls": connection})
        options: dict[str, Any] = {}
        if secure:
            context = ssl.create_default_context()
            context.sslsocket_class = DeadlineTLSSocket
            options["ssl_context"] = context
        port = self._address.port or (443 if secure else 80)
        return pool(self._address.host.strip("[]"), port, maxsize=8, block=False, **options)

    def _exchanged(self, body: bytes) -> bytes:
        from urllib3.exceptions import HTTPError

        from agent_runtime_ref.policy.opa_server.calls import Call, Connections, Within

        call = Call(self.timeout_seconds, Connections())
        waited = self._told(f"no answer within {self.timeout_seconds:g} s")
        failure = ModelError("timeout", waited)
        for _ in range(self.attempts):
            if call.left <= 0:
                break
            try:
                with Within(call):
                    return self._once(body, call.left)
            except ModelError as error:
                failure = error
                if error.reason != "refused" or int(error.detail.rpartition(" ")[2]) not in _AGAIN:
                    raise
            except (HTTPError, OSError, ValueError, AttributeError) as error:
                # A torn connection shows as a ValueError or AttributeError of `http.client`, too.
                late = call.left <= 0
                # What urllib3 wraps says more: ConnectionRefusedError.
                inner = next((one for one in error.args if isinstance(one, OSError)), error)
                problem = waited if late else self._told(type(inner).__name__)
                failure = ModelError("timeout" if late else "unreachable", problem)
        raise failure

    def _told(self, problem: str) -> str:
        """Return a problem with scheme, host and port of who was asked, as far as these may be shown."""
        origin = origin_of(self.url)
        return problem if origin is None else f"{problem}, from {origin}"

    def _once(self, body: bytes, left: float) -> bytes:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        path = (self._address.path or "").rstrip("/") + _PATH
        response = self._pool.urlopen(
            "POST", path, body, headers, retries=False, redirect=False, timeout=left, preload_content=False,
            decode_content=False,
        )  # fmt: skip
        try:
            if response.status != 200:
                raise ModelError("refused", f"status {response.status}")
            answer: bytes = response.read(ANSWER_BYTES_MAX + 1)
            if len(answer) > ANSWER_BYTES_MAX:
                raise ModelError("too_large", f"more than {ANSWER_BYTES_MAX} bytes")
            return answer
        finally:
            response.close()
