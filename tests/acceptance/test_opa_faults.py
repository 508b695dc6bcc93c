"""A policy server that does what it must not: each time a refusal with its own reason, in time."""

from __future__ import annotations

import asyncio
import contextvars
import gzip
import json
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import AsyncGovernedMemory, EngineFailureError, GovernedMemory
from agent_runtime_ref.policy.bundle import Bundle, load_bundle
from agent_runtime_ref.policy.engine import ASYNC_CALLER, PolicyEngine
from agent_runtime_ref.policy.engines import open_engine
from agent_runtime_ref.policy.input_bounds import CANDIDATES_MAX, INPUT_BYTES_MAX
from agent_runtime_ref.policy.opa_server import OpaBundle, OpaSettings
from agent_runtime_ref.policy.opa_server.replies import ANSWER_BYTES_MAX
from agent_runtime_ref.resources import policies_path
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
from tests.support import caller, candidate, events, note, query

DEADLINE_MS = 400
PATIENT_MS = 10_000  # where an answer does come, a busy machine may take its time over it
PATIENT = OpaSettings(deadline_ms=PATIENT_MS)
# What a busy machine may add. That the deadline counts is told by the reason: each server that is late here
# answers in the end, or never.
SLACK_SECONDS = 10
BUNDLE = load_bundle()
Ask = Callable[[], object]


PERMITTED: dict[str, Any] = {
    "allow": True, "deny": [], "excluded": [], "admitted": [], "allowed": [0], "quarantine": [],
    "obligations": [], "plan": {"complete": True, "limit": 5, "clauses": []},
    "assign": [{"trust_level": "high", "retention": "long_term", "ttl_days": None}],
}  # fmt: skip


def good(result: Any = PERMITTED, **changes: Any) -> bytes:
    """Return what an OPA would say that permits everything: the answer that must not be believed."""
    return answer({"provenance": provenance(BUNDLE), "result": result} | changes)


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


@pytest.fixture(params=["threads", "asyncio"])
def asking(request: pytest.FixtureRequest) -> str:
    """Through which client the memory is used."""
    return str(request.param)


@pytest.fixture(scope="module", autouse=True)
def policies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The bundled policies as they are now, for every memory that is opened here."""
    folder = tmp_path_factory.mktemp("faults") / "policies"
    shutil.copytree(policies_path(), folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENT_RUNTIME_POLICIES", str(folder))
        yield folder


@pytest.fixture(scope="module")
def bundle(policies: Path) -> Bundle:
    """The policies that a server here pretends to run."""
    return load_bundle(policies)


@pytest.fixture
def permitted(bundle: Bundle) -> Iterator[FaultServer]:
    """A server that permits every read and finds nothing wrong."""
    with FaultServer(saying(good()), bundle) as server:
        yield server


@pytest.fixture
def kept(tmp_path: Path) -> str:
    """The address of a store with one record, which the embedded engine let in."""
    url = f"sqlite:{tmp_path / 'memory.db'}"
    with GovernedMemory.open(url) as memory:
        memory.write(candidate(), caller=caller())
    return url


def allowed(reason: str) -> int:
    """Return the deadline, in milliseconds, of a fault that is to be refused for `reason`."""
    return DEADLINE_MS if reason == "engine_timeout" else PATIENT_MS


def refusals(url: str, engine: str, asking: str, trace: Path, **settings: Any) -> list[EngineFailureError]:
    """Return how a read and a write are refused, after checking what every refusal must be like."""
    opa = OpaSettings(**({"deadline_ms": PATIENT_MS} | settings))
    memory = GovernedMemory.open(url, engine=engine, opa=opa, trace=trace)
    found = [refusal(call, opa.deadline_ms) for call in asks(memory, asking)]
    memory.close()
    told = [event["payload"] for event in events(trace) if event["event_type"] == "policy_engine_failure"]
    assert [payload["reason"] for payload in told] == [one.reason for one in found]
    assert {one.decision.effect for one in found} == {"deny"}
    with GovernedMemory.open(url) as after:
        assert len(after.read(query(limit=100), caller=caller()).hits) == 1
    return found


def asks(memory: GovernedMemory, asking: str) -> list[Ask]:
    """Return a read and a write, through one of the two clients."""
    if asking == "threads":
        return [
            lambda: memory.read(query(), caller=caller()),
            lambda: memory.write(note("another"), caller=caller()),
        ]
    both = AsyncGovernedMemory(memory)
    return [
        lambda: asyncio.run(both.read(query(), caller=caller())),
        lambda: asyncio.run(both.write(note("another"), caller=caller())),
    ]


def refusal(call: Ask, deadline_ms: int = DEADLINE_MS) -> EngineFailureError:
    """Return how a call was refused, which it must be within the deadline."""
    begun = time.monotonic()
    with pytest.raises(EngineFailureError) as caught:
        call()
    assert time.monotonic() - begun < deadline_ms / 1000 + SLACK_SECONDS
    return caught.value


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


def as_asked(engine: PolicyEngine, document: str, asking: str) -> object:
    """Put a question to an engine as a gate on a thread does, or as one below the asynchronous facade."""
    context = contextvars.copy_context()
    context.run(ASYNC_CALLER.set, asking == "asyncio")
    return context.run(engine.evaluate, "memory.read", document)


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
