"""What the `OTEL_*` variables say is followed, or refused; and a collector's answer is waited for so long."""

from __future__ import annotations

import base64
import socket
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from agent_runtime_ref.errors import UsageError
from agent_runtime_ref.export.otlp import otlp_sender
from tests.exporting import sent
from tests.otlp_receiver import Receiver, Response

pytestmark = pytest.mark.usefixtures("short_timeout")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", "OTEL_EXPORTER_OTLP_COMPRESSION names no compression"),
        ("OTEL_EXPORTER_OTLP_LOGS_COMPRESSION", "br", "OTEL_EXPORTER_OTLP_LOGS_COMPRESSION names no"),
        ("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "soon", "OTEL_EXPORTER_OTLP_LOGS_TIMEOUT must be a number"),
        ("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "0", "must be a number"),
        ("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "nan", "must be a number"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such.pem", "OTEL_EXPORTER_OTLP_CERTIFICATE names a file"),
        ("OTEL_EXPORTER_OTLP_LOGS_CLIENT_KEY", "/no/such.pem", "OTEL_EXPORTER_OTLP_LOGS_CLIENT_KEY names"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "user:hidden@host:4318", "OTEL_EXPORTER_OTLP_ENDPOINT is no address"),
        ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "localhost:4318", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT is no"),
    ],
)
def test_a_variable_that_cannot_be_followed_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    """The exporter would go on without it, and say so to nobody."""
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=said) as raised:
        otlp_sender()

    assert "hidden" not in str(raised.value)


def test_the_headers_of_the_variables_are_not_those_of_a_file_for_everybody(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What a `netrc` says of the host takes the place of no header of the exporter."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n", encoding="utf-8")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    sent(receiver.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20own")
    sent(receiver.url)

    first, second = ({name.lower(): value for name, value in one.items()} for one in receiver.headers)
    assert "authorization" not in first
    assert second["authorization"] == "Bearer own"


def test_the_password_of_an_address_is_sent(receiver: Receiver) -> None:
    """An address may carry one, and nothing else says who it is."""
    sent(receiver.url.replace("://", "://user:word@"))

    (headers,) = receiver.headers
    found = {name.lower(): value for name, value in headers.items()}
    assert found["authorization"] == "Basic " + base64.b64encode(b"user:word").decode()


def test_the_certificate_of_the_variables_goes_before_that_of_everybody(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`REQUESTS_CA_BUNDLE` says whom all users of a library trust, the variable whom the exporter trusts."""
    from agent_runtime_ref.export.otlp_session import session_of_environment

    everybody, own = tmp_path / "everybody.pem", tmp_path / "own.pem"
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(everybody))
    session = session_of_environment()
    before = session.merge_environment_settings("https://127.0.0.1", {}, None, None, None)["verify"]
    session.verify = str(own)
    after = session.merge_environment_settings("https://127.0.0.1", {}, None, None, None)["verify"]

    assert (before, after) == (str(everybody), str(own))


class Dripping:
    """A server whose headers come a byte at a time, and then are those of an answer that takes everything."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ended = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection = self._listening.accept()[0]
                threading.Thread(target=self._drip, args=(connection,), daemon=True).start()

    def _drip(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            for _ in range(int(self._seconds / 0.05)):
                if self._ended.wait(0.05):
                    return
                connection.sendall(b".")
            connection.sendall(b"\r\ncontent-length: 0\r\n\r\n")

    def close(self) -> None:
        """End it."""
        self._ended.set()
        self._listening.close()


def test_an_answer_that_drips_is_given_up_in_time() -> None:
    """The timeout is that of the batch: it does not begin anew with each byte."""
    server = Dripping(3.0)
    try:
        answer = sent(server.url)
    finally:
        server.close()

    assert answer.outcome == "unavailable"


@pytest.mark.parametrize(
    ("status", "header", "seconds"),
    [
        (429, "120", 120.0),
        (503, " 7 ", 7.0),
        (429, "Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        (429, "soon", 0.0),
        (429, "-5", 0.0),
        (429, "9" * 400, 0.0),
        (429, "", 0.0),
    ],
)
def test_a_collector_says_for_how_long_it_is_to_be_left_alone(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, status: int, header: str, seconds: float
) -> None:
    """What cannot be read, or is over, is no time at all."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    receiver.decide = lambda _: Response(status, kept=False, retry_after=header)
    answer = sent(receiver.url)

    assert (answer.outcome, answer.wait_seconds) == ("unavailable", seconds)
