"""A real PostgreSQL 15 on loopback, for tests of what only a real one shows.

The programs are those of the Debian package (/usr/lib/postgresql/15/bin) or those on PATH. Where there are
none the tests are skipped with that reason, and in CI (`CI=true`) they fail. The server has a data folder of
its own, and ends, with the folder, when the tests do, also when they are interrupted.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests import guard
from tests.opa import free_port

OLDEST = 15
START_SECONDS = 60.0
OWNER, APPLICATION, INSPECTION = "agent_memory_owner", "agent_memory_app", "agent_memory_inspection"
# Who logs in: a service in the application's role alone, and an operator who may also inspect.
SERVICE, OPERATOR = "service", "operator"
_DEBIAN = Path(f"/usr/lib/postgresql/{OLDEST}/bin")
_ACCOUNT = "postgres"
_MEMORY, _MEMORY_FREE_MIN = Path("/dev/shm"), 4 << 30


class NoPostgresError(Exception):
    """There is no PostgreSQL to test with; the text says why."""


@cache
def programs() -> Path:
    """Return the folder with `initdb` and `postgres`.

    Raises:
        NoPostgresError: there is none, or the driver is missing.
    """
    if find_spec("psycopg") is None or find_spec("psycopg_pool") is None:
        raise NoPostgresError("the extra `postgres` is not installed")
    found = shutil.which("initdb")
    folder = _DEBIAN if (_DEBIAN / "initdb").is_file() else Path(found).resolve().parent if found else None
    if folder is None or not (folder / "postgres").is_file():
        raise NoPostgresError(f"no PostgreSQL {OLDEST} on this machine (Debian package postgresql)")
    if os.geteuid() == 0:
        import pwd

        try:
            pwd.getpwnam(_ACCOUNT)
        except KeyError:
            raise NoPostgresError(f"root may not run PostgreSQL, and there is no user {_ACCOUNT}") from None
    return folder


def require_postgres() -> Path:
    """Return the folder with the programs, or skip the test; in CI, fail it."""
    try:
        return programs()
    except NoPostgresError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"in CI the tests with a real PostgreSQL must run: {error}")
        pytest.skip(str(error))


class PostgresProcess:
    """A server of ours; it may be stopped, killed and started again at its address."""

    def __init__(self, *settings: str, within: Path = Path("/tmp")) -> None:
        """Make the cluster in a folder `within`; `settings` are added to those of every server here."""
        self._bin = programs()
        self._settings = settings
        self.port = free_port()
        self.password = secrets.token_hex(16)
        self._process: subprocess.Popen[bytes] | None = None
        # Not below the temporary folder of the tests, into which no other user may look.
        self._folder = Path(tempfile.mkdtemp(prefix="agent-runtime-postgres-", dir=within))
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            self._as = {"user": _ACCOUNT, "group": _ACCOUNT, "extra_groups": []}
            shutil.chown(self._folder, _ACCOUNT, _ACCOUNT)
        secret = self._folder / "password"
        secret.write_text(self.password)
        secret.chmod(0o644)
        self._run("initdb", "-D", self._data, "-U", "postgres", "-A", "scram-sha-256", "-E", "UTF8",
                  "--locale=C.UTF-8", "--pwfile", secret, "--no-sync")  # fmt: skip
        secret.unlink()

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _run(self, program: str, *arguments: str | Path) -> None:
        subprocess.run(
            [self._bin / program, *arguments], check=True, capture_output=True, cwd="/", **self._as
        )

    def start(self) -> None:
        """Start it, and return when it answers."""
        assert self._process is None
        settings = ("listen_addresses=127.0.0.1", "unix_socket_directories=", f"port={self.port}",
                    "max_connections=60", "logging_collector=off", *self._settings)  # fmt: skip
        options = [part for one in settings for part in ("-c", one)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self._data, *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True, **self._as,
            )  # fmt: skip
        guard.watch(self._process.pid, self._folder, how=signal.SIGQUIT)
        self._await()

    def _await(self) -> None:
        import psycopg

        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.admin("postgres"), connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                assert self._process is not None
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise NoPostgresError(self.log()[-2000:]) from None
                time.sleep(0.05)

    def log(self) -> str:
        """What the server has written."""
        return (self._folder / "log").read_text(errors="replace")

    def stop(self, *, how: int = signal.SIGINT) -> None:
        """End it: SIGINT ends connections and shuts down, SIGQUIT leaves recovery to the next start."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(START_SECONDS)
            guard.forget(self._process.pid, self._folder)
            self._process = None

    def close(self) -> None:
        """End it and remove its folder."""
        self.stop(how=signal.SIGQUIT)
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, user: str, database: str) -> str:
        """The address of a database for one of the roles of `new_database`."""
        return f"postgresql://{user}:{self.password}@127.0.0.1:{self.port}/{database}"

    def admin(self, database: str) -> str:
        """The address of a database for the superuser."""
        return self.url("postgres", database)

    def run(self, sql: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """The rows of statements of the superuser, each committed by itself."""
        import psycopg

        with psycopg.connect(self.admin(database), autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def create_roles(self) -> None:
        """Make the roles of the how-to, and two that log in."""
        self.run(
            f"""
            CREATE ROLE {OWNER} LOGIN PASSWORD '{self.password}';
            CREATE ROLE {APPLICATION} NOLOGIN;
            CREATE ROLE {INSPECTION} NOLOGIN;
            CREATE ROLE {SERVICE} LOGIN PASSWORD '{self.password}' IN ROLE {APPLICATION};
            CREATE ROLE {OPERATOR} LOGIN PASSWORD '{self.password}' IN ROLE {APPLICATION}, {INSPECTION};
            """
        )

    def create_database(self) -> str:
        """Make an empty database that belongs to the owner, and return its name."""
        name = f"memory_{secrets.token_hex(4)}"
        self.run(f"CREATE DATABASE {name} OWNER {OWNER}")
        return name

    def migrated_database(self) -> str:
        """Make a database with the schema of a store, and return its name."""
        from agent_runtime_ref.stores.postgres import migrate

        name = self.create_database()
        migrate(self.url(OWNER, name))
        return name

    def empty(self, database: str) -> None:
        """Remove every row of a store, as only a superuser can."""
        from agent_runtime_ref.stores.postgres.schema import TENANT_TABLES

        wiped = [f"DELETE FROM agent_memory.{name}" for name in (*TENANT_TABLES, "store_log")]
        wiped.append("UPDATE agent_memory.store_chains SET seq=0,hash=repeat('0',64)")
        wiped.append("UPDATE agent_memory.forgettings SET count=0")
        self.run(";".join(wiped), database)

    def drop(self, database: str) -> None:
        """Remove a database, whoever is connected to it."""
        self.run(f"DROP DATABASE {database} WITH (FORCE)")


@contextmanager
def started(*settings: str, within: Path = Path("/tmp")) -> Iterator[PostgresProcess]:
    """Give a running server with the roles of the how-to, and end it afterwards."""
    with closing(PostgresProcess(*settings, within=within)) as server:
        server.start()
        server.create_roles()
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresProcess]:
    """A server of the whole test run, with its files in memory: forcing them to disk costs nothing there."""
    require_postgres()
    with started(within=_memory_folder()) as server:
        yield server


def _memory_folder() -> Path:
    """A folder of the machine's memory that has room for a cluster; else the one of other temporary files."""
    with suppress(OSError):
        if os.access(_MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(_MEMORY).free >= _MEMORY_FREE_MIN:
            return _MEMORY
    return Path("/tmp")


@pytest.fixture(scope="session")
def _shared_database(postgres: PostgresProcess) -> str:
    """One migrated database for tests that leave the schema alone."""
    return postgres.migrated_database()


@pytest.fixture
def database(postgres: PostgresProcess, _shared_database: str) -> str:
    """The name of a database with an empty store."""
    postgres.empty(_shared_database)
    return _shared_database
