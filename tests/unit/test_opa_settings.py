"""Where an OPA server is and who we are to it: what is understood, and what is refused unsent."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from urllib3.exceptions import ProtocolError

from agent_runtime_ref.config import load_settings
from agent_runtime_ref.errors import DocumentValueError, UsageError
from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.policy.engines import open_engine
from agent_runtime_ref.policy.opa_server import OpaBundle, OpaSettings
from agent_runtime_ref.policy.opa_server.calls import Call, Connections
from agent_runtime_ref.policy.opa_server.replies import failure_of
from agent_runtime_ref.policy.opa_server.server import TOKEN_VARIABLE, OpaServer, server_of
from agent_runtime_ref.policy.opa_server.settings import CHECKS, CONNECTIONS, DEADLINE_MS
from agent_runtime_ref.resources import schemas_path

PLAIN = OpaSettings()


def server(engine: str, settings: OpaSettings = PLAIN, token: str | None = None) -> OpaServer:
    """Return the server of an engine's name, in an environment with or without a token."""
    return server_of(engine, settings, {} if token is None else {TOKEN_VARIABLE: token})


@pytest.mark.parametrize(
    ("engine", "address"),
    [
        ("opa:http://127.0.0.1:8181", "http://127.0.0.1:8181"),
        ("opa:http://127.0.0.1:8181/", "http://127.0.0.1:8181"),
        ("opa:http://opa", "http://opa:80"),
        ("opa:https://opa.example.com", "https://opa.example.com:443"),
        ("opa:http://[::1]:8181", "http://[::1]:8181"),
        ("opa:HTTP://LOCALHOST:8181", "http://localhost:8181"),
    ],
)
def test_addresses(engine: str, address: str) -> None:
    """Host and port, with the port of the scheme where none is named."""
    assert str(server(engine).address) == address


@pytest.mark.parametrize(
    "engine",
    [
        "opa:",
        "opa:127.0.0.1:8181",
        "opa:ftp://127.0.0.1",
        "opa:unix:///run/opa.sock",
        "opa:http://",
        "opa:http://:8181",
        "opa:http://127.0.0.1:99999",
        "opa:http://127.0.0.1:port",
        "opa:http://127.0.0.1:8181/v1",
        "opa:http://127.0.0.1:8181?x=1",
        "opa:http://127.0.0.1:8181#x",
        "opa:http://[::1",
        "opa:http://a b",
        "opa:http://host%0d%0aevil",
        "opa:http://127.0.0.1:0",
        "opa:http://127.0.0.1:8181?",
        "opa:http://127.0.0.1:8181#",
        "opa: http://127.0.0.1:8181",
        "opa:http://local\nhost:8181",
        "opa:http://127.0.0.1:8181\t",
        "opa:http://\uff11\uff12\uff17.0.0.1:8181",
    ],
)
def test_what_is_no_address(engine: str) -> None:
    """What the client could not honour is refused, with an address as it should be."""
    with pytest.raises(UsageError, match=r"as in opa:http://127\.0\.0\.1:8181$"):
        server(engine)


def test_credentials_in_an_address_are_refused_and_not_repeated() -> None:
    """They would end in logs; the sentence names where they belong."""
    with pytest.raises(UsageError, match=TOKEN_VARIABLE) as caught:
        server("opa:https://user:hunter2@opa.example.com")

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "[::1]"])
def test_a_token_may_go_in_clear_to_this_machine(host: str) -> None:
    """What never leaves the machine needs no TLS."""
    assert server(f"opa:http://{host}:8181", token="s3cret").headers["Authorization"] == "Bearer s3cret"


@pytest.mark.parametrize(
    "host",
    [
        "opa.example.com",
        "10.0.0.7",
        "0.0.0.0",
        "[fe80::1]",
        "localhost.example.com",
        "127.1",
        "2130706433",
        "0x7f000001",
        "127.0.0.1.example.com",
        "127.0.0.1.",
        "localhost.",
        "[::]",
    ],
)
def test_a_token_goes_in_clear_nowhere_else(host: str) -> None:
    """Refused before anything is sent; over TLS it may go, and without a token so may the question."""
    with pytest.raises(UsageError, match="would go in clear"):
        server(f"opa:http://{host}:8181", token="s3cret")

    assert "Authorization" in server(f"opa:https://{host}:8181", token="s3cret").headers
    assert "Authorization" not in server(f"opa:http://{host}:8181").headers


@pytest.mark.parametrize("token", ["a b", "a\r\nHost: evil", "s3cret\n", "ü", "   "])
def test_a_token_that_no_header_can_carry(token: str) -> None:
    """It is refused, and not repeated."""
    with pytest.raises(UsageError, match=TOKEN_VARIABLE) as caught:
        server("opa:http://127.0.0.1:8181", token=token)

    assert token.strip() == "" or token not in str(caught.value)


def test_an_error_of_a_library_does_not_quote_the_token() -> None:
    """Libraries name a header that they cannot send; what the system says of a connection is shown."""
    call = Call(60, Connections())
    quoting = ValueError("Invalid header value b'Bearer s3cret'")
    refused = ProtocolError("Connection aborted.", ConnectionRefusedError(111, "Connection refused"))

    server_at = "http://127.0.0.1:8181"
    assert failure_of(quoting, call, server_at).detail == f"no answer from {server_at} (ValueError)"
    assert failure_of(refused, call, server_at).detail == f"no connection to {server_at}: connection refused"


@pytest.mark.parametrize("check", ["contents", "None", "", None])
def test_a_check_that_nobody_knows(check: Any) -> None:
    """A slip in the name of a check would have compared less than was meant."""
    with pytest.raises(UsageError, match="must be one of content, revision, none"):
        OpaBundle(check=check)


@pytest.mark.parametrize(
    "numbers",
    [
        {"connections": 0}, {"connections": -1}, {"connections": 1_025}, {"connections": True},
        {"deadline_ms": 9}, {"deadline_ms": 60_001}, {"deadline_ms": 1.5}, {"deadline_ms": None},
    ],
)  # fmt: skip
def test_numbers_out_of_their_bounds(numbers: dict[str, Any]) -> None:
    """Settings of Python have the bounds of the file's: no connections would be any number of them."""
    with pytest.raises(UsageError, match="must be a whole number from"):
        OpaSettings(**numbers)


def test_the_bounds_are_those_of_the_schema() -> None:
    """What the settings file may say, Python may say, and no more."""
    schema = json.loads((schemas_path() / "runtime_config.schema.json").read_text("utf-8"))
    properties = schema["properties"]["opa"]["properties"]

    assert tuple(properties["bundle"]["properties"]["check"]["enum"]) == CHECKS
    for name, bounds in (("deadline_ms", DEADLINE_MS), ("connections", CONNECTIONS)):
        assert (properties[name]["minimum"], properties[name]["maximum"]) == bounds


def test_a_token_of_a_file(tmp_path: Path) -> None:
    """The file's token, without its line end; the environment's comes before it; no file is a mistake."""
    file = tmp_path / "token"
    file.write_text("of-file\n")
    settings = OpaSettings(token_file=str(file))

    assert server("opa:http://127.0.0.1", settings).headers["Authorization"] == "Bearer of-file"
    assert server("opa:http://127.0.0.1", settings, "of-env").headers["Authorization"] == "Bearer of-env"
    file.unlink()
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        server("opa:http://127.0.0.1", settings)


def test_a_token_is_not_shown_by_what_holds_it() -> None:
    """A server that lands in a log or a traceback keeps its token."""
    assert "s3cret" not in repr(server("opa:http://127.0.0.1:8181", token="s3cret"))


def test_files_of_certificates(tmp_path: Path) -> None:
    """What is no certificate, or means nothing, is refused when the engine is opened."""
    no_pem = tmp_path / "ca.pem"
    no_pem.write_text("no certificate")

    for settings, sentence in (
        (OpaSettings(ca_file=str(no_pem)), "ca_file"),
        (OpaSettings(ca_file=str(tmp_path / "absent")), "No such file"),
        (OpaSettings(certificate_file=str(no_pem)), "certificate_file"),
        (OpaSettings(key_file=str(no_pem)), "needs certificate_file"),
    ):
        with pytest.raises(UsageError, match=sentence):
            server("opa:https://127.0.0.1", settings)
    with pytest.raises(UsageError, match="certificates mean nothing to"):
        server("opa:http://127.0.0.1", OpaSettings(ca_file=str(no_pem)))


def test_a_revision_that_nobody_named_cannot_be_compared() -> None:
    """`check: revision` with a folder that has none would accept anything; it is refused."""
    nameless = replace(load_bundle(), revision="unversioned")

    with pytest.raises(UsageError, match="needs a revision"):
        open_engine(
            "opa:http://127.0.0.1:1",
            nameless,
            opa=OpaSettings(bundle=OpaBundle(check="revision")),
            environ={},
        )


def test_an_engine_that_does_not_exist() -> None:
    """The names that do are told."""
    with pytest.raises(UsageError, match="there are `embedded` and `opa:"):
        open_engine("opal", load_bundle())


def test_the_section_of_the_settings_file(tmp_path: Path) -> None:
    """Each setting arrives, with files found from the folder of the settings file."""
    file = tmp_path / "runtime.yaml"
    file.write_text(
        "engine: opa:https://opa.example.com\n"
        "opa:\n"
        "  token_file: token\n"
        "  ca_file: /etc/ca.pem\n"
        "  certificate_file: client.crt\n"
        "  key_file: client.key\n"
        "  deadline_ms: 250\n"
        "  connections: 4\n"
        "  bundle: {name: governed, revision: '7', check: revision}\n"
    )

    assert load_settings(file, environ={}).opa == OpaSettings(
        token_file=str(tmp_path / "token"),
        ca_file="/etc/ca.pem",
        certificate_file=str(tmp_path / "client.crt"),
        key_file=str(tmp_path / "client.key"),
        deadline_ms=250,
        connections=4,
        bundle=OpaBundle(name="governed", revision="7", check="revision"),
    )


@pytest.mark.parametrize(
    ("section", "sentence"),
    [
        ("{deadline_ms: 0}", r"\$\.opa\.deadline_ms"),
        ("{connections: 0}", r"\$\.opa\.connections"),
        ("{bundle: {check: maybe}}", r"must be `content`, `revision` or `none`"),
        ("{tokn_file: x}", "tokn_file"),
    ],
)
def test_a_section_that_is_wrong(tmp_path: Path, section: str, sentence: str) -> None:
    """It is refused with its place."""
    file = tmp_path / "runtime.yaml"
    file.write_text(f"opa: {section}\n")

    with pytest.raises(DocumentValueError, match=sentence):
        load_settings(file, environ={})
