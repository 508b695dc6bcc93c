"""Asks an OPA server directly, without the client that the package uses: what OPA itself says is compared."""

from __future__ import annotations

import http.client
import json
import threading
from typing import Any


class Opa:
    """A server on loopback; safe to ask from any thread, each has a connection of its own."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._own = threading.local()

    def decision(self, entrypoint: str, text: str) -> Any:
        """Return the decision document for an input document; None where it is undefined or an error."""
        path = f"/v1/data/{entrypoint.replace('.', '/')}/decision"
        status, answer = self._answer("POST", path, '{"input":' + text + "}")
        return answer.get("result") if status == 200 and isinstance(answer, dict) else None

    def version(self) -> str:
        """Return the version that the server says it is of."""
        _, answer = self._answer("GET", "/v1/config", None)
        labels: dict[str, str] = answer["result"]["labels"]
        return labels["version"]

    def _answer(self, method: str, path: str, body: str | None) -> tuple[int, Any]:
        connection = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = http.client.HTTPConnection(
                "127.0.0.1", self._port, timeout=60
            )
        payload = None if body is None else body.encode("utf-8")
        connection.request(method, path, payload, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
