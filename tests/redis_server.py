"""A real Redis on loopback, for tests of what only a real one shows.

The program is `redis-server` on PATH (Debian package redis-server). Where there is none the tests are skipped
with that reason, and in CI (`CI=true`) they fail. A server has a data folder of its own, and ends, with the
folder, when the tests do, also when they are interrupted.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from tests import guard
from tests.opa import free_port

OLDEST = (6, 2)
START_SECONDS = 30.0
ALWAYS = ("--appendonly", "yes", "--appendfsync", "always")
SAVED_NOWHERE = ("--appendonly", "no", "--save", "")


class NoRedisError(Exception):
    """There is no Redis to test with; the text says why."""


@cache
def program() -> str:
    """Return the path of `redis-server`.

    Raises:
        NoRedisError: there is none, or the driver is missing.
    """
    if find_spec("redis") is None:
        raise NoRedisError("the extra `redis` is not installed")
    found = shutil.which("redis-server")
    if found is None:
        raise NoRedisError("no redis-server on this machine (Debian package redis-server)")
    told = subprocess.run([found, "--version"], check=True, capture_output=True, text=True).stdout
    version = re.search(r"v=(\d+)\.(\d+)", told)
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        raise NoRedisError(f"redis-server is older than {'.'.join(map(str, OLDEST))}: {told.strip()}")
    return found


def require_redis() -> str:
    """Return the path of the program, or skip the test; in CI, fail it."""
    try:
        return program()
    except NoRedisError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"in CI the tests with a real Redis must run: {error}")
        pytest.skip(str(error))


class RedisProcess:
    """A server of ours; it may be stopped, killed and started again at its address."""

    def __init__(self, *options: str, authority: Path | None = None, port: int | None = None) -> None:
        """Prepare it; `options` are added to those of every server here, with `{port}` for its port.

        With an `authority` it speaks TLS, and its certificate is from there.
        """
        self._program = program()
        self.port = port or free_port()
        self._options = [one.format(port=self.port) for one in options]
        self._tls = {} if authority is None else {"ssl": True, "ssl_ca_certs": str(authority)}
        self.password = secrets.token_hex(16)
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="agent-runtime-redis-"))

    def start(self, *options: str) -> None:
        """Start it, and return when it answers."""
        assert self._process is None
        arguments = ("--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self._folder),
                     "--save", "", "--requirepass", self.password,
                     *self._options, *options)  # fmt: skip
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd="/", start_new_session=True,
            )  # fmt: skip
        guard.watch(self._process.pid, self._folder, how=signal.SIGKILL)
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise NoRedisError((self._folder / "log").read_text(errors="replace")[-2000:])
            time.sleep(0.02)

    def _answers(self) -> bool:
        from redis.exceptions import ConnectionError

        try:
            return self.run("PING") in (True, b"PONG")
        except ConnectionError:  # refused, or it is loading
            return False

    @property
    def pid(self) -> int:
        """The number of its process."""
        assert self._process is not None
        return self._process.pid

    @property
    def folder(self) -> Path:
        """Where its data are."""
        return self._folder

    def stop(self, *, how: int = signal.SIGKILL) -> None:
        """End it; by default as a failing machine would."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(START_SECONDS)
            guard.forget(self._process.pid, self._folder)
            self._process = None

    def close(self) -> None:
        """End it and remove its folder."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, database: int = 0, user: str = "default") -> str:
        """The address of one of its databases."""
        return f"redis://{user}:{self.password}@127.0.0.1:{self.port}/{database}"

    def run(self, *words: str | int, database: int = 0) -> Any:
        """What it answers to a command of an administrator."""
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        with redis.Redis(
            host="127.0.0.1", port=self.port, password=self.password, db=database, protocol=2,
            retry=Retry(NoBackoff(), 0), **self._tls,
        ) as client:  # fmt: skip
            return client.execute_command(*words)

    def empty(self) -> None:
        """Remove everything."""
        self.run("FLUSHALL")


@contextmanager
def started(*options: str, authority: Path | None = None, port: int | None = None) -> Iterator[RedisProcess]:
    """Give a running server, and end it afterwards."""
    with closing(RedisProcess(*options, authority=authority, port=port)) as server:
        server.start()
        yield server


def certificates(folder: Path) -> tuple[Path, Path, Path]:
    """Make an authority, and a certificate of it for 127.0.0.1: files of authority, certificate and key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    now = datetime.now(UTC)

    def made(name: str, extension: x509.ExtensionType, issuer: Any, by: Any, key: Any) -> x509.Certificate:
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        builder = x509.CertificateBuilder(
            subject_name=subject,
            issuer_name=issuer or subject,
            public_key=key.public_key(),
            serial_number=x509.random_serial_number(),
            not_valid_before=now - timedelta(hours=1),
            not_valid_after=now + timedelta(hours=1),
        )
        return builder.add_extension(extension, critical=True).sign(by, hashes.SHA256())

    ours, its = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = made("authority", x509.BasicConstraints(ca=True, path_length=None), None, ours, ours)
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = made("server", address, authority.subject, ours, its)
    pem = serialization.Encoding.PEM
    private = its.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    paths = folder / "authority.pem", folder / "certificate.pem", folder / "key.pem"
    for path, data in zip(
        paths, (authority.public_bytes(pem), certificate.public_bytes(pem), private), strict=True
    ):
        path.write_bytes(data)
    return paths


@pytest.fixture(scope="session")
def _redis_of_the_run() -> Iterator[RedisProcess]:
    """A server of the whole test run, which keeps nothing on disk."""
    require_redis()
    with started(*SAVED_NOWHERE) as server:
        yield server


@pytest.fixture
def redis_server(_redis_of_the_run: RedisProcess) -> RedisProcess:
    """That server, emptied."""
    _redis_of_the_run.empty()
    return _redis_of_the_run


@pytest.fixture(scope="session")
def durable_redis() -> Iterator[RedisProcess]:
    """A server of the whole test run that forces each write to its disk before it answers."""
    require_redis()
    with started(*ALWAYS) as server:
        yield server
