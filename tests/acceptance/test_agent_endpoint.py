"""Models behind an OpenAI-compatible endpoint, over real HTTP: good answers, and what a server does wrong."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

from agent_runtime_ref import AgentRuntime, GovernedMemory
from agent_runtime_ref.agent.models.endpoint import EndpointModel
from agent_runtime_ref.agent.parts import model_of
from agent_runtime_ref.chat_endpoint import ANSWER_BYTES_MAX, ChatEndpoint
from agent_runtime_ref.config import AgentSettings, ModelSettings, load_settings
from agent_runtime_ref.errors import DocumentError, UsageError
from tests.fault_server import Behaviour, FaultServer, answer, dripping, ending, endless, late, saying
from tests.support import caller, candidate
from tests.turns import Conversation, completion, payloads

MESSAGE = "Where do support tickets go?"
GOOD = completion({"content": "To the support queue."})


@pytest.fixture
def store_url() -> str:
    """In memory: an endpoint does not see the store."""
    return "memory:"


def ran(memory: GovernedMemory, behaviour: Behaviour, **options: Any) -> Any:
    """Return a turn that an endpoint with that behaviour answered, and the server."""
    settings = {"timeout_seconds": 5.0, "attempts": 1} | options
    with FaultServer(behaviour) as server:
        endpoint = ChatEndpoint(f"http://127.0.0.1:{server.port}/v1", "small", **settings)
        with AgentRuntime.open(memory, model=EndpointModel(endpoint)) as runtime:
            result = runtime.run(MESSAGE, caller=caller())
    return result, server


def test_an_endpoint_is_shown_the_layers_and_the_message(memory: GovernedMemory) -> None:
    """The system's words are the context, the user's words the message; the key is in the header alone."""
    memory.write(candidate(), caller=caller())
    said = Conversation(GOOD)
    result, server = ran(memory, said, key="secret-key")

    assert (result.status, result.reply, result.model) == ("complete", "To the support queue.", "small")
    (body,) = said.bodies
    assert [one["role"] for one in body["messages"]] == ["system", "user"]
    assert body["messages"][0]["content"] == result.context
    assert body["messages"][1]["content"] == MESSAGE
    assert (body["model"], body["stream"]) == ("small", False)
    assert b"authorization: bearer secret-key" in server.heads[0].lower()
    assert server.heads[0].startswith(b"POST /v1/chat/completions ")
    assert "secret-key" not in repr(ChatEndpoint("http://127.0.0.1", "m", "secret-key"))


def test_an_endpoint_calls_tools(memory: GovernedMemory) -> None:
    """A call is carried out in the caller's name, and its answer goes back under the call's id."""
    memory.write(candidate(kind="conversation", subject="user-42"), caller=caller())
    call = {"id": "c9", "type": "function"}
    call |= {"function": {"name": "recall_history", "arguments": '{"query": "support queue"}'}}
    said = Conversation(completion({"content": None, "tool_calls": [call]}), GOOD)
    result, _ = ran(memory, said)

    assert result.reply == "To the support queue."
    assert payloads(result, "tool_execution")[0]["status"] == "ok"
    assert [tool["function"]["name"] for tool in said.bodies[0]["tools"]] == [
        "recall_history",
        "forget_preference",
    ]
    asked, told = said.bodies[1]["messages"][2:]
    assert asked["tool_calls"] == [call | {"function": call["function"]}]
    assert (told["role"], told["tool_call_id"]) == ("tool", "c9")
    assert told["content"].startswith('<tool_result tool="recall_history" status="ok">')


MALFORMED: list[Any] = [
    {},
    [],
    {"choices": []},
    {"choices": [{"message": "text"}]},
    {"choices": [{"message": {"content": 7}}]},
    {"choices": [{"message": {"content": " "}}]},
    {"choices": [{"message": {"tool_calls": {}}}]},
    {"choices": [{"message": {"tool_calls": ["x"]}}]},
    {"choices": [{"message": {"tool_calls": [{"function": {"name": "x", "arguments": "{"}}]}}]},
    {"choices": [{"message": {"tool_calls": [{"function": {"name": 1, "arguments": "{}"}}]}}]},
    {"choices": [{"message": {"tool_calls": [{"function": {"name": "x", "arguments": "[]"}}] * 9}}]},
    b"<html>it works</html>",
    b"\xff",
    b"[" * 100_000,
]


def test_what_is_no_answer_is_a_failed_turn(memory: GovernedMemory) -> None:
    """Whatever comes back that is no reply and no tool call ends the turn, by its own reason."""
    for document in MALFORMED:
        result, _ = ran(memory, saying(answer(document)))

        assert (result.status, result.reply) == ("failed", ""), document
        assert "malformed" in result.error, document
        assert payloads(result, "run_failed")[0]["error.type"] == "ModelError"


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (saying(answer({}, status="500 Oops")), "refused (status 500)"),
        (
            saying(answer({}, status="302 Found", headers="Location: http://127.0.0.1:1/\r\n")),
            "refused (status 302)",
        ),
        (ending(b""), "unreachable"),
        (ending(b"SSH-2.0-OpenSSH\r\n"), "unreachable"),
        (endless(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65_536), "too_large"),
        (saying(answer(b"x" * (ANSWER_BYTES_MAX + 1))), "too_large"),
    ],
    ids=["500", "302", "gone", "no_http", "endless", "large"],
)
def test_a_server_that_misbehaves(memory: GovernedMemory, behaviour: Behaviour, reason: str) -> None:
    """Each way of going wrong has its reason, and none of them a reply."""
    result, _ = ran(memory, behaviour)

    assert (result.status, result.reply) == ("failed", "")
    assert reason in result.error


@pytest.mark.parametrize("behaviour", [late(GOOD, 3.0), dripping(GOOD, every=0.05)], ids=["late", "dripping"])
def test_a_slow_server_ends_at_the_deadline(memory: GovernedMemory, behaviour: Behaviour) -> None:
    """A byte now and then does not keep a turn waiting for ever."""
    begun = time.monotonic()
    result, _ = ran(memory, behaviour, timeout_seconds=0.2, attempts=3)

    assert "timeout" in result.error
    assert (
        time.monotonic() - begun < 30
    )  # generous: the machine may be busy; dripping alone would take longer


def test_an_overloaded_server_is_asked_again(memory: GovernedMemory) -> None:
    """A status that passes is tried again, within the same deadline; another one is not."""
    said = Conversation(answer({}, status="503 Busy"), GOOD)
    assert ran(memory, said, attempts=2)[0].status == "complete"

    refused = Conversation(answer({}, status="401 No"), GOOD)
    assert ran(memory, refused, attempts=2)[0].status == "failed"
    assert len(refused.bodies) == 1


def test_nobody_listens(memory: GovernedMemory) -> None:
    """A server that is not there is no reply either."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    model = EndpointModel(ChatEndpoint(f"http://127.0.0.1:{port}/v1", "small", attempts=1, timeout_seconds=5))
    with AgentRuntime.open(memory, model=model) as runtime:
        result = runtime.run(MESSAGE, caller=caller())

    assert (result.status, "unreachable" in str(result.error)) == ("failed", True)


@pytest.mark.parametrize(
    "url", ["ftp://127.0.0.1/", "http://", "127.0.0.1:8000", "http://user:pw@127.0.0.1/", "x"]
)
def test_an_address_that_is_none(url: str) -> None:
    """It is refused before anything is sent."""
    with pytest.raises(UsageError, match="endpoint"):
        ChatEndpoint(url, "small")


@pytest.mark.parametrize(
    ("url", "key", "said"),
    [
        ("http://user:hidden@127.0.0.1:9/hidden", None, "endpoint `http://127.0.0.1:9` is no address"),
        ("https://127.0.0.1/hidden?key=hidden", None, "endpoint `https://127.0.0.1` is no address"),
        ("ftp://user:hidden@127.0.0.1/", None, "endpoint is no address"),
        ("http://user:hidden/@127.0.0.1", None, "endpoint is no address"),
        ("http://user:hidden@127.0.0.1:99999999/", None, "endpoint is no address"),
        ("http://model.example/hidden", "k", "endpoint `http://model.example` would be sent"),
    ],
)
def test_an_address_is_shown_without_what_is_secret(url: str, key: str | None, said: str) -> None:
    """Scheme, host and port at most; what cannot be read is not quoted at all."""
    with pytest.raises(UsageError, match=said) as raised:
        ChatEndpoint(url, "small", key)

    assert "hidden" not in f"{raised.value!r} {raised.value}"
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("url", ["http://10.0.0.7:8000/v1", "http://model.example/v1"])
def test_a_key_is_not_sent_unencrypted(url: str) -> None:
    """Only TLS, or an address of this machine, may carry a key."""
    with pytest.raises(UsageError, match="unencrypted"):
        ChatEndpoint(url, "m", "secret")
    assert ChatEndpoint(url, "m").key is None
    assert ChatEndpoint("http://127.0.0.1:8000/v1", "m", "secret").key == "secret"


def test_the_model_is_a_setting(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """File and environment name it; without an endpoint it is the offline one; an endpoint needs a model."""
    config = tmp_path / "runtime.yaml"
    config.write_text("agent: {model: {endpoint: 'http://127.0.0.1:1/v1', name: large}}\n", encoding="utf-8")
    assert model_of(load_settings(environ={}).agent).name == "offline"
    assert model_of(load_settings(config, environ={}).agent).name == "large"
    environ = {"AGENT_RUNTIME_MODEL": "http://127.0.0.1:2/v1", "AGENT_RUNTIME_MODEL_NAME": "other"}
    assert load_settings(config, environ=environ).agent.model.endpoint == "http://127.0.0.1:2/v1"
    assert model_of(load_settings(config, environ=environ).agent).name == "other"
    with pytest.raises(UsageError, match="by name"):
        model_of(AgentSettings(model=ModelSettings(endpoint="http://127.0.0.1:1/v1")))
    with pytest.raises(DocumentError, match="endpoint"):
        load_settings(config, environ={"AGENT_RUNTIME_MODEL": "nowhere"})
