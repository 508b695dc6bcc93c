"""Answers that nobody may believe: those of another question, of another bundle, or with two meanings."""

from __future__ import annotations

import contextvars
import json
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.errors import EngineFailureError
from agent_runtime_ref.policy.bundle import Bundle, load_bundle
from agent_runtime_ref.policy.engine import ASYNC_CALLER
from agent_runtime_ref.policy.opa_server import OpaSettings
from agent_runtime_ref.policy.opa_server.engine import OpaServerEngine
from agent_runtime_ref.policy.opa_server.proof import RENEWAL_NS
from agent_runtime_ref.policy.opa_server.server import server_of
from agent_runtime_ref.resources import policies_path
from tests.acceptance.command import Command
from tests.fault_server import FaultServer, answer, provenance, saying
from tests.opa import OpaProcess, require_opa
from tests.reloading import waited
from tests.support import caller, query

Opened = Callable[..., OpaServerEngine]
PATIENT = OpaSettings(deadline_ms=20_000)


@pytest.fixture(params=["threads", "asyncio"])
def asking(request: pytest.FixtureRequest) -> str:
    """Through which client the server is asked."""
    return str(request.param)


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled policies without their tests, which a test may change."""
    folder = tmp_path_factory.mktemp("answers") / "policies"
    shutil.copytree(policies_path(), folder, ignore=shutil.ignore_patterns("*_test.rego"))
    return folder


@pytest.fixture(scope="module")
def bundle(policies: Path) -> Bundle:
    """What the servers here pretend to run."""
    return load_bundle(policies)


class Time:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now_ns = 1_000 * RENEWAL_NS

    def __call__(self) -> int:
        """Return the time."""
        return self.now_ns


@pytest.fixture
def opened() -> Iterator[Opened]:
    """What opens an engine that asks a server, until the test ends."""
    with ExitStack() as stack:

        def engine_of(name: str, bundle: Bundle, clock: Time | None = None) -> OpaServerEngine:
            server = server_of(name, PATIENT, {})
            engine = OpaServerEngine(bundle, server, PATIENT, monotonic_ns=clock or Time())
            stack.callback(engine.close)
            return engine

        yield engine_of


def asked(engine: OpaServerEngine, asking: str = "threads") -> Any:
    """Return the answer to a question, through one of the two clients."""
    context = contextvars.copy_context()
    context.run(ASYNC_CALLER.set, asking == "asyncio")
    return context.run(engine.evaluate, "memory.read", "{}")


def reason_of(engine: OpaServerEngine, asking: str = "threads") -> str:
    """Return why a question is refused."""
    with pytest.raises(EngineFailureError) as caught:
        asked(engine, asking)
    return caught.value.reason


@pytest.mark.parametrize(
    "result",
    [
        b'{"allow":false},"result":{"allow":true}',
        b'{"allow":false,"allow":true}',
        b'{"allow":true,"plan":1e400}',
        b'{"allow":true,"plan":"\\ud800"}',
    ],
    ids=["result twice", "allow twice", "beyond all numbers", "half a character"],
)
def test_an_answer_that_is_not_clear(opened: Opened, asking: str, bundle: Bundle, result: bytes) -> None:
    """What two readers take for two things permits nothing."""
    named = json.dumps(provenance(bundle)).encode()
    with FaultServer(saying(answer(b'{"provenance":%s,"result":%s}' % (named, result))), bundle) as server:
        engine = opened(server.engine, bundle)
        found = reason_of(engine, asking)

    assert found == "engine_malformed"


def test_an_answer_is_read_as_any_json(opened: Opened, asking: str, bundle: Bundle) -> None:
    """Blanks, escapes and numbers of any kind change nothing about what an answer says."""
    result = b'{ "allow" : true, "limit": 1e2, "large": 123456789012345678901234567890, "text": "\\u003c" }'
    said = b' {"provenance": %s, "result": %s}\n' % (json.dumps(provenance(bundle)).encode(), result)
    with FaultServer(saying(answer(said)), bundle) as server:
        engine = opened(server.engine, bundle)
        found = asked(engine, asking)

    assert found == {"allow": True, "limit": 100.0, "large": 123456789012345678901234567890, "text": "<"}


@pytest.mark.parametrize("status", ["103 Early Hints", "204 No Content", "500 Internal Server Error"])
def test_a_late_answer_is_not_the_one_to_the_next_question(
    status: str, opened: Opened, asking: str, bundle: Bundle
) -> None:
    """What comes after a status that is not 200 reaches nobody who asked something else."""
    numbers = iter(range(1, 100))
    sent = threading.Event()

    def later(visitor: socket.socket, said: bytes) -> None:
        time.sleep(0.3)
        with suppress(OSError):  # the client has left, as it should
            visitor.sendall(said)
        sent.set()

    def behave(visitor: socket.socket, _: bytes) -> None:
        number = next(numbers)
        said = answer({"provenance": provenance(bundle), "result": {"number": number}})
        if number > 1:
            assert sent.wait(30)
            time.sleep(0.2)  # whoever listens for the late one has it by now
            visitor.sendall(said)
        else:
            length = "Content-Length: 0\r\n" if status.startswith("5") else ""
            visitor.sendall(f"HTTP/1.1 {status}\r\n{length}\r\n".encode())
            threading.Thread(target=later, args=(visitor, said)).start()

    with FaultServer(behave, bundle) as server:
        engine = opened(server.engine, bundle)
        try:
            first = asked(engine, asking)
        except EngineFailureError as failure:
            first = failure.reason
        second = asked(engine, asking)

    assert first in ("engine_http_error", {"number": 1})
    assert second == {"number": 2}


@pytest.fixture
def watching(policies: Path, tmp_path: Path) -> Iterator[tuple[OpaProcess, Path]]:
    """A real server that takes whatever is in its folder, and the folder."""
    require_opa()
    folder = tmp_path / "watched"
    shutil.copytree(policies, folder)
    with OpaProcess("--bundle", folder, "--watch") as server:
        yield server, folder


def test_other_policies_under_the_revision_of_before(
    opened: Opened, asking: str, watching: tuple[OpaProcess, Path], bundle: Bundle
) -> None:
    """A connection that stays and a revision that stays hide nothing for longer than a minute."""
    server, folder = watching
    clock = Time()
    engine = opened(server.engine, bundle, clock)
    asked(engine, asking)
    module = folder / "memory/read/read.rego"
    module.write_text(module.read_text("utf-8") + "\n# other\n", "utf-8")
    assert waited(lambda: "# other" in requests.get(f"{server.url}/v1/policies", timeout=10).text)

    clock.now_ns += RENEWAL_NS + 1
    assert waited(lambda: _refuses(engine, asking))
    assert reason_of(engine, asking) == "bundle_mismatch"


def _refuses(engine: OpaServerEngine, asking: str) -> bool:
    try:
        asked(engine, asking)
    except EngineFailureError:
        return True
    return False


def test_what_was_compared_long_ago_is_not_believed(opened: Opened, asking: str, bundle: Bundle) -> None:
    """After an idle hour the first question waits until the content has been compared."""
    clock = Time()
    with FaultServer(saying(answer({"provenance": provenance(bundle), "result": {}})), bundle) as server:
        engine = opened(server.engine, bundle, clock)
        asked(engine, asking)
        modules = tuple((name, text + "\n# other\n") for name, text in bundle.modules)
        server._bundle = replace(bundle, modules=modules)
        clock.now_ns += 120 * RENEWAL_NS
        found = reason_of(engine, asking)
        posts = server.posts()
        server._bundle = bundle
        asked(engine, asking)

    assert (found, posts) == ("bundle_mismatch", 1)


def test_no_thread_to_compare_with(
    opened: Opened, asking: str, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine at its end refuses with a reason, and goes on when it has recovered."""
    start = threading.Thread.start
    refused = []

    def exhausted(thread: threading.Thread) -> None:
        if thread.name == "opa-proof" and len(refused) < 2:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", exhausted)
    with FaultServer(saying(answer({"provenance": provenance(bundle), "result": {}})), bundle) as server:
        engine = opened(server.engine, bundle)  # fails to compare the first time, and opens all the same
        found = reason_of(engine, asking)
        after = asked(engine, asking)

    assert (found, after) == ("engine_exception", {})


def test_decide_believes_no_more_than_a_gate(
    command: Command, policies: Path, bundle: Bundle, tmp_path: Path
) -> None:
    """`policy decide` calls an answer of another shape a failure of the engine, and no allow."""
    question = tmp_path / "input.json"
    settings = tmp_path / "runtime.yaml"
    settings.write_text(f"policies: {{path: {policies}}}\nopa: {{deadline_ms: 20000}}\n")
    with GovernedMemory.open("memory:", policies=policies) as memory:
        heard: list[str] = []
        embedded = memory._gates.engine
        evaluate = embedded.evaluate
        embedded.evaluate = lambda entrypoint, text: heard.append(text) or evaluate(entrypoint, text)  # type: ignore[method-assign,func-returns-value]
        memory.read(query(), caller=caller())
    question.write_text(heard[0])
    for result in ({"allow": True}, {"allow": False, "deny": ["x"]}):
        said = answer({"provenance": provenance(bundle), "result": result})
        with FaultServer(saying(said), bundle) as server:
            found = command(
                "--settings", settings, "policy", "decide", "read", "--input", question,
                "--engine", server.engine,
            )  # fmt: skip

        assert (found.code, "engine_wrong_type" in found.err) == (3, True)
