"""How the database runs a search, in the application's role and within its walls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent_runtime_ref.stores.base import Change, SearchRequest, WriteBatch
from agent_runtime_ref.stores.postgres import PostgresStore
from agent_runtime_ref.testing import NOW_US, make_record, open_plan
from agent_runtime_ref.testing.conformance_base import TENANT, tenant_plan
from agent_runtime_ref.testing.records import clause
from tests.postgres import SERVICE, PostgresProcess


@pytest.fixture(scope="module")
def store(postgres: PostgresProcess) -> Iterator[PostgresStore]:
    """Six thousand records of thirty tenants, whose statistics are known."""
    name = postgres.migrated_database()
    with closing(PostgresStore(postgres.url(SERVICE, name))) as opened:
        for tenant in (TENANT, *(f"tenant-{number}" for number in range(29))):
            changes = [
                Change(make_record(f"mem-{n}", tenant_id=tenant, content=f"word{n} common"), exclusive=False)
                for n in range(200)
            ]
            opened.commit(WriteBatch(changes))
        postgres.run("ANALYZE", name)
        yield opened
    postgres.drop(name)


def explained(store: PostgresStore, *terms: str, plan: object = None) -> str:
    """The account of a search, with what each step found."""
    admits = clause("filter", "MEM-R-204", ("trust_rank", "gte", 1))
    wall = tenant_plan().clauses
    request = SearchRequest((TENANT,), plan or open_plan(*wall, admits), terms or None, NOW_US, 10)  # type: ignore[arg-type]
    return "\n".join(_executed(store.explain(request)))


def _executed(account: list[str]) -> list[str]:
    """The lines of steps that were run: a plan for any value has those for all partitions."""
    kept: list[str] = []
    idle: int | None = None
    for line in account:
        depth = len(line) - len(line.lstrip(" "))
        if idle is not None and depth > idle:
            continue
        idle = depth if "never executed" in line else None
        kept += [line] if idle is None else []
    return kept


def test_terms_are_looked_up_by_tenant_and_term(store: PostgresStore) -> None:
    """The wall and the term are one condition of one index, of one partition; records follow by their key."""
    account = explained(store, "word7", "word8")

    assert "Seq Scan on postings" not in account
    assert "Seq Scan on records" not in account
    lookups = [line.strip() for line in account.splitlines() if "Index Cond" in line]
    assert any("tenant_id = " in line and "term = " in line for line in lookups), account
    assert any("tenant_id = " in line and "rid = " in line for line in lookups), account
    assert "current_setting('app.tenant'" in account, "the wall is part of the plan"


def test_only_the_tenants_partition_is_read(store: PostgresStore) -> None:
    """The other partitions of each table are left out."""
    account = explained(store, "word7", "word8")
    read = set(re.findall(r" on (?:postings|records|contents)_(\d)", account))

    assert len(read) == 1, account
    assert "Subplans Removed: 7" in account


def test_ids_are_looked_up(store: PostgresStore) -> None:
    """A selector of ids goes through the index on ids."""
    plan = open_plan(*tenant_plan().clauses, clause("selector", "MEM-R-012", ("record_id", "in", ("mem-1",))))
    account = explained(store, plan=plan)

    assert "Seq Scan on records" not in account
    assert any(
        "tenant_id = " in line and "memory_id = " in line
        for line in account.splitlines()
        if "Index Cond" in line
    ), account


def test_without_text_only_the_tenants_rows_are_read(store: PostgresStore, tmp_path: Path) -> None:
    """A read without text looks at the tenant's records by an index that begins with the tenant."""
    account = explained(store)

    assert "Seq Scan on records" not in account, account
