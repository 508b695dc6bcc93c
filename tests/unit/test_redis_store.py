"""What is a Redis store's own: its address, its server, its expiry, and what it makes of foreign values."""

from __future__ import annotations

import json
import re
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
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
    StoreAddressError,
    StoreCapabilityError,
    StoreDamagedError,
    StoreError,
    StoreVersionError,
)
from agent_runtime_ref.stores import registry
from agent_runtime_ref.stores.base import ChainedByTenant, Change, Head, Slot, WriteBatch
from agent_runtime_ref.stores.redis import RedisStore, names, view
from agent_runtime_ref.stores.redis.address import parsed
from agent_runtime_ref.stores.redis.names import STORE, Names
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.testing import NOW_US, FrozenClock, make_record
from agent_runtime_ref.testing.conformance_base import TENANT, ask, ids, put
from agent_runtime_ref.testing.conformance_forgetting import forget
from agent_runtime_ref.testing.records import clause, open_plan
from tests.opa import free_port
from tests.redis_server import SAVED_NOWHERE, RedisProcess, certificates, require_redis, started

HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "keep-a-session-in-redis.md"
NAMES = Names.of(TENANT)
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
SLOT = Slot(None, "long_term", "validated_fact", "queue")
LIVES = 10_000_000  # microseconds that are left of a record's life when it is put


@pytest.fixture
def store(redis_server: RedisProcess) -> Iterator[RedisStore]:
    """An empty store."""
    with closing(RedisStore(redis_server.url())) as opened:
        yield opened


def put_ending(
    store: RedisStore, memory_id: str = "mem-1", *, after_us: int = LIVES, **changes: object
) -> None:
    """Put a record whose life ends so long after the decision."""
    record = make_record(memory_id, expires_at=instant(NOW_US + after_us), **changes)
    store.commit(WriteBatch([Change(record, dedup=memory_id.encode(), exclusive=False)], now_us=NOW_US))


def keys(server: RedisProcess) -> set[str]:
    """The names of all keys of the tenant that hold records or indexes of them."""
    found = {one.decode() for one in server.run("KEYS", f"{NAMES.base}*")}
    return {one for one in found if one.removeprefix(NAMES.base)[0] in "radskfc"}


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


def test_who_only_looks_makes_nothing(redis_server: RedisProcess) -> None:
    """Where no store is there, that is said."""
    with pytest.raises(StoreAddressError, match="no store"):
        open_store(redis_server.url(), must_exist=True)
    assert redis_server.run("DBSIZE") == 0


def test_a_store_is_made_once(redis_server: RedisProcess) -> None:
    """Who opens it again has the same key; another database of the server has another store."""
    found = []
    for database in (0, 0, 1):
        with closing(RedisStore(redis_server.url(database))) as store:
            found.append(store.store_key())
    assert found[0] == found[1] != found[2]


def test_it_is_durable_where_every_write_is_on_disk_first(redis_server: RedisProcess) -> None:
    """Neither without a file of changes, nor where that waits for a second, nor where that is not told."""

    def durable(**settings: str) -> bool:
        for name, value in settings.items():
            redis_server.run("CONFIG", "SET", name, value)
        with closing(RedisStore(redis_server.url())) as store:
            return store.durable

    try:
        assert not durable()
        assert not durable(appendonly="yes", appendfsync="everysec")
        assert durable(appendfsync="always")
        redis_server.run("ACL", "SETUSER", "service", "on", ">pw", "~*", "+@all", "-config")
        with closing(RedisStore(f"redis://service:pw@127.0.0.1:{redis_server.port}/0")) as store:
            assert store.durable is False
    finally:
        redis_server.run("ACL", "DELUSER", "service")
        redis_server.run("CONFIG", "SET", "appendonly", "no")


def test_a_server_that_throws_keys_away_is_refused(redis_server: RedisProcess) -> None:
    """What it evicts could be a tombstone or a line of the log."""
    redis_server.run("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(StoreCapabilityError, match=r"allkeys-lru.*noeviction"):
            open_store(redis_server.url())
    finally:
        redis_server.run("CONFIG", "SET", "maxmemory-policy", "noeviction")
    assert redis_server.run("DBSIZE") == 0


def test_a_replica_is_refused(redis_server: RedisProcess) -> None:
    """It takes no writes, and may be behind."""
    redis_server.run("REPLICAOF", "127.0.0.1", "1")
    try:
        with pytest.raises(StoreCapabilityError, match="replica"):
            open_store(redis_server.url())
    finally:
        redis_server.run("REPLICAOF", "NO", "ONE")


def test_a_server_that_becomes_a_replica_takes_no_write(
    redis_server: RedisProcess, store: RedisStore
) -> None:
    """Nothing is written, and nothing is tried again."""
    redis_server.run("REPLICAOF", "127.0.0.1", "1")
    try:
        with pytest.raises(StoreCapabilityError, match="replica"):
            put(store, make_record())
    finally:
        redis_server.run("REPLICAOF", "NO", "ONE")
    assert store.fetch(TENANT, ["mem-001"]) == []


def test_a_cluster_is_refused() -> None:
    """A script there may not change what two tenants share."""
    require_redis()
    # Its members talk to each other at a port that lies so far above; not every free one has such another.
    port = next(port for port in iter(free_port, 0) if port + 10_000 < 65_536)
    server_of_a_cluster = started(*SAVED_NOWHERE, "--cluster-enabled", "yes", port=port)
    with server_of_a_cluster as server, pytest.raises(StoreCapabilityError, match="cluster"):
        open_store(server.url())


class _Elsewhere(socketserver.StreamRequestHandler):
    """Answers to everything that another server has it."""

    def handle(self) -> None:
        while line := self.rfile.readline():
            if line.startswith(b"*"):
                for _ in range(2 * int(line[1:])):
                    self.rfile.readline()
                self.server.asked += 1  # type: ignore[attr-defined]
                self.wfile.write(b"-MOVED 1 127.0.0.1:%d\r\n" % self.server.other)  # type: ignore[attr-defined]


@contextmanager
def _answering(other: int) -> Iterator[socketserver.ThreadingTCPServer]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Elsewhere) as server:
        server.daemon_threads = True
        server.other, server.asked = other, 0  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_no_redirect_is_followed() -> None:
    """A server that names another one is refused, and the other one is not asked."""
    with _answering(1) as other, _answering(other.server_address[1]) as server:
        with pytest.raises(StoreCapabilityError, match="not followed"):
            open_store(f"redis://127.0.0.1:{server.server_address[1]}/0")
        assert server.asked > 0  # type: ignore[attr-defined]
        assert other.asked == 0  # type: ignore[attr-defined]


def test_the_rights_of_the_how_to_are_enough_and_none_is_too_many(redis_server: RedisProcess) -> None:
    """Without any one of them the store is refused when it is opened, before half a write can happen."""
    told = re.search(r"ACL SETUSER service (.*)", HOW_TO.read_text(encoding="utf-8"))
    assert told is not None
    url = f"redis://service:pw@127.0.0.1:{redis_server.port}/0"

    def opened(rights: list[str]) -> RedisStore:
        redis_server.run("ACL", "SETUSER", "service", "reset", ">pw", *rights)
        redis_server.run("SCRIPT", "FLUSH")
        return RedisStore(url)

    rights = [one for one in told[1].split() if not one.startswith(">")]
    try:
        with closing(opened(rights)) as store:
            put_ending(store, subject="user-42", key="queue")
            store.subject_key(TENANT, "user-42", True)
            store.append_lines(chain.Lines.of(TENANT, ["{}"]), read=True)
            assert ids(ask(store)) == ids(ask(store, tenant_ids=None)) == ["mem-1"]
            assert forget(store).records == 1
            assert len(list(store.log(False))) == 1
        for missing in rights:
            # Whether each write is on disk first may stay unknown: then the store is not durable.
            if missing.startswith("+") and missing != "+config|get":
                with pytest.raises(StoreError):
                    opened([one for one in rights if one != missing])
    finally:
        redis_server.run("ACL", "DELUSER", "service")


def test_a_newer_store_is_refused(redis_server: RedisProcess, store: RedisStore) -> None:
    """And left as it is."""
    redis_server.run("HSET", STORE, "format", "9")
    with pytest.raises(StoreVersionError, match="format is 9"):
        open_store(redis_server.url())


@pytest.mark.parametrize(
    "words", [("SET", STORE, "x"), ("HSET", STORE, "format", "1", "id", "a", "key", "zz")]
)
def test_what_is_no_store_is_told(redis_server: RedisProcess, words: tuple[str, ...]) -> None:
    """A value of somebody else in the place of the store is left as it is."""
    redis_server.run(*words)
    with pytest.raises(StoreDamagedError):
        open_store(redis_server.url())
    assert redis_server.run("DBSIZE") == 1


@given(
    st.lists(st.text(st.characters(codec=None, exclude_categories=()), max_size=6), min_size=2, max_size=2)
)
def test_two_ids_never_make_one_name(texts: list[str]) -> None:
    """Any id is found again in its name, and in it stands nothing that parts names."""
    encoded = [names.encoded(one) for one in texts]
    assert [names.decoded(one, "redis:") for one in encoded] == texts
    assert all(":" not in one and one != names.NOBODY for one in encoded)


def test_the_server_removes_what_has_expired(redis_server: RedisProcess, store: RedisStore) -> None:
    """Record, dedup key and every index entry are gone by themselves; nobody has to sweep."""
    put(store, make_record("parent", subject="user-7"))
    before = keys(redis_server)
    put_ending(store, after_us=20_000, subject="user-42", key="queue", derived_from=("parent",))
    deadline = time.monotonic() + 10
    while redis_server.run("EXISTS", NAMES.record("mem-1")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.01)

    assert store.fetch(TENANT, ["mem-1"]) == []
    assert ids(ask(store)) == ["parent"]
    assert store.find_duplicate(TENANT, [b"mem-1"]) == {}
    assert {one for one in keys(redis_server) if redis_server.run("EXISTS", one)} == before


def test_a_life_is_counted_from_the_decision(redis_server: RedisProcess, store: RedisStore) -> None:
    """Whatever the clock of the server shows: it keeps a record, and its key, as long as was left of it."""
    put_ending(store, subject="user-42", key="queue")
    places = [
        NAMES.record("mem-1"),
        NAMES.dedup(b"mem-1"),
        *(NAMES.index(one) for one in ("a", names.of_subject("user-42"), names.of_key("user-42", "queue"))),
    ]
    left = [redis_server.run("PTTL", one) for one in places]

    assert all(0 < one <= LIVES // 1000 for one in left), left
    assert max(left) - min(left) < 1000


def test_an_index_lives_as_long_as_its_last_record(redis_server: RedisProcess, store: RedisStore) -> None:
    """One that never expires keeps the index; the ids of the others leave it when they go."""
    index = NAMES.index("a")
    put_ending(store, "long")
    put_ending(store, "short", after_us=LIVES // 10)
    assert LIVES // 2000 < redis_server.run("PTTL", index) <= LIVES // 1000
    put(store, make_record("ever"))
    assert redis_server.run("PTTL", index) == -1


def test_a_replaced_record_keeps_its_end(redis_server: RedisProcess, store: RedisStore) -> None:
    """What supersedes it does not lengthen its life; and one that has just gone does not come back."""
    put_ending(store, key="queue")
    head = store.heads(TENANT, [SLOT], NOW_US)[0]
    assert head == Head("mem-1", 2, 1, "active")
    change = Change(make_record("mem-2", key="queue", revision=2), head)
    store.commit(WriteBatch([change], now_us=NOW_US))
    assert store.fetch(TENANT, ["mem-1"])[0].status == "superseded"
    assert 0 < redis_server.run("PTTL", NAMES.record("mem-1")) <= LIVES // 1000


def test_what_goes_while_it_is_replaced_does_not_come_back(
    redis_server: RedisProcess, store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server removes a record between the look and the change: the change leaves it removed."""
    from agent_runtime_ref.stores.redis import store as module

    put_ending(store, key="queue")
    head = store.heads(TENANT, [SLOT], NOW_US)[0]
    original = module.send

    def expired(server: object, steps: object) -> object:
        redis_server.run("DEL", NAMES.record("mem-1"))
        return original(server, steps)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "send", expired)
    store.commit(WriteBatch([Change(make_record("mem-2", key="queue", revision=2), head)], now_us=NOW_US))

    assert [one.memory_id for one in store.fetch(TENANT, ["mem-1", "mem-2"])] == ["mem-2"]


def test_what_outlives_its_origin_is_forgotten_with_its_subject(
    redis_server: RedisProcess, store: RedisStore
) -> None:
    """A record of nobody, derived over two steps from one about the subject that has expired since."""
    put_ending(store, "own", subject="user-42")
    put(store, make_record("child", derived_from=("own",)))
    put(store, make_record("grandchild", subject="user-7", derived_from=("child",)))
    put(store, make_record("other", subject="user-7"))
    for memory_id in ("own", "child"):
        redis_server.run("DEL", NAMES.record(memory_id))
    counts = forget(store, "user-42")

    assert (counts.records, counts.derived) == (0, 1)
    assert ids(ask(store)) == ["other"]


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
