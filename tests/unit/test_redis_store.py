"""What is a Redis store's own: its names, what it makes of foreign values, its bounds, its chains."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_runtime_ref import Caller, GovernedMemory, MemoryCandidate, RetrievalQuery
from agent_runtime_ref.__main__ import main
from agent_runtime_ref.clock import instant
from agent_runtime_ref.errors import (
    DecisionLogError,
    StoreCapabilityError,
    StoreDamagedError,
)
from agent_runtime_ref.stores.base import ChainedByTenant, Change, Head, WriteBatch
from agent_runtime_ref.stores.redis import RedisStore, names, view
from agent_runtime_ref.stores.redis.names import Names
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.testing import NOW_US, FrozenClock, make_record
from agent_runtime_ref.testing.conformance_base import TENANT, ask, ids, put
from agent_runtime_ref.testing.records import clause, open_plan
from tests.redis_records import NAMES, SLOT, put_ending
from tests.redis_server import RedisProcess

CALLER = Caller(tenant_id=TENANT, principal_id="assistant", roles=("operator",))
NOTE = {
    "tenant_id": TENANT,
    "memory_class": "short_term",
    "kind": "working_note",
    "content": "The caller prefers the office in Oslo.",
    "source": "user_input",
    "confidence": 0.9,
    "provenance": "session-1",
}


@pytest.fixture
def store(redis_server: RedisProcess) -> Iterator[RedisStore]:
    """An empty store."""
    with closing(RedisStore(redis_server.url())) as opened:
        yield opened


@given(
    st.lists(st.text(st.characters(codec=None, exclude_categories=()), max_size=6), min_size=2, max_size=2)
)
def test_two_ids_never_make_one_name(texts: list[str]) -> None:
    """Any id is found again in its name, and in it stands nothing that parts names."""
    encoded = [names.encoded(one) for one in texts]
    assert [names.decoded(one, "redis:") for one in encoded] == texts
    assert all(":" not in one and one != names.NOBODY for one in encoded)


@pytest.mark.parametrize("value", ["", "{}", "not json", '{"record":{"record_id":1}}', "\udcff"])
def test_garbage_in_the_place_of_a_record_is_told(
    redis_server: RedisProcess, store: RedisStore, value: str
) -> None:
    """By the id of the record, without its content, and nothing else is touched."""
    put(store, make_record("mem-1", content="apricot"))
    redis_server.run("SET", NAMES.record("mem-1"), value.encode("utf-8", "surrogateescape"))  # type: ignore[arg-type]
    with pytest.raises(StoreDamagedError, match="mem-1"):
        ask(store)
    with pytest.raises(StoreDamagedError, match="mem-1"):
        store.fetch(TENANT, ["mem-1"])


def test_another_record_under_the_name_of_one_is_told(redis_server: RedisProcess, store: RedisStore) -> None:
    """A value moved from one name to another, or from one tenant to another, is no record of that name."""
    put(store, make_record("mem-1"), make_record("mem-2"))
    put(store, make_record("mem-1", tenant_id="tenant-b"))
    for source in (NAMES.record("mem-2"), Names.of("tenant-b").record("mem-1")):
        redis_server.run("COPY", source, NAMES.record("mem-1"), "REPLACE")
        with pytest.raises(StoreDamagedError, match="another record"):
            store.fetch(TENANT, ["mem-1"])


@pytest.mark.parametrize("place", ["record", "index", "children", "standing", "lines", "tombstones", "dedup"])
def test_a_value_of_another_type_refuses_the_whole_write(
    redis_server: RedisProcess, store: RedisStore, place: str
) -> None:
    """Whichever key of the write it stands under: nothing at all was written."""
    key = {
        "record": NAMES.record("mem-1"),
        "index": NAMES.index("a"),
        "children": NAMES.index(names.from_record("parent")),
        "standing": NAMES.standing,
        "lines": NAMES.lines(read=False),
        "tombstones": NAMES.revisions,
        "dedup": NAMES.dedup(b"d"),
    }[place]
    redis_server.run("SADD", key, "foreign")
    before = redis_server.run("DBSIZE")
    record = make_record("mem-1", derived_from=("parent",))
    with pytest.raises(StoreDamagedError, match="another type"):
        store.commit(WriteBatch([Change(record, dedup=b"d")], ['{"kept":1}']))

    assert redis_server.run("DBSIZE") == before
    redis_server.run("DEL", key)
    store.commit(WriteBatch([Change(record, dedup=b"d")], ['{"kept":1}']))
    assert ids(ask(store)) == ["mem-1"]


def test_a_log_that_was_cut_takes_no_more_lines(redis_server: RedisProcess, store: RedisStore) -> None:
    """A line is put behind the one that was last, or not at all; and so is its record."""
    put(store, make_record("mem-1"), lines=['{"kept":1}', '{"kept":2}'])
    redis_server.run("RPOP", NAMES.lines(read=False))
    with pytest.raises(DecisionLogError, match="removed"):
        put(store, make_record("mem-2"), lines=['{"kept":3}'])

    assert ids(ask(store)) == ["mem-1"]


def test_a_search_loads_whom_it_may_see(redis_server: RedisProcess, store: RedisStore) -> None:
    """Walls and selectors on the subject say what is loaded; what is about others is not even looked at."""
    for name in ("user-1", "user-2", None):
        put(store, make_record(f"of-{name}", subject=name))
    redis_server.run("SET", NAMES.record("of-user-2"), "garbage")
    wall = clause("wall", "W", ("subject", "is_null", None), ("subject", "eq", "user-1"))
    only = clause("selector", "S", ("subject", "in", ("user-1", "user-2")))
    assert ids(ask(store, plan=open_plan(wall))) == ["of-None", "of-user-1"]
    assert ids(ask(store, plan=open_plan(wall, only))) == ["of-user-1"]
    for wider in (
        clause("filter", "F", ("subject", "eq", "user-1")),
        clause("wall", "W", ("subject", "eq", "user-1"), ("kind", "eq", "x")),
        clause("wall", "W", ("subject", "ne", "user-2")),
        clause("wall", "W", ("subject", "eq", "user-1"), classes=("profile",)),
    ):
        with pytest.raises(StoreDamagedError):
            ask(store, plan=open_plan(wider))


def test_one_look_has_a_bound(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that answers one question answers no other meanwhile."""
    monkeypatch.setattr(view, "RECORDS_MAX", 2)
    put(store, *(make_record(f"mem-{n}", subject=f"user-{n % 2}") for n in range(2)))
    assert len(ask(store).matches) == 2
    put(store, make_record("mem-2", subject="user-0"))
    with pytest.raises(StoreCapabilityError, match="name a subject"):
        ask(store)
    plan = open_plan(clause("wall", "W", ("subject", "eq", "user-0")))
    assert len(ask(store, plan=plan).matches) == 2


def test_tenants_have_chains_of_their_own(store: RedisStore) -> None:
    """Each is whole by itself, and its name does not tell the tenant."""
    assert isinstance(store, ChainedByTenant)
    for number in range(2):
        for tenant in (TENANT, "tenant-b"):
            lines = chain.Lines.of(tenant, [f'{{"n":{number}}}'])
            record = make_record(f"mem-{number}", tenant_id=tenant)
            store.commit(WriteBatch([Change(record)], lines))
            store.append_lines(chain.Lines.of(tenant, ["{}"]), read=True)
            assert lines.chain is not None
    store.append_lines(["{}"], read=False)

    for read, expected in ((False, [1, 2, 2]), (True, [0, 2, 2])):
        found = list(store.chains(read))
        assert [one.tenant_id for one in found] == [None, TENANT, "tenant-b"]
        lines_of = [[line.decode() for line in one.raw()] for one in found]
        assert [len(one) for one in lines_of] == expected
        assert all(chain.verify(one) is None for one in lines_of)
        assert not any("acme" in one.name for one in found)


def test_a_session_through_the_gates(
    redis_server: RedisProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Write, read, expire and forget; what is to be kept durably is refused; the log verifies."""
    url, clock = redis_server.url(), FrozenClock()
    query = RetrievalQuery("t-1", "s-1", TENANT, "assistant", "answer_generation", ("short_term",), 5)
    with GovernedMemory.open(url, clock=clock) as memory:
        assert redis_server.password not in memory.store_url
        receipt = memory.write(MemoryCandidate(**NOTE), caller=CALLER)
        assert receipt.record is not None
        assert receipt.record.expires_at is not None
        left = redis_server.run("PTTL", NAMES.record(receipt.record.memory_id))
        assert 0 < left <= (receipt.record.expires_at - instant(NOW_US)) / timedelta(milliseconds=1) + 1
        result = memory.read(query, caller=CALLER, text="office")
        assert [hit.record.content for hit in result.hits] == [NOTE["content"]]
        lasting = {**NOTE, "memory_class": "long_term", "kind": "validated_fact", "source": "trusted_service"}
        with pytest.raises(StoreCapabilityError, match="durably"):
            memory.write(MemoryCandidate(**lasting), caller=CALLER)
        clock.advance(days=400)
        late = memory.read(query, caller=CALLER, text="office")
        assert late.hits == ()
        assert memory.forget(subject="nobody", caller=CALLER).records == 0

    assert main(["trace", "verify", "--store", url, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True
    assert main(["inspect-memory", "--store", url, "--format", "json"]) == 0
    assert redis_server.password not in capsys.readouterr().out
    redis_server.run("LSET", NAMES.lines(read=True), 0, "{}")
    assert main(["trace", "verify", "--store", url, "--format", "json"]) == 1


def test_no_revision_is_given_twice(redis_server: RedisProcess, store: RedisStore) -> None:
    """The count of a class and kind goes on where the record that had it has expired."""
    put_ending(store, revision=4)
    redis_server.run("DEL", NAMES.record("mem-1"))

    assert store.heads(TENANT, [SLOT._replace(key=None)]) == [Head(None, 0, 4, "active")]
