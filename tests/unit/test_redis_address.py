"""The address of a Redis store: how it is shown, what is none, TLS and the login."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from agent_runtime_ref.errors import (
    StoreAddressError,
    StoreCapabilityError,
    StoreError,
)
from agent_runtime_ref.stores import registry
from agent_runtime_ref.stores.redis.address import parsed
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.testing import make_record
from agent_runtime_ref.testing.conformance_base import put
from tests.redis_server import SAVED_NOWHERE, RedisProcess, certificates, require_redis, started


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://u:secret@h:1/2", "redis://u@h:1/2"),
        ("redis://:secret@h", "redis://h:6379/0"),
        ("rediss://u:s%40cret@[::1]:7/", "rediss://u@[::1]:7/0"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, expected: str) -> None:
    """What stands in errors, receipts and output has no password in it."""
    address = parsed(url)
    assert address.shown == expected
    assert "secret" not in repr(address)


@pytest.mark.parametrize(
    "url",
    [
        "redis:memory",
        "redis://",
        "redis://u:secret@h:port/0",
        "redis://u:secret@h/name",
        "redis://u:secret@h/0?ssl_cert_reqs=none",
        "rediss://u:secret@h/0?ssl_cert_reqs=none",
        "rediss://u:secret@h/0?ssl_ca_certs=a&ssl_ca_certs=b",
        "redis://u:secret@h/0?ssl_ca_certs=a",
        "redis://secret@h/0",
        "redis://u:secret@h/0#secret",
        "redis://u:secret@[::1/0",
        "redis://h/0\0",
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    """With a sentence that says how one is written, and without any part of it."""
    with pytest.raises(StoreAddressError, match="redis://USER@HOST") as raised:
        open_store(url)
    assert "secret" not in str(raised.value)


def test_tls_demands_a_certificate_for_the_host() -> None:
    """No part of an address can turn that off."""
    told = parsed("rediss://u:p@example.org/1?ssl_ca_certs=/etc/ca.pem").options()
    assert (told["ssl_cert_reqs"], told["ssl_check_hostname"]) == ("required", True)
    assert told["ssl_ca_certs"] == "/etc/ca.pem"


def test_tls_with_a_server_of_a_known_authority(tmp_path: Path) -> None:
    """Spoken where the certificate is for this very host and of an authority that is named; else refused."""
    require_redis()
    authority, certificate, key = certificates(tmp_path)
    options = ("--tls-port", "{port}", "--port", "0", "--tls-cert-file", str(certificate), "--tls-key-file",
               str(key), "--tls-ca-cert-file", str(authority), "--tls-auth-clients", "no")  # fmt: skip
    with started(*SAVED_NOWHERE, *options, authority=authority) as server:
        login = f"rediss://default:{server.password}@"
        with closing(open_store(f"{login}127.0.0.1:{server.port}/0?ssl_ca_certs={authority}")) as store:
            put(store, make_record())
            assert store.url == f"rediss://default@127.0.0.1:{server.port}/0"
        for url in (
            f"{login}127.0.0.1:{server.port}/0",
            f"{login}localhost:{server.port}/0?ssl_ca_certs={authority}",
            f"redis://default:{server.password}@127.0.0.1:{server.port}/0",
        ):
            with pytest.raises(StoreError, match="no connection") as raised:
                open_store(url)
            assert server.password not in str(raised.value)


def test_a_log_file_is_refused(tmp_path: Path) -> None:
    """The store keeps its log itself."""
    with pytest.raises(StoreCapabilityError, match="decision log itself"):
        open_store("redis://127.0.0.1/0", log=tmp_path / "log.jsonl")


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has not installed the extra is told which one."""
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    with pytest.raises(StoreCapabilityError, match=r"pip install '\.\[redis\]'"):
        open_store("redis://127.0.0.1/0")


def test_a_server_that_is_not_there_or_refuses_the_login_is_an_error(redis_server: RedisProcess) -> None:
    """A sentence, and no password in it."""
    with pytest.raises(StoreError, match="no connection"):
        open_store("redis://u:secret@127.0.0.1:1/0")
    with pytest.raises(StoreError, match="refuses the login") as raised:
        open_store(f"redis://u:secret@127.0.0.1:{redis_server.port}/0")
    assert "secret" not in str(raised.value)
