"""An OPA server that fetches its bundle, and one that is reached over TLS."""

from __future__ import annotations

import asyncio
import http.server
import ipaddress
import json
import socket
import tarfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from agent_runtime_ref import AsyncGovernedMemory, EngineFailureError, GovernedMemory
from agent_runtime_ref.policy.opa_server import OpaBundle, OpaSettings
from agent_runtime_ref.resources import policies_path
from tests.opa import OpaProcess, require_opa
from tests.support import caller, query


class BundleServer:
    """Hands out one bundle, which can be changed; a context manager."""

    def __init__(self, bundle: bytes) -> None:
        self.bundle = bundle
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(len(outer.bundle)))
                self.end_headers()
                self.wfile.write(outer.bundle)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> BundleServer:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()


def archive(folder: Path, **changes: bytes) -> bytes:
    """Return the policies as a bundle, with other bytes for the files named."""
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if path.is_file() and not name.endswith(("_test.rego", ".yaml", "capabilities.json")):
                raw = changes.get(name, path.read_bytes())
                member = tarfile.TarInfo(name)
                member.size = len(raw)
                tar.addfile(member, BytesIO(raw))
    return packed.getvalue()


def outcome(memory: GovernedMemory) -> str:
    """Return `answered`, or why not."""
    try:
        memory.read(query(), caller=caller())
    except EngineFailureError as failure:
        return failure.reason
    return "answered"


def test_a_bundle_that_the_server_fetches(tmp_path: Path) -> None:
    """Before it is activated a refusal, then answers, and a refusal once another one is activated."""
    require_opa()
    path = tmp_path / "bundle.tar.gz"
    ours = archive(policies_path())
    path.write_bytes(ours)
    manifest = json.loads((policies_path() / ".manifest").read_text())
    renamed = {".manifest": json.dumps(manifest | {"revision": "2.0.0"}).encode()}
    with BundleServer(b"not yet") as bundles:
        opa = OpaProcess(
            "--set", f"services.policies.url={bundles.url}",
            "--set", "bundles.governed.service=policies",
            "--set", "bundles.governed.resource=bundle.tar.gz",
            "--set", "bundles.governed.polling.min_delay_seconds=1",
            "--set", "bundles.governed.polling.max_delay_seconds=1",
            ready="/health",
        )  # fmt: skip
        settings = OpaSettings(deadline_ms=20_000, bundle=OpaBundle(name="governed"))
        with opa, GovernedMemory.open("memory:", engine=opa.engine, policies=path, opa=settings) as memory:
            found = [outcome(memory)]
            for bundle, wanted in (
                (ours, "answered"),
                (archive(policies_path(), **renamed), "bundle_mismatch"),
            ):
                bundles.bundle = bundle
                end = time.monotonic() + 30
                while outcome(memory) != wanted and time.monotonic() < end:
                    time.sleep(0.1)
                found.append(outcome(memory))

    assert found == ["bundle_mismatch", "answered", "bundle_mismatch"]


class Authority:
    """A certificate authority of a test."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._signed(self._name, self._key, is_authority=True)
        self.file = str(folder / f"{name}.pem")
        Path(self.file).write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str) -> tuple[str, str]:
        """Return the files of a certificate for 127.0.0.1 and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate, private = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        certificate.write_bytes(self._signed(subject, key).public_bytes(serialization.Encoding.PEM))
        private.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return str(certificate), str(private)

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_authority: bool = False
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([address]), critical=False)
            .sign(self._key, hashes.SHA256())
        )


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority that the servers here are vouched for by."""
    return Authority(tmp_path_factory.mktemp("tls"), "authority")


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled policies, as a bundle that nobody else looks at."""
    path = tmp_path_factory.mktemp("policies") / "bundle.tar.gz"
    path.write_bytes(archive(policies_path()))
    return path


@pytest.fixture(scope="module")
def secured(authority: Authority, policies: Path) -> Iterator[OpaProcess]:
    """A server that demands a certificate of whoever asks."""
    require_opa()
    certificate, key = authority.issue("server")
    arguments = (
        "--tls-cert-file",
        certificate,
        "--tls-private-key-file",
        key,
        "--tls-ca-cert-file",
        authority.file,
    )
    with OpaProcess(*arguments, "--authentication", "tls", "--bundle", policies, scheme="https") as server:
        yield server


@pytest.mark.parametrize("asking", ["threads", "asyncio"])
@pytest.mark.parametrize(
    ("trusted", "shown", "expected"),
    [
        ("authority", True, "answered"),
        ("authority", False, "engine_unreachable"),
        ("stranger", True, "engine_unreachable"),
        (None, True, "engine_unreachable"),
    ],
    ids=["as it should be", "no client certificate", "another authority", "the machine's authorities"],
)
def test_both_sides_are_who_they_should_be(
    secured: OpaProcess, policies: Path, authority: Authority, tmp_path: Path, asking: str,
    trusted: str | None, shown: bool, expected: str,
) -> None:  # fmt: skip
    """Who is not vouched for by the right authority is neither asked nor told anything."""
    certificate, key = authority.issue("client")
    stranger = Authority(tmp_path, "stranger")
    settings = OpaSettings(
        deadline_ms=20_000,
        ca_file={"authority": authority.file, "stranger": stranger.file}.get(trusted or ""),
        certificate_file=certificate if shown else None,
        key_file=key if shown else None,
    )

    with GovernedMemory.open("memory:", engine=secured.engine, policies=policies, opa=settings) as memory:
        if asking == "threads":
            found = outcome(memory)
        else:
            both = AsyncGovernedMemory(memory)
            found = asyncio.run(both._run(lambda: outcome(memory)))

    assert found == expected


def test_a_handshake_that_drips_ends_at_the_deadline(policies: Path) -> None:
    """A server that never gets on with TLS is a timeout, as one that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        engine = f"opa:https://127.0.0.1:{listener.getsockname()[1]}"
        settings = OpaSettings(deadline_ms=400)
        with GovernedMemory.open("memory:", engine=engine, policies=policies, opa=settings) as memory:
            begun = time.monotonic()
            found = outcome(memory)
            took = time.monotonic() - begun

    assert found == "engine_timeout"
    assert took < 2
