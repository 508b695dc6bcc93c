"""What the client of a policy server keeps to: bounds, deadlines, no detours, no leftovers."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import EngineFailureError, GovernedMemory
from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.policy.engines import open_engine
from agent_runtime_ref.policy.input_bounds import CANDIDATES_MAX, INPUT_BYTES_MAX
from agent_runtime_ref.policy.opa_server import OpaSettings
from tests.acceptance.opa_faults.refusing import (
    DEADLINE_MS,
    PATIENT_MS,
    PERMITTED,
    as_asked,
    asks,
    good,
    refusal,
    refusals,
)
from tests.fault_server import (
    FaultServer,
    answer,
    late,
    saying,
)

PATIENT = OpaSettings(deadline_ms=PATIENT_MS)


@pytest.fixture
def permitted(bundle: Bundle) -> Iterator[FaultServer]:
    """A server that permits every read and finds nothing wrong."""
    with FaultServer(saying(good()), bundle) as server:
        yield server


@pytest.mark.parametrize("size", [INPUT_BYTES_MAX + 1, None], ids=["bytes", "candidates"])
def test_the_bounds_of_the_embedded_engine_hold(
    asking: str, permitted: FaultServer, bundle: Bundle, size: int | None
) -> None:
    """What is too much for one engine is too much for the other, and is not sent."""
    document = "x" * size if size else json.dumps({"candidates": [0] * (CANDIDATES_MAX + 1)})
    engine = open_engine(permitted.engine, bundle, opa=PATIENT)
    with pytest.raises(EngineFailureError) as caught:
        as_asked(engine, document, asking)
    engine.close()

    assert (caught.value.reason, permitted.posts()) == ("input_too_large", 0)


def test_a_name_is_looked_up_within_the_deadline(
    asking: str, permitted: FaultServer, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name leads to the server; one whose lookup hangs is a timeout."""
    named = f"opa:http://localhost:{permitted.port}"
    engine = open_engine(named, bundle, opa=PATIENT)
    found = as_asked(engine, "{}", asking)
    engine.close()
    look_up = socket.getaddrinfo

    def slow(*arguments: Any, **options: Any) -> Any:
        time.sleep(3)
        return look_up(*arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    engine = open_engine(named, bundle, opa=OpaSettings(deadline_ms=DEADLINE_MS))
    late_one = refusal(lambda: as_asked(engine, "{}", asking))
    engine.close()

    assert (found, late_one.reason) == (PERMITTED, "engine_timeout")


@pytest.mark.parametrize(
    "status", ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent"]
)
def test_a_redirect_is_not_followed(
    status: str, asking: str, kept: str, bundle: Bundle, tmp_path: Path
) -> None:
    """No other server is asked, however much it would permit."""
    with FaultServer(saying(good()), bundle) as other:
        moved = f"Location: http://127.0.0.1:{other.port}/v1/data/memory/read/decision\r\n"
        with FaultServer(saying(answer({}, status=status, headers=moved)), bundle) as server:
            found = refusals(kept, server.engine, asking, tmp_path / "trace.jsonl")

    assert [one.reason for one in found] == ["engine_http_error"] * 2
    assert other.heads == []


def read_once(engine: str, asking: str, monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    """Read from an empty store through `engine`, with a token."""
    monkeypatch.setenv("AGENT_RUNTIME_OPA_TOKEN", token)
    memory = GovernedMemory.open("memory:", engine=engine, opa=PATIENT)
    asks(memory, asking)[0]()
    memory.close()


def test_the_environment_sends_nobody_elsewhere(
    permitted: FaultServer, asking: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither proxy variables nor ~/.netrc change who is asked or what is sent."""
    with FaultServer(saying(good())) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        (tmp_path / ".netrc").write_text("machine 127.0.0.1 login mallory password wrong\n")
        (tmp_path / ".netrc").chmod(0o600)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))

        read_once(permitted.engine, asking, monkeypatch, "s3cret")

    assert proxy.heads == []
    assert all(b"\r\nAuthorization: Bearer s3cret" in head for head in permitted.heads)


def test_each_caller_has_the_client_of_its_kind(
    permitted: FaultServer, asking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads ask through the client over requests, tasks through the one over aiohttp."""
    read_once(permitted.engine, asking, monkeypatch, "s3cret")

    library = {"threads": b" python-requests/", "asyncio": b" aiohttp/"}[asking]
    asked = [head for head in permitted.heads if head.startswith(b"POST ")]
    assert asked
    assert all(library in head for head in asked)


def test_what_is_sent_is_the_document_as_the_gate_made_it(
    asking: str, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The input goes out once, as JSON, with nothing beside it."""
    bodies: list[Any] = []

    def behave(visitor: socket.socket, body: bytes) -> None:
        bodies.append(json.loads(body))
        visitor.sendall(good())

    with FaultServer(behave, bundle) as server:
        read_once(server.engine, asking, monkeypatch, "s3cret")

    assert [set(body) for body in bodies] == [{"input"}]
    assert bodies[0]["input"]["query"]["purpose"] == "answer_generation"


def test_cookies_are_not_kept(asking: str, bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server cannot mark who asks it."""
    head, _, body = good().partition(b"\r\n\r\n")
    with FaultServer(saying(head + b"\r\nSet-Cookie: who=you\r\n\r\n" + body), bundle) as server:
        memory = GovernedMemory.open("memory:", engine=server.engine, opa=PATIENT)
        ask = asks(memory, asking)[0]
        ask()
        ask()
        memory.close()

    assert server.posts() == 2
    assert not any(b"cookie" in sent.lower() for sent in server.heads)


def test_more_callers_than_connections_wait_within_their_deadline(bundle: Bundle) -> None:
    """One connection, held by a slow answer: the others wait for it, but no longer than they may."""
    with FaultServer(late(good(), 1.5), bundle) as server:
        engine = open_engine(server.engine, bundle, opa=OpaSettings(deadline_ms=DEADLINE_MS, connections=1))
        found: list[EngineFailureError] = []
        threads = [
            threading.Thread(
                target=lambda: found.append(
                    refusal(lambda: engine.evaluate("memory.read", '{"candidates":[]}'))
                )
            )
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        engine.close()

    assert [one.reason for one in found] == ["engine_timeout"] * 4


def test_a_breaker_spares_a_server_that_fails(asking: str, kept: str, bundle: Bundle) -> None:
    """After five failures running nobody is kept waiting; after a pause one question finds it well again."""
    with FaultServer(saying(answer({}, status="503 Service Unavailable")), bundle) as server:
        memory = GovernedMemory.open(kept, engine=server.engine, opa=PATIENT)
        ask = asks(memory, asking)[0]
        reasons = []
        for _ in range(12):
            with pytest.raises(EngineFailureError) as caught:
                ask()
            reasons.append(caught.value.reason)
        posts = server.posts()
        server.behaviour = saying(good())
        time.sleep(1.1)
        ask()
        memory.close()

    assert reasons[:5] == ["engine_http_error"] * 5
    assert "engine_breaker_open" in reasons  # where the machine is slow, a probe comes between
    assert posts == reasons.count("engine_http_error")


def test_a_long_list_of_policies_is_read_to_its_end(
    asking: str, permitted: FaultServer, bundle: Bundle
) -> None:
    """Comparing may take longer than a decision may: those are refused in time, and it is not begun anew."""
    permitted.slow_seconds = 3 * DEADLINE_MS / 1000
    engine = open_engine(permitted.engine, bundle, opa=OpaSettings(deadline_ms=DEADLINE_MS))
    reasons = {refusal(lambda: as_asked(engine, "{}", asking)).reason}
    end = time.monotonic() + 20
    found: object = None
    while found is None and time.monotonic() < end:
        try:
            found = as_asked(engine, "{}", asking)
        except EngineFailureError as failure:
            reasons.add(failure.reason)
    engine.close()

    assert found == PERMITTED
    assert reasons <= {"engine_timeout", "engine_breaker_open"}


def test_a_closed_engine_refuses(asking: str, permitted: FaultServer, kept: str) -> None:
    """What was opened and closed neither asks nor allows."""
    memory = GovernedMemory.open(kept, engine=permitted.engine, opa=PATIENT)
    ask = asks(memory, asking)[0]
    ask()
    posts = permitted.posts()
    memory._gates.recorder._engine.close()

    found = refusal(ask)
    memory.close()

    assert (found.reason, permitted.posts()) == ("engine_exception", posts)
