"""A policy server that does what it must not: each time a refusal with its own reason, in time."""

from __future__ import annotations

import gzip
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.policy.engines import open_engine
from agent_runtime_ref.policy.input_bounds import INPUT_BYTES_MAX
from agent_runtime_ref.policy.opa_server import OpaBundle, OpaSettings
from agent_runtime_ref.policy.opa_server.replies import ANSWER_BYTES_MAX
from tests.acceptance.opa_faults.refusing import (
    BUNDLE,
    DEADLINE_MS,
    PATIENT_MS,
    as_asked,
    good,
    refusal,
    refusals,
)
from tests.fault_server import (
    FaultServer,
    answer,
    dripping,
    ending,
    endless,
    late,
    provenance,
    saying,
)
from tests.opa import free_port

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


PACKED = gzip.compress(good().partition(b"\r\n\r\n")[2])


FAULTS: dict[str, tuple[str, Any]] = {
    "HTTP 500": ("engine_http_error", saying(answer(good(), status="500 Internal Server Error"))),
    "HTTP 503": ("engine_http_error", saying(answer(good(), status="503 Service Unavailable"))),
    "HTTP 401": ("engine_http_error", saying(answer({}, status="401 Unauthorized"))),
    "HTTP 204": ("engine_http_error", saying(b"HTTP/1.1 204 No Content\r\n\r\n")),
    "no HTTP": ("engine_malformed", ending(b"\x00\x01 ready\r\n\r\n")),
    "no JSON": ("engine_malformed", saying(answer(b'{"result": '))),
    "HTML": ("engine_malformed", saying(answer(b"<html></html>", headers="Content-Type: text/html\r\n"))),
    "NaN": ("engine_malformed", saying(answer(b'{"result": {"allow": true, "plan": NaN}}'))),
    "not UTF-8": ("engine_malformed", saying(answer(b'{"result": "\xff"}'))),
    "deeply nested": ("engine_malformed", saying(answer(b"[" * 200_000))),
    "packed": ("engine_malformed", saying(answer(PACKED, headers="Content-Encoding: gzip\r\n"))),
    "undefined": ("engine_undefined", saying(answer({"provenance": provenance(BUNDLE)}))),
    "a list": ("engine_wrong_type", saying(answer([True]))),
    "a list as result": ("engine_wrong_type", saying(good([True]))),
    "a text as result": ("engine_wrong_type", saying(good("<undefined>"))),
    "another shape": ("engine_wrong_type", saying(good({"allow": True}))),
    "null as result": ("engine_wrong_type", saying(good(result=None))),
    "no provenance": ("bundle_mismatch", saying(good(provenance=None))),
    "other revision": (
        "bundle_mismatch",
        saying(good(provenance={"bundles": {"memory": {"revision": "0.0.1"}}})),
    ),
    "huge, announced": (
        "engine_answer_too_large",
        endless(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (ANSWER_BYTES_MAX + 1), b" " * 65536),
    ),
    "huge, in chunks": ("engine_answer_too_large", endless(CHUNKED, b"10000\r\n" + b" " * 65536 + b"\r\n")),
    "slow": ("engine_timeout", late(good(), 3)),
    "dripping head": ("engine_timeout", dripping(good())),
    "dripping body": ("engine_timeout", dripping(good(), start=len(good()) - 60)),
    "hanging": ("engine_timeout", saying(b"")),
    "hanging after the head": ("engine_timeout", saying(good()[:60])),
    "ended without an answer": ("engine_unreachable", ending(b"")),
    "ended in the middle": ("engine_unreachable", ending(good()[:-20])),
}  # fmt: skip


def allowed(reason: str) -> int:
    """Return the deadline, in milliseconds, of a fault that is to be refused for `reason`."""
    return DEADLINE_MS if reason == "engine_timeout" else PATIENT_MS


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_answer_is_a_refusal(
    fault: str, asking: str, kept: str, bundle: Bundle, tmp_path: Path
) -> None:
    """Whatever the server does, nothing is read or written, and the event says what it did."""
    reason, behaviour = FAULTS[fault]

    with FaultServer(behaviour, bundle) as server:
        found = refusals(kept, server.engine, asking, tmp_path / "trace.jsonl", deadline_ms=allowed(reason))
        posts = server.posts()

    assert [one.reason for one in found] == [reason, reason]
    # Nothing is tried twice; on a busy machine the deadline may pass before the question is sent.
    assert posts == 2 or (reason == "engine_timeout" and posts < 2)


@pytest.mark.parametrize("fault", ["HTTP 500", "no HTTP", "HTML", "dripping head", "hanging"])
def test_a_server_that_cannot_prove_its_policies_is_not_asked(
    fault: str, asking: str, kept: str, tmp_path: Path
) -> None:
    """A fault while the policies are compared is the same refusal, and no question is sent."""
    reason, behaviour = FAULTS[fault]

    with FaultServer(behaviour) as server:
        found = refusals(kept, server.engine, asking, tmp_path / "trace.jsonl", deadline_ms=allowed(reason))
        posts = server.posts()

    assert [one.reason for one in found] == [reason, reason]
    assert posts == 0


def test_a_closed_port_is_a_refusal(asking: str, kept: str, tmp_path: Path) -> None:
    """Nobody listens: the memory opens, and refuses."""
    found = refusals(kept, f"opa:http://127.0.0.1:{free_port()}", asking, tmp_path / "trace.jsonl")

    assert [one.reason for one in found] == ["engine_unreachable"] * 2


def test_a_listener_that_never_accepts_is_a_refusal(asking: str, kept: str, tmp_path: Path) -> None:
    """A full backlog leaves connecting itself without an answer."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        engine = f"opa:http://127.0.0.1:{port}"
        found = refusals(kept, engine, asking, tmp_path / "trace.jsonl", deadline_ms=DEADLINE_MS)
        for one in waiting:
            one.close()

    assert [one.reason for one in found] == ["engine_timeout"] * 2


def test_a_server_that_does_not_read_is_a_refusal(asking: str, bundle: Bundle) -> None:
    """Sending ends with the deadline as well as reading does."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        settings = OpaSettings(deadline_ms=DEADLINE_MS, bundle=OpaBundle(check="none"))
        engine = open_engine(f"opa:http://127.0.0.1:{listener.getsockname()[1]}", bundle, opa=settings)
        document = json.dumps({"candidates": [], "filling": "x" * (INPUT_BYTES_MAX - 100)})
        found = refusal(lambda: as_asked(engine, document, asking))
        engine.close()

    assert found.reason == "engine_timeout"
