"""The decision log of a real OPA server, as it uploads it, read by our commands."""

from __future__ import annotations

import json
import queue
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agent_runtime_ref.resources import policies_path
from tests.acceptance.command import WHO, Command, file_of, question
from tests.opa import OpaProcess, require_opa
from tests.support import read_log

MASK = """package system.log

import rego.v1

mask contains "/input/query/purpose"

mask contains {"op": "upsert", "path": "/input/caller/principal_id", "value": "***"}
"""


@pytest.fixture
def uploads() -> Iterator[tuple[str, queue.Queue[bytes]]]:
    """The address of a service that takes decision logs, and what it has taken."""
    taken: queue.Queue[bytes] = queue.Queue()

    class Service(BaseHTTPRequestHandler):
        """Keeps the bodies that are sent to it."""

        def do_POST(self) -> None:
            """Take one upload."""
            taken.put(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", taken
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_upload_of_a_real_server_is_read(
    command: Command, tmp_path: Path, uploads: tuple[str, queue.Queue[bytes]]
) -> None:
    """A packed list; what OPA's own mask left out is named, and the decision is ours to show."""
    require_opa()
    address, taken = uploads
    log = tmp_path / "own.jsonl"
    command("read", "--query", file_of(tmp_path / "q.yaml", question()), *WHO, "--log", log)
    asked = next(one for one in read_log(log) if one.gate == "read")
    mask = tmp_path / "mask" / "system" / "log"
    mask.mkdir(parents=True)
    (mask / "mask.rego").write_text(MASK)
    (tmp_path / "mask" / ".manifest").write_text('{"roots": ["system"], "rego_version": 1}')
    settings = (
        f"services.here.url={address}",
        "decision_logs.service=here",
        "decision_logs.reporting.min_delay_seconds=1",
        "decision_logs.reporting.max_delay_seconds=1",
    )
    words = [word for one in settings for word in ("--set", one)]
    with OpaProcess(*words, "--bundle", policies_path(), tmp_path / "mask") as server:
        request = urllib.request.Request(
            f"{server.url}/v1/data/memory/read/decision",
            data=json.dumps({"input": dict(asked.input)}).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert json.load(answer)["result"]["allow"] is True
        upload = tmp_path / "upload.json.gz"
        upload.write_bytes(taken.get(timeout=30))

    (logged,) = read_log(upload)
    shown = command("trace", "inspect", "--log", upload)
    assert upload.read_bytes()[:2] == b"\x1f\x8b"
    assert (logged.own, logged.gate, logged.path) == (False, "read", asked.path)
    assert (logged.erased, logged.masked) == (("/input/query/purpose",), ("/input/caller/principal_id",))
    assert {**logged.input, "caller": None, "query": None} == {**asked.input, "caller": None, "query": None}
    assert (shown.code, shown.err) == (0, "")
    assert "search: allow" in shown.out
    assert "erased: /input/query/purpose" in shown.out
