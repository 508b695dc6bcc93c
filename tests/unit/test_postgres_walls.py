"""Round the gate with the application's own role: the database keeps tenants apart by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

from agent_runtime_ref.errors import StoreCapabilityError
from agent_runtime_ref.stores.base import Change, SearchRequest, Store, WriteBatch
from agent_runtime_ref.stores.postgres.schema import COMMON_TABLES, NOT_INSPECTED, PARTITIONS, TENANT_TABLES
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.telemetry.chain import Lines
from agent_runtime_ref.testing import NOW_US, make_record, open_plan
from agent_runtime_ref.testing.conformance_base import TENANT, ask, ids, put
from agent_runtime_ref.testing.conformance_forgetting import forget
from tests.postgres import APPLICATION, INSPECTION, OPERATOR, OWNER, SERVICE, PostgresProcess

OTHER = "tenant-b"


@pytest.fixture
def store(postgres: PostgresProcess, database: str) -> Iterator[Store]:
    """A store as a service opens it, with a record of either tenant and something in every table."""
    with closing(open_store(postgres.url(SERVICE, database))) as opened:
        for tenant in (TENANT, OTHER):
            parent = make_record("parent", tenant_id=tenant, subject="user-42", key="queue")
            child = make_record("child", tenant_id=tenant, status="quarantined", derived_from=("parent",))
            waiting = (b"principal", None, False)
            opened.commit(WriteBatch([Change(parent, dedup=b"d"), Change(child, waiting=waiting)], ["{}"]))  # type: ignore[arg-type]
            opened.append_lines(Lines.of(tenant, ["{}"]), read=True)
            opened.subject_key(tenant, "user-42", True)
            gone = make_record("gone", tenant_id=tenant, subject="user-7")
            put(opened, gone)
            opened.forget(tenant, "user-7", now_us=NOW_US, dry_run=False, lines_for=lambda _: ["{}"])
        yield opened


@pytest.fixture
def connection(postgres: PostgresProcess, database: str, store: Store) -> Iterator[psycopg.Connection]:
    """A connection of the service that asks the database itself."""
    url = postgres.url(SERVICE, database)
    with psycopg.connect(url, options="-c search_path=agent_memory") as opened:
        yield opened


def become(connection: psycopg.Connection, tenant: str) -> None:
    """Say whose rows the transaction is about."""
    connection.execute("SELECT set_config('app.tenant', %s, true)", (tenant,))


def rows(connection: psycopg.Connection, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """The rows of a statement."""
    return connection.execute(sql.encode(), values).fetchall()


@pytest.mark.parametrize("table", TENANT_TABLES)
def test_without_a_tenant_nothing_is_seen(connection: psycopg.Connection, table: str) -> None:
    """A borrowed connection that has not said whose rows it is about sees none, and none after it has."""
    assert rows(connection, f"SELECT * FROM {table}") == []
    become(connection, TENANT)
    assert rows(connection, f"SELECT * FROM {table}") != []
    connection.commit()

    assert rows(connection, "SELECT current_setting('app.tenant', true)") == [("",)]
    assert rows(connection, f"SELECT * FROM {table}") == []


@pytest.mark.parametrize("table", TENANT_TABLES)
def test_another_tenants_rows_are_not_selected(connection: psycopg.Connection, table: str) -> None:
    """Whatever the statement asks for, only rows of the tenant that is set come back."""
    become(connection, TENANT)

    assert {row[0] for row in rows(connection, f"SELECT tenant_id FROM {table} WHERE true OR 1=1")} == {
        TENANT
    }
    assert rows(connection, f"SELECT 1 FROM {table} WHERE tenant_id = %s", OTHER) == []


@pytest.mark.parametrize("table", TENANT_TABLES)
def test_another_tenants_rows_are_not_inserted(connection: psycopg.Connection, table: str) -> None:
    """A row of another tenant is refused, and so is any row where no tenant is set."""
    for tenant in (OTHER, None):
        if tenant is not None:
            become(connection, TENANT)
        columns = [row[0] for row in rows(connection, _COLUMNS, table)]
        become(connection, OTHER)
        found = rows(connection, f"SELECT {','.join(columns)} FROM {table} LIMIT 1")
        become(connection, TENANT if tenant else "")
        marks = ",".join(["%s"] * len(columns))
        with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
            connection.execute(f"INSERT INTO {table}({','.join(columns)}) VALUES({marks})".encode(), found[0])
        connection.rollback()


_COLUMNS = (
    "SELECT column_name FROM information_schema.columns WHERE table_schema='agent_memory' AND table_name=%s"
    " ORDER BY ordinal_position"
)
_UPDATES = {
    "records": "status='superseded'",
    "revisions": "revision=9",
    "tombstones": "at_us=0",
    "chains": "seq=9",
}


@pytest.mark.parametrize("table", TENANT_TABLES)
def test_another_tenants_rows_are_not_changed(connection: psycopg.Connection, table: str) -> None:
    """An update or a delete of another tenant's rows finds none; what only grows cannot be changed at all."""
    become(connection, TENANT)
    for verb, sql in (
        ("UPDATE", f"UPDATE {table} SET {_UPDATES.get(table, 'tenant_id=tenant_id')} WHERE tenant_id=%s"),
        ("DELETE", f"DELETE FROM {table} WHERE tenant_id=%s"),
    ):
        with connection.transaction(force_rollback=True):
            if verb in TENANT_TABLES[table]:
                assert connection.execute(sql.encode(), (OTHER,)).rowcount == 0
                continue
            with pytest.raises(errors.InsufficientPrivilege), connection.transaction():
                connection.execute(sql.encode(), (OTHER,))


def test_a_row_is_not_moved_to_another_tenant(connection: psycopg.Connection) -> None:
    """The tenant of a row is in no list of what the application may change."""
    become(connection, TENANT)

    with pytest.raises(errors.InsufficientPrivilege):
        connection.execute("UPDATE records SET tenant_id=%s", (OTHER,))


def test_partitions_are_not_a_way_in(connection: psycopg.Connection) -> None:
    """Whoever names a partition instead of its table is refused."""
    become(connection, TENANT)

    for number in range(PARTITIONS):
        with pytest.raises(errors.InsufficientPrivilege), connection.transaction():
            connection.execute(f"SELECT * FROM records_{number}".encode())


def test_the_application_owns_nothing_and_every_wall_is_forced(
    postgres: PostgresProcess, database: str
) -> None:
    """Every tenant table and partition has forced row-level security, and no table is the application's."""
    found = postgres.run(
        "SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity, pg_get_userbyid(c.relowner)"
        " FROM pg_class c WHERE c.relnamespace='agent_memory'::regnamespace AND c.relkind IN ('r','p')",
        database,
    )
    walled = {name for name, forced, _ in found if forced}
    parts = {f"{table}_{number}" for table in TENANT_TABLES for number in range(PARTITIONS)}

    assert walled == {*TENANT_TABLES, *parts}
    assert {owner for _, _, owner in found} == {OWNER}
    assert {name for name, _, _ in found} - walled == set(COMMON_TABLES)
    roles = postgres.run(
        "SELECT rolsuper, rolbypassrls FROM pg_roles"
        f" WHERE rolname IN ('{APPLICATION}', '{INSPECTION}', '{SERVICE}')"
    )
    assert set(roles) == {(False, False)}


def test_every_key_and_index_begins_with_the_tenant(postgres: PostgresProcess, database: str) -> None:
    """So that the tables can be partitioned or distributed by it."""
    found = postgres.run(
        "SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid=i.indrelid"
        " JOIN pg_attribute a ON a.attrelid=c.oid AND a.attnum=i.indkey[0]"
        " WHERE c.relnamespace='agent_memory'::regnamespace AND c.relkind='p'",
        database,
    )

    assert {name for name, _ in found} == set(TENANT_TABLES)
    assert {column for _, column in found} == {"tenant_id"}


def test_the_owner_sees_no_rows_either(postgres: PostgresProcess, database: str, store: Store) -> None:
    """The walls are forced: who migrates does not read."""
    with psycopg.connect(postgres.url(OWNER, database)) as owner:
        assert rows(owner, "SELECT * FROM agent_memory.records") == []


def test_inspection_sees_all_and_changes_nothing(
    postgres: PostgresProcess, database: str, store: Store
) -> None:
    """The second role reads rows of every tenant, but no key of a subject, and writes none."""
    url = postgres.url(OPERATOR, database)
    with psycopg.connect(url, options="-c search_path=agent_memory") as operator:
        operator.execute(f"SET ROLE {INSPECTION}".encode())
        for table in TENANT_TABLES:
            if table not in NOT_INSPECTED:
                assert {one for (one,) in rows(operator, f"SELECT tenant_id FROM {table}")} == {TENANT, OTHER}
            for verb in (f"DELETE FROM {table}", f"INSERT INTO {table} SELECT * FROM {table}"):
                with pytest.raises(errors.InsufficientPrivilege), operator.transaction():
                    operator.execute(verb.encode())
        for table in NOT_INSPECTED:
            with pytest.raises(errors.InsufficientPrivilege), operator.transaction():
                operator.execute(f"SELECT * FROM {table}".encode())


def test_a_service_cannot_look_across_tenants(store: Store) -> None:
    """A look at several tenants, or at all, is refused to who may not act in the role of inspection."""
    for tenants in (None, (TENANT, OTHER)):
        with pytest.raises(StoreCapabilityError, match=INSPECTION):
            ask(store, tenant_ids=tenants)
    with pytest.raises(StoreCapabilityError):
        list(store.log(False))

    assert ids(ask(store)) == ["child", "parent"]


def test_a_service_needs_no_second_role_for_its_work(store: Store) -> None:
    """Search, examination, keys, forgetting and the log of one tenant at a time."""
    request = SearchRequest((TENANT,), open_plan(), ("support",), NOW_US, 10)
    with store.examine(request, 10) as (page, batches):
        assert [[one.memory_id for one in batch] for batch in batches] == [ids(page)]
    assert store.subject_key(OTHER, "user-42", False) != store.subject_key(TENANT, "user-42", False)
    assert forget(store).records == 1

    assert ids(ask(store, tenant_ids=(OTHER,))) == ["child", "parent"]


def test_a_tenant_that_was_set_does_not_stay_with_the_pool(store: Store) -> None:
    """After reads, writes and errors, no connection of the pool has a tenant."""
    with pytest.raises(Exception, match="exists"):
        put(store, make_record("parent"))
    ask(store, "support")
    pool = store._pool  # type: ignore[attr-defined]

    assert pool.common("SELECT nullif(current_setting('app.tenant', true), ''), current_user") == [
        (None, APPLICATION)
    ]


@pytest.mark.parametrize("user", ["postgres", OWNER])
def test_who_could_step_round_the_walls_is_not_let_in(
    postgres: PostgresProcess, database: str, user: str, tmp_path: Path
) -> None:
    """A store is not opened by a superuser or by the owner."""
    with pytest.raises(StoreCapabilityError, match="no wall holds"):
        open_store(postgres.url(user, database))
