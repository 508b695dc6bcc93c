"""What errors of HTTP libraries are told as: what the system said, and which server it was about."""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl

import aiohttp
import pytest
from urllib3.exceptions import ProtocolError

from agent_runtime_ref.policy.opa_server.calls import Call, Connections
from agent_runtime_ref.policy.opa_server.replies import failure_of

ADDRESS = "http://127.0.0.1:8181"


def told(error: BaseException) -> str:
    """Return the detail of a failure of a call that has time left."""
    failure = failure_of(error, Call(60, Connections()), ADDRESS)
    assert failure.reason == "engine_unreachable"
    return failure.detail


def of_aiohttp() -> BaseException:
    """Return what aiohttp raises where nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # taken, and nobody listens
        port = bound.getsockname()[1]

        async def ask() -> None:
            async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}"):
                pass

        with pytest.raises(aiohttp.ClientConnectorError) as caught:
            asyncio.run(ask())
    return caught.value


def certificate() -> ssl.SSLCertVerificationError:
    """Return an error of a certificate as the module `ssl` makes it."""
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed")
    error.verify_message = "self-signed certificate"
    return error


def test_a_refused_connection_is_told_alike_by_both_clients() -> None:
    """However deep a library has wrapped it, and whatever it wrote beside it."""
    wrapped = ProtocolError("Connection aborted.", ConnectionRefusedError(111, "Connection refused"))

    assert told(wrapped) == told(of_aiohttp()) == f"no connection to {ADDRESS}: connection refused"


def test_an_unknown_host_and_a_certificate_keep_their_words() -> None:
    """A number that means something else elsewhere is not looked up."""
    unknown = socket.gaierror(-2, "Name or service not known")

    assert told(unknown) == f"no connection to {ADDRESS}: Name or service not known"
    assert told(certificate()) == (
        f"no connection to {ADDRESS}: its certificate is refused: self-signed certificate"
    )


def test_an_answer_that_never_came() -> None:
    """Nothing of the system: the kind of the innermost error, whose words might quote the token."""
    ended = ProtocolError("aborted", http.client.RemoteDisconnected("Remote end closed\n connection"))
    circular = ValueError()
    circular.__context__ = circular

    assert told(ended) == f"no answer from {ADDRESS} (RemoteDisconnected)"
    assert told(circular) == f"no answer from {ADDRESS} (ValueError)"
