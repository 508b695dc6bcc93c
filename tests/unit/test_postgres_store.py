"""What is a PostgreSQL store's own: its address, its migrations, its chains."""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from agent_runtime_ref import Caller, GovernedMemory, MemoryCandidate, RetrievalQuery
from agent_runtime_ref.__main__ import main
from agent_runtime_ref.errors import (
    DecisionLogError,
    StoreAddressError,
    StoreCapabilityError,
    StoreDamagedError,
    StoreError,
    StoreVersionError,
)
from agent_runtime_ref.stores import registry
from agent_runtime_ref.stores.base import ChainedByTenant, Change, WriteBatch
from agent_runtime_ref.stores.postgres import PostgresStore, migrate
from agent_runtime_ref.stores.postgres.address import shown
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.testing import make_record
from agent_runtime_ref.testing.conformance_base import TENANT, ask, ids, put
from tests.postgres import APPLICATION, INSPECTION, OPERATOR, OWNER, SERVICE, PostgresProcess


@pytest.fixture
def empty(postgres: PostgresProcess) -> Iterator[str]:
    """A database without a schema."""
    name = postgres.create_database()
    yield name
    postgres.drop(name)


@pytest.fixture
def store(postgres: PostgresProcess, database: str) -> Iterator[PostgresStore]:
    """An empty store of an operator."""
    with closing(PostgresStore(postgres.url(OPERATOR, database))) as opened:
        yield opened


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://u:secret@h:1/db", "postgresql://u@h:1/db"),
        ("postgresql://h/db?user=u&password=secret", "postgresql://u@h/db"),
        ("postgresql:///db?sslpassword=secret", "postgresql:///db"),
        ("postgresql://h:1,[::1]:2/d%20b?sslmode=require", "postgresql://h:1,[::1]:2/d%20b"),
        ("postgresql:///db?host=/run/sockets", "postgresql://%2Frun%2Fsockets/db"),
        ("postgresql://u:se?cret@h/db", "postgresql://u@h/db"),
        ("postgresql://u:se#cret@h/db", "postgresql://u@h/db"),
        ("postgresql://u:secret@[::1/db", "postgresql:"),
        ("postgresql://u:se@cret@h/db", "postgresql:"),
        ("postgresql://u:se/cret@h/db", "postgresql:"),
        ("postgresql://u:12/cret@h/db", "postgresql:"),
        ("postgresql:u:secret@h", "postgresql:"),
        ("postgresql://h/db?PASSWORD=secret", "postgresql:"),
        ("postgresql://u:secret@h/%ff", "postgresql:"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, expected: str) -> None:
    """What stands in errors, receipts and output has no password in it, nor half of one."""
    assert shown(url) == expected
    assert expected == "postgresql:" or shown(expected) == expected


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:memory",
        "postgresql://u:secret@h:port/db?nonsense=1",
        "postgresql://h/d\0b",
        "postgresql:u:secret@h",
        "postgresql://u:se/cret@h/db",
        "postgresql://u:12/cret@h/db",
        "postgresql://u:se@cret@h/db",
        "postgresql://u:secret@h:65536/db",
        "postgresql://u:secret@h:secret/db",
        "postgresql://u:secret@h/\ud800",
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    """With a sentence that says how one is written, and without the password or half of it."""
    with pytest.raises(StoreAddressError, match="postgresql://USER@HOST") as raised:
        open_store(url)
    assert "secret" not in str(raised.value)
    assert "cret@" not in str(raised.value)


def test_a_log_file_is_refused(tmp_path: Path) -> None:
    """The store keeps its log itself."""
    with pytest.raises(StoreCapabilityError, match="decision log itself"):
        open_store("postgresql://127.0.0.1/memory", log=tmp_path / "log.jsonl")


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has not installed the extra is told which one."""
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    with pytest.raises(StoreCapabilityError, match=r"pip install '\.\[postgres\]'"):
        open_store("postgresql://127.0.0.1/memory")


def test_a_server_that_is_not_there_is_an_error(postgres: PostgresProcess) -> None:
    """Nobody answers, or there is no such database: a sentence, and no traceback."""
    with pytest.raises(StoreError, match="none"):
        open_store(postgres.url(SERVICE, "none"))
    with pytest.raises(StoreError):
        open_store("postgresql://service@127.0.0.1:1/memory")


def test_a_database_without_a_schema_is_refused(postgres: PostgresProcess, empty: str) -> None:
    """Opening makes nothing; the error says who does."""
    with pytest.raises(StoreError, match="migrate"):
        open_store(postgres.url(SERVICE, empty))
    assert postgres.run("SELECT 1 FROM pg_namespace WHERE nspname='agent_memory'", empty) == []


def test_migrating_again_changes_nothing(postgres: PostgresProcess, empty: str) -> None:
    """The key of the store, and what is in it, stay."""
    url = postgres.url(OWNER, empty)
    assert migrate(url)[1:] == (0, 1)
    with closing(PostgresStore(postgres.url(OPERATOR, empty))) as store:
        put(store, make_record("mem-1"))
        key = store.store_key()
    assert migrate(url)[1:] == (1, 1)

    with closing(PostgresStore(postgres.url(OPERATOR, empty))) as store:
        assert store.store_key() == key
        assert ids(ask(store, "support")) == ["mem-1"]


def test_of_many_that_migrate_at_once_one_does_it(postgres: PostgresProcess, empty: str) -> None:
    """The others wait for its lock, and find it done."""
    url = postgres.url(OWNER, empty)
    with ThreadPoolExecutor(3) as threads:
        done = list(threads.map(lambda _: migrate(url), range(3)))

    assert sorted(one.before for one in done) == [0, 1, 1]


def test_a_migration_that_fails_leaves_nothing(
    postgres: PostgresProcess, empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything is one transaction."""
    migrating = importlib.import_module("agent_runtime_ref.stores.postgres.migrate")
    monkeypatch.setattr(migrating, "grants", lambda *roles: ["GRANT SELECT ON nothing TO nobody"])
    with pytest.raises(StoreError):
        migrate(postgres.url(OWNER, empty))

    assert postgres.run("SELECT 1 FROM pg_namespace WHERE nspname='agent_memory'", empty) == []


def test_a_newer_schema_is_refused(postgres: PostgresProcess, empty: str) -> None:
    """Neither opened nor migrated, and left as it is."""
    migrate(postgres.url(OWNER, empty))
    postgres.run("UPDATE agent_memory.meta SET value='9' WHERE name='version'", empty)
    for action in (open_store, migrate):
        with pytest.raises(StoreVersionError, match="version 9"):
            action(postgres.url(OWNER if action is migrate else SERVICE, empty))

    assert postgres.run("SELECT value FROM agent_memory.meta WHERE name='version'", empty) == [(b"9",)]


@pytest.mark.parametrize("name", ["version", "analyser_version"])
def test_an_older_schema_wants_its_owner(postgres: PostgresProcess, empty: str, name: str) -> None:
    """A service does not migrate."""
    migrate(postgres.url(OWNER, empty))
    postgres.run(f"UPDATE agent_memory.meta SET value='0' WHERE name='{name}'", empty)
    with pytest.raises(StoreError, match="older"):
        open_store(postgres.url(SERVICE, empty))


def test_another_analyser_makes_the_owner_reindex(postgres: PostgresProcess, empty: str) -> None:
    """Postings are made anew for every tenant, and the walls stand afterwards."""
    migrate(postgres.url(OWNER, empty))
    with closing(PostgresStore(postgres.url(OPERATOR, empty))) as store:
        for tenant in (TENANT, "tenant-b"):
            put(store, *(make_record(f"mem-{n}", tenant_id=tenant, key="queue") for n in range(3)))
        before = postgres.run("SELECT * FROM agent_memory.postings ORDER BY 1,2,3", empty)
        postgres.run(
            "UPDATE agent_memory.postings SET term=term||'-old';"
            "UPDATE agent_memory.meta SET value='0' WHERE name='analyser_version'",
            empty,
        )
        migrate(postgres.url(OWNER, empty))

        assert postgres.run("SELECT * FROM agent_memory.postings ORDER BY 1,2,3", empty) == before
        assert ids(ask(store, "support")) == ["mem-0", "mem-1", "mem-2"]
    with psycopg.connect(postgres.url(OWNER, empty)) as owner:
        assert owner.execute("SELECT 1 FROM agent_memory.records").fetchall() == []


@pytest.mark.parametrize("role", ["nobody-there", "postgres", OWNER])
def test_a_role_that_no_wall_holds_is_not_served(postgres: PostgresProcess, empty: str, role: str) -> None:
    """A superuser, the owner and a role that does not exist are none for the application."""
    with pytest.raises(StoreCapabilityError, match=role):
        migrate(postgres.url(OWNER, empty), application=role)
    with pytest.raises(StoreCapabilityError, match="two roles"):
        migrate(postgres.url(OWNER, empty), inspection=APPLICATION)


def test_who_is_no_member_is_not_let_in(postgres: PostgresProcess, database: str) -> None:
    """A login without the application's role, and one with inspection alone."""
    postgres.run(f"CREATE ROLE stranger LOGIN PASSWORD '{postgres.password}'")
    postgres.run(f"CREATE ROLE looker LOGIN PASSWORD '{postgres.password}' IN ROLE {INSPECTION}")
    for user in ("stranger", "looker"):
        with pytest.raises(StoreCapabilityError, match="not a member"):
            open_store(postgres.url(user, database))


def test_a_changed_role_loses_what_it_had(postgres: PostgresProcess, empty: str) -> None:
    """Who was the application's role before has no way in any more."""
    postgres.run("CREATE ROLE second_app NOLOGIN")
    migrate(postgres.url(OWNER, empty))
    migrate(postgres.url(OWNER, empty), application="second_app")

    with psycopg.connect(postgres.url(SERVICE, empty)) as service, pytest.raises(psycopg.errors.Error):
        service.execute("SELECT 1 FROM agent_memory.records")


def test_a_table_that_is_gone_is_damage(postgres: PostgresProcess, empty: str) -> None:
    """What somebody took out of the database is told as damage."""
    migrate(postgres.url(OWNER, empty))
    with closing(PostgresStore(postgres.url(OPERATOR, empty))) as store:
        postgres.run("DROP TABLE agent_memory.tombstones", empty)
        with pytest.raises(StoreDamagedError, match="tombstones"):
            store.tombstoned(TENANT, [b"x"])


def test_each_tenant_has_a_chain_of_its_own(store: PostgresStore) -> None:
    """Lines of tenants are numbered apart, those of none in the store's chain; each chain verifies."""
    for tenant in (TENANT, "tenant-b"):
        put(store, make_record("mem-1", tenant_id=tenant), lines=['{"n":1}', '{"n":2}'])
        store.append_lines(chain.Lines.of(tenant, ['{"n":3}']), read=False)
        store.append_lines(chain.Lines.of(tenant, ['{"n":1}']), read=True)
    store.append_lines(['{"n":1}'], read=False)
    found = {one.tenant_id: [line.decode() for line in one.raw()] for one in store.chains(False)}

    assert isinstance(store, ChainedByTenant)
    assert list(found) == [None, TENANT, "tenant-b"]
    assert [len(lines) for lines in found.values()] == [1, 3, 3]
    assert all(chain.verify(lines) is None for lines in found.values())
    assert [len(list(one.raw())) for one in store.chains(True)] == [0, 1, 1]
    assert store.revision() == 7
    names = [one.name for read in (False, True) for one in store.chains(read)]
    assert len(set(names)) == 6
    assert not any(TENANT in name for name in names)


def test_lines_are_told_where_they_stand(store: PostgresStore) -> None:
    """An exported event can carry the name of its chain, its number and its hash."""
    write, read = chain.Lines.of(TENANT, ["{}"]), chain.Lines.of(TENANT, ["{}"])
    store.commit(WriteBatch([Change(make_record("mem-1"))], write))
    store.append_lines(read, read=True)
    chains = {
        one.name: [line.decode() for line in one.raw()] for r in (False, True) for one in store.chains(r)
    }

    for lines in (write, read):
        assert lines.chain is not None
        assert list(lines.sealed) == chains[lines.chain]


def test_tenants_do_not_wait_for_each_other(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a tenant's write is open, another tenant's is committed."""
    held, go_on = threading.Event(), threading.Event()

    def lines_for(_: object) -> list[str]:
        held.set()
        assert go_on.wait(30)
        return ["{}"]

    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(store.forget, TENANT, "u", now_us=0, dry_run=False, lines_for=lines_for)
        assert held.wait(30)
        put(store, make_record("mem-1", tenant_id="tenant-b"), lines=["{}"])
        store.append_lines(chain.Lines.of(TENANT, ["{}"]), read=True)
        assert not slow.done()
        go_on.set()
        slow.result()

    assert ids(ask(store, tenant_ids=("tenant-b",))) == ["mem-1"]


def test_lines_may_ask_for_keys_while_a_write_is_open(store: PostgresStore) -> None:
    """Also for those of another tenant; the write goes on with its own."""
    put(store, make_record("mem-1", subject="user-42"))

    def lines_for(_: object) -> list[str]:
        assert store.subject_key("tenant-b", "user-42", True)
        assert store.subject_key(TENANT, "user-42", True)
        return ["{}"]

    counts = store.forget(TENANT, "user-42", now_us=0, dry_run=False, lines_for=lines_for)

    assert counts.log_key_destroyed is False
    assert store.subject_key(TENANT, "user-42", False) is None
    assert store.subject_key("tenant-b", "user-42", False) is not None


def test_a_log_that_cannot_be_written_takes_the_write_back(
    store: PostgresStore, postgres: PostgresProcess, database: str
) -> None:
    """Neither a write without its line nor a read without one."""
    postgres.run(f"REVOKE INSERT ON agent_memory.log FROM {APPLICATION}", database)
    try:
        with pytest.raises(StoreError):
            put(store, make_record("mem-1"), lines=["{}"])
        with pytest.raises(DecisionLogError):
            store.append_lines(chain.Lines.of(TENANT, ["{}"]), read=True)
    finally:
        postgres.run(f"GRANT INSERT ON agent_memory.log TO {APPLICATION}", database)

    assert ask(store).considered == 0


CALLER = Caller(tenant_id=TENANT, principal_id="importer", roles=("operator",))
CANDIDATE: dict[str, Any] = {
    "tenant_id": TENANT,
    "memory_class": "long_term",
    "kind": "validated_fact",
    "content": "The office opens at nine.",
    "source": "trusted_service",
    "confidence": 0.9,
    "provenance": "handbook",
}


def test_governed_memory_as_a_service_opens_it(
    postgres: PostgresProcess, database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Write, read and forget through the gates in the application's role; then the operator verifies."""
    url = postgres.url(SERVICE, database)
    query = RetrievalQuery("t-1", "s-1", TENANT, "importer", "answer_generation", ("long_term",), 5)
    with GovernedMemory.open(url, trace=tmp_path / "trace.jsonl") as memory:
        assert postgres.password not in memory.store_url
        receipt = memory.write(MemoryCandidate(**CANDIDATE), caller=CALLER)
        result = memory.read(query, caller=CALLER, text="office")
        assert [hit.record.content for hit in result.hits] == [CANDIDATE["content"]]
        assert receipt.record is not None
        assert memory.forget(subject="nobody", caller=CALLER).records == 0
    events = [json.loads(line) for line in (tmp_path / "trace.jsonl").read_text().splitlines()]
    placed = {event["payload"]["log_chain"] for event in events if "log_chain" in event["payload"]}
    assert len(placed) == 2

    operator = postgres.url(OPERATOR, database)
    anchors = ["--anchors", str(tmp_path / "trace.jsonl")]
    assert main(["trace", "verify", "--store", operator, *anchors, "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is True
    assert placed < {one["chain"] for one in report["chains"]}
    postgres.run("UPDATE agent_memory.log SET line=replace(line,'importer','somebody')", database)
    assert main(["trace", "verify", "--store", operator, "--format", "json"]) == 1
    assert {one["kind"] for one in json.loads(capsys.readouterr().out)["findings"]} == {"altered"}


def test_the_commands(postgres: PostgresProcess, empty: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Migrate, write, read and inspect from the command."""
    assert main(["migrate", "--store", postgres.url(OWNER, empty), "--format", "json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done == {"store": shown(postgres.url(OWNER, empty)), "before": 0, "version": 1}
    with GovernedMemory.open(postgres.url(SERVICE, empty)) as memory:
        memory.write(MemoryCandidate(**CANDIDATE), caller=CALLER)
    assert main(["inspect-memory", "--store", postgres.url(OPERATOR, empty), "--format", "json"]) == 0
    shown_ = json.loads(capsys.readouterr().out)
    assert [one["content"] for one in shown_["records"]] == [CANDIDATE["content"]]
    assert postgres.password not in json.dumps(shown_)
    assert main(["inspect-memory", "--store", postgres.url(SERVICE, empty), "--format", "json"]) in (1, 2)
    assert INSPECTION in capsys.readouterr().err
    assert main(["migrate", "--store", "sqlite:memory.db"]) == 2
