"""An OTLP/HTTP receiver on loopback that keeps what it gets, and answers as a test says."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)

PROTOBUF = "application/x-protobuf"


class Response(NamedTuple):
    """What is answered to a batch, and whether the batch is kept."""

    status: int = 200
    body: bytes = b""
    kept: bool = True
    content_type: str = PROTOBUF
    retry_after: str | None = None


TAKEN = Response()
Decide = Callable[[list[dict[str, Any]]], Response]


def refused(status: int) -> Response:
    """An answer by which nothing was kept."""
    return Response(status, kept=False)


def partly(rejected: int, message: str = "") -> Response:
    """An answer by which some records were rejected."""
    answer = ExportLogsServiceResponse()
    answer.partial_success.rejected_log_records = rejected
    answer.partial_success.error_message = message
    return Response(200, answer.SerializeToString())


class Receiver:
    """The receiver; a context manager. `decide` gives the answer to a batch of log records."""

    def __init__(self, decide: Decide = lambda _: TAKEN) -> None:
        self.decide = decide
        self.lines: list[str] = []  # what was kept, as a collector's file exporter writes it
        self.batches: list[list[str]] = []  # the event ids of every request, kept or not
        self.headers: list[dict[str, str]] = []
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, body: bytes, headers: dict[str, str]) -> Response:
        """Keep a request, or not."""
        request = ExportLogsServiceRequest.FromString(body)
        document = MessageToDict(request)
        records = records_of([json.dumps(document)])
        self.headers.append(headers)
        self.batches.append([event_id(record) for record in records])
        response = self.decide(records)
        if response.kept:
            self.lines.append(json.dumps(document))
        return response

    def __enter__(self) -> Receiver:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def records_of(lines: Sequence[str]) -> list[dict[str, Any]]:
    """Return the log records in OTLP/JSON lines, in their order."""
    return [
        record
        for line in lines
        for resource in json.loads(line)["resourceLogs"]
        for scope in resource["scopeLogs"]
        for record in scope["logRecords"]
    ]


def attribute(record: dict[str, Any], name: str) -> Any:
    """Return the value of an attribute; None where there is none."""
    values = [one["value"] for one in record["attributes"] if one["key"] == name]
    return next(iter(values[0].values())) if values else None


def event_id(record: dict[str, Any]) -> str:
    """Return the id of the event that a record carries."""
    return str(attribute(record, "agent_memory.event_id"))


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is not the server's mistake."""


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            response = Response(404, kept=False)
            if self.path == "/v1/logs":
                response = receiver.take(body, dict(self.headers))
            self.send_response(response.status)
            self.send_header("content-type", response.content_type)
            if response.retry_after is not None:
                self.send_header("retry-after", response.retry_after)
            self.send_header("content-length", str(len(response.body)))
            self.end_headers()
            self.wfile.write(response.body)

        def log_message(self, *_: Any) -> None:
            """The test looks at what was kept."""

    return Handler
