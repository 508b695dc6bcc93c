"""A PostgreSQL store is durable where each commit is forced to the disk, and else says what keeps it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from agent_runtime_ref import Caller, GovernedMemory, MemoryCandidate
from agent_runtime_ref.errors import StoreCapabilityError
from agent_runtime_ref.stores.postgres import PostgresStore
from agent_runtime_ref.testing.conformance_base import TENANT
from tests.postgres import SERVICE, PostgresProcess

CALLER = Caller(tenant_id=TENANT, principal_id="importer", roles=("operator",))


def candidate(memory_class: str) -> MemoryCandidate:
    """A fact of that class."""
    return MemoryCandidate(
        TENANT,
        memory_class,
        "validated_fact",
        "The office opens at nine.",
        "trusted_service",
        0.9,
        "handbook",
    )


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


def test_it_is_durable_as_shipped(postgres: PostgresProcess, database: str) -> None:
    """A server without settings of its own forces each commit to its disk."""
    with closing(PostgresStore(postgres.url(SERVICE, database))) as store:
        assert store.durable is True
        assert store.volatile_because is None


@pytest.mark.parametrize("name", ["fsync", "full_page_writes", "synchronous_commit"])
def test_what_is_meant_to_last_is_refused_where_the_server_may_lose_it(
    postgres: PostgresProcess, database: str, name: str
) -> None:
    """The refusal names the setting; what is not meant to last is kept."""
    with (
        running_with(postgres, name, "off"),
        GovernedMemory.open(postgres.url(SERVICE, database)) as memory,
    ):
        assert memory.durable is False
        with pytest.raises(StoreCapabilityError, match=f"`{name} = off`"):
            memory.write(candidate("long_term"), caller=CALLER)


def test_a_role_of_its_own_settings_counts(postgres: PostgresProcess, database: str) -> None:
    """What matters is what holds for who logs in; another way of waiting for the disk is as good as `on`."""
    for value, durable in (("off", False), ("local", True), ("remote_write", True)):
        postgres.run(f"ALTER ROLE {SERVICE} SET synchronous_commit = '{value}'")
        try:
            with closing(PostgresStore(postgres.url(SERVICE, database))) as store:
                assert store.durable is durable
        finally:
            postgres.run(f"ALTER ROLE {SERVICE} RESET synchronous_commit")
