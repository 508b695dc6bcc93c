"""Asks an OPA server directly, without the client that the package uses: what OPA itself says is compared."""

from __future__ import annotations

import http.client
import json
from queue import Empty, SimpleQueue
from typing import Any


class Opa:
    """A server on loopback; safe to ask from any thread. A context manager that closes its connections."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: SimpleQueue[http.client.HTTPConnection] = SimpleQueue()

    def decision(self, entrypoint: str, text: str) -> Any:
        """Return the decision document for an input document; None where it is undefined or an error."""
        path = f"/v1/data/{entrypoint.replace('.', '/')}/decision"
        status, answer = self._answer("POST", path, '{"input":' + text + "}")
        return answer.get("result") if status == 200 and isinstance(answer, dict) else None

    def version(self) -> str:
        """Return the version that the server says it is of."""
        _, answer = self._answer("GET", "/v1/config", None)
        version: str = answer["result"]["labels"]["version"]
        return version

    def _answer(self, method: str, path: str, body: str | None) -> tuple[int, Any]:
        try:
            connection = self._idle.get_nowait()
        except Empty:
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        payload = None if body is None else body.encode("utf-8")
        try:
            connection.request(method, path, payload, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.status, json.loads(response.read())
        except BaseException:
            connection.close()
            raise
        self._idle.put(connection)
        return answer

    def __enter__(self) -> Opa:
        return self

    def __exit__(self, *_: object) -> None:
        while not self._idle.empty():
            self._idle.get_nowait().close()
