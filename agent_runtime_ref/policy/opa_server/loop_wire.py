"""The client for asyncio: `AsyncOpaClient` of opa-python-client on an event loop of our own.

Gates of `AsyncGovernedMemory` run on threads and hand their questions to this loop, where one client asks
them side by side. The loop is not the application's: what holds that one up holds up no decision, and
sockets are given back by `close`, whichever loop is running then.

The client's own `_request` follows redirects, tries a POST again and knows no authority but the machine's.
It is replaced by one that does none of it, ends at the deadline and reads no more than an answer may have.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from opa_client import AsyncOpaClient

from agent_runtime_ref.errors import EngineFailureError
from agent_runtime_ref.policy.opa_server.calls import Call, Connections
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

__all__ = ["LoopWire"]

_CHUNK = 64 * 1024
_STOP_SECONDS = 2.0


class LoopWire:
    """Asks through `AsyncOpaClient` on a thread of its own. Safe to call from any other thread."""

    def __init__(self, server: OpaServer) -> None:
        self.connections = Connections()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="opa-loop", daemon=True)
        self._thread.start()
        self._address = address = server.address
        self._client: Any = _Client(host=address.host, port=address.port, ssl=address.secure, retries=0)
        self._client.server = server
        self._run(self._client.__aenter__(), Call(_STOP_SECONDS, self.connections))

    def decision(self, package: str, question: Question) -> Any:
        """Return what the server answers to a question about `package`.decision."""
        asked = self._client.query_rule(question, package, "decision", QUERY)
        return self._run(asked, question.call)

    def fetched(self, path: str, call: Call) -> Any:
        """Return what the server tells at `path`, below /v1."""
        return self._run(self._client.fetched(path, call), call)

    def close(self) -> None:
        """Close every connection and end the loop; questions under way are refused."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._ended(), self._loop)
        # A finalizer may run on any thread, the loop's own among them; that one ends after it.
        if threading.current_thread() is not self._thread:
            self._thread.join(_STOP_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()

    async def _ended(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._client.close_connection()
        self._loop.stop()

    def _run(self, work: Coroutine[Any, Any, Any], call: Call) -> Any:
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError as error:  # closed meanwhile
            work.close()
            raise EngineFailureError("engine_exception", "the engine is closed") from error
        try:
            # The client's own timeout is the same instant; this one holds where its loop is held up.
            return future.result(max(call.left, 0))
        except EngineFailureError:
            raise
        except concurrent.futures.CancelledError as error:
            raise EngineFailureError("engine_exception", "the engine was closed meanwhile") from error
        except (TimeoutError, concurrent.futures.TimeoutError) as error:
            future.cancel()
            raise call.passed() from error
        except Exception as error:  # whatever the library raised, there is no answer
            raise failure_of(error, call, self._address, no_http=_is_no_http(error)) from error


class _Client(AsyncOpaClient):  # type: ignore[misc]
    """The client with a session and a way to ask that we answer for."""

    server: OpaServer

    async def _init_session(self) -> None:
        server = self.server
        self._connector = aiohttp.TCPConnector(
            limit=server.connections, ssl=True if server.tls is None else server.tls
        )
        agent = f"{server.headers['User-Agent']} aiohttp/{aiohttp.__version__}"
        self._session = aiohttp.ClientSession(
            headers={**server.headers, "User-Agent": agent},
            connector=self._connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            trace_configs=[_telling_connections()],
            response_class=_Response,
        )

    @asynccontextmanager
    async def _request(self, method: str, url: str, **given: Any) -> AsyncIterator[Reply]:
        question: Question = given["json"]["input"]
        yield await self._called(method, url, question.body, question.call, ANSWER_BYTES_MAX)

    async def fetched(self, path: str, call: Call) -> Any:
        """Return what the server tells at `path`, below /v1."""
        url = f"{self.root_url}/{path}"
        reply = await self._called("GET", url, None, call, POLICIES_BYTES_MAX)
        reply.raise_for_status()
        return await reply.json()

    async def _called(
        self, method: str, url: str, body: bytes | None, call: Call, bytes_max: int
    ) -> _AwaitedReply:
        timeout = aiohttp.ClientTimeout(total=call.require())
        async with self._session.request(
            method, url, data=body, allow_redirects=False, timeout=timeout, trace_request_ctx=call
        ) as response:
            if response.status != 200:
                return _AwaitedReply(response.status, b"")
            require_length(response.headers, bytes_max)
            answer = bytearray()
            async for part in response.content.iter_chunked(_CHUNK):
                answer += part
                if len(answer) > bytes_max:
                    response.close()
                    raise too_large(bytes_max)
            return _AwaitedReply(response.status, bytes(answer))


def _telling_connections() -> aiohttp.TraceConfig:
    """Return what makes a call know of each connection that it made."""

    async def made(_session: Any, context: Any, _about: Any) -> None:
        context.trace_request_ctx.connected()

    traced = aiohttp.TraceConfig()
    traced.on_connection_create_end.append(made)
    return traced


class _Response(aiohttp.ClientResponse):
    """A response whose connection is asked again after a status of 200 only.

    After another one more may come, such as a body after a 204: it would be taken for the next answer. The
    library has such a connection back in its pool before anybody sees the response.
    """

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        """Read status and headers."""
        protocol = connection.protocol
        started = await super().start(connection)
        if self.status != 200 and protocol is not None:
            protocol.close()
        return started


class _AwaitedReply(Reply):
    """A reply as the asynchronous client expects it."""

    async def json(self) -> Any:
        """Return the value of the body."""
        return Reply.json(self)


def _is_no_http(error: BaseException) -> bool:
    """Tell whether the server answered with something that is no HTTP, rather than not at all."""
    return isinstance(error, aiohttp.ClientResponseError)
