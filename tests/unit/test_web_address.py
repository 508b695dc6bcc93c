"""Of the address of a server a message shows scheme, host and port, or nothing."""

from __future__ import annotations

import pytest

from agent_runtime_ref.web_address import origin_of


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000"),
        ("HTTPS://Models.Example/private?key=secret#secret", "https://models.example"),
        ("http://user:secret@host:9/secret", "http://host:9"),
        (" https://[::1]:9/x ", "https://[::1]:9"),
    ],
)
def test_scheme_host_and_port_are_shown(address: str, shown: str) -> None:
    """Never a user, a path, a query or a fragment."""
    assert origin_of(address) == shown


@pytest.mark.parametrize(
    "address",
    [
        "",
        "secret",
        "secret:4318",
        "http:",
        "http:user:secret@host",
        "http://",
        "http://user:secret",
        "http://secret/4@host",  # a mark in a password ends what a reader takes for the host
        "http://secret?4@host",
        "http://secret#4@host",
        "http://12:34/secret@host",
        "http://se cret",
        "http://secret\\@host/x\\",
        "http://[secret",
        "http://[secret]",
        "secret://host",
        "http://sécret!",
    ],
)
def test_what_may_be_anything_is_not_shown(address: str) -> None:
    """Any part of what cannot be read may be a misplaced password."""
    assert origin_of(address) is None
