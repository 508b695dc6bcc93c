"""Commits of a PostgreSQL store wait for the disk, and a server that may lose its files is told of."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

import pytest

from agent_runtime_ref.stores.postgres import PostgresStore
from agent_runtime_ref.telemetry import diagnostics
from agent_runtime_ref.testing.conformance_base import TENANT
from tests.postgres import SERVICE, PostgresProcess


@contextmanager
def running_with(postgres: PostgresProcess, name: str, value: str) -> Iterator[None]:
    """Change a setting of the running server, and put it back."""

    def settle(statement: str, expected: str) -> None:
        postgres.run(statement)
        postgres.run("SELECT pg_reload_conf()")
        deadline = time.monotonic() + 30
        while postgres.run(f"SHOW {name}") != [(expected,)]:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    before = postgres.run(f"SHOW {name}")[0][0]
    try:
        settle(f"ALTER SYSTEM SET {name} = '{value}'", value)
        yield
    finally:
        settle(f"ALTER SYSTEM RESET {name}", before)


@pytest.mark.parametrize("name", ["fsync", "full_page_writes"])
def test_who_runs_a_server_that_may_lose_its_files_is_warned(
    postgres: PostgresProcess, database: str, name: str
) -> None:
    """The setting is named, and the address without its password; as shipped there is nothing to say."""
    told: list[tuple[str, str, str]] = []

    def say(level: str, event: str, fields: Mapping[str, object]) -> None:
        told.append((level, event, str(fields["detail"])))

    url = postgres.url(SERVICE, database)
    with diagnostics.told_by(say):
        PostgresStore(url).close()
        assert told == []
        with running_with(postgres, name, "off"):
            PostgresStore(url).close()
    [(level, event, detail)] = told
    assert (level, event) == ("warning", "server_may_lose_commits")
    assert f"{name} = off" in detail
    assert postgres.password not in detail


@pytest.mark.parametrize(
    ("value", "expected"), [("off", "on"), ("local", "local"), ("remote_write", "remote_write")]
)
def test_a_commit_waits_for_the_disk_whatever_a_role_was_told(
    postgres: PostgresProcess, database: str, value: str, expected: str
) -> None:
    """Only `off` would lose what was acknowledged; the other values wait, and are left to the server."""
    postgres.run(f"ALTER ROLE {SERVICE} SET synchronous_commit = '{value}'")
    try:
        with closing(PostgresStore(postgres.url(SERVICE, database))) as store:
            assert store.durable is True
            assert store._pool.ask(TENANT, "SHOW synchronous_commit") == [(expected,)]
    finally:
        postgres.run(f"ALTER ROLE {SERVICE} RESET synchronous_commit")
