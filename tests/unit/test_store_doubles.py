"""Store addresses, the in-memory log, and the stand-ins for tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_runtime_ref.errors import DecisionLogError, StoreAddressError, StoreCapabilityError, StoreError
from agent_runtime_ref.stores.base import Change, Head, Slot, WriteBatch
from agent_runtime_ref.stores.in_memory import InMemoryStore
from agent_runtime_ref.stores.memory_log import MemoryLog
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.testing import CountedIds, FaultyStore, FrozenClock, LyingStore, make_record
from agent_runtime_ref.testing.conformance_base import TENANT, ask, ids, put, tenant_plan


@pytest.mark.parametrize(
    "url",
    [
        "",
        "memory",
        "memcached://x",
        "sqlite:",
        "sqlite: ",
        "sqlite::memory:",
        "sqlite:no/such/folder/m.db",
        "memory:x",
    ],
)
def test_an_address_that_is_not_understood(url: str) -> None:
    """An unknown or incomplete address is refused."""
    with pytest.raises(StoreAddressError):
        open_store(url)


@pytest.mark.parametrize("content", [None, b""])
def test_looking_makes_no_store(tmp_path: Path, content: bytes | None) -> None:
    """A store that has to exist is not made: neither of nothing nor of an empty file."""
    path = tmp_path / "memory.db"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StoreAddressError):
        open_store(f"sqlite:{path}", must_exist=True)

    assert [one.read_bytes() for one in tmp_path.iterdir()] == ([] if content is None else [content])


def test_looking_at_the_reads_makes_no_file(tmp_path: Path) -> None:
    """The file of reads comes with its first line."""
    url = f"sqlite:{tmp_path / 'memory.db'}"
    open_store(url).close()
    store = open_store(url, must_exist=True)

    assert list(store.log(True)) == []
    assert not (tmp_path / "memory.db.reads").exists()
    store.append_lines(["{}"], read=True)
    assert len(list(store.log(True))) == 1
    store.close()


def test_an_unknown_scheme_names_the_known_ones() -> None:
    """The refusal says what could have been meant."""
    with pytest.raises(StoreAddressError, match=r"memory:.*seeds:.*sqlite:PATH"):
        open_store("mysql:somewhere")


def test_a_log_file_that_would_be_ignored_is_refused(tmp_path: Path) -> None:
    """A store that keeps its own log takes no other: an argument is never ignored."""
    with pytest.raises(StoreCapabilityError):
        open_store(f"sqlite:{tmp_path / 'm.db'}", log=tmp_path / "log.jsonl")


def test_the_log_in_memory_is_bounded() -> None:
    """The oldest lines are dropped, the numbers of the others say how many; the chain goes on."""
    log = MemoryLog(lines_max=3)
    log.append([f'{{"n":{number}}}' for number in range(5)], read=False)

    kept = list(log.lines(read=False))
    assert (len(kept), chain.head(kept[0])[0], log.last_number()) == (3, 3, 5)
    assert chain.verify(log.lines(read=False), prev_hash=None) is None


def test_a_log_that_cannot_be_written_takes_the_write_back(tmp_path: Path) -> None:
    """Records, supersession, dedup keys and revision counts are as they were."""
    store = InMemoryStore(log=tmp_path / "log.jsonl")
    slot = Slot(None, "long_term", "validated_fact", "queue")
    store.commit(WriteBatch([Change(make_record("mem-1", key="queue"), dedup=b"a")], ["{}"]))
    (tmp_path / "log.jsonl").unlink()
    (tmp_path / "log.jsonl").mkdir()
    change = Change(make_record("mem-2", key="queue", revision=2), store.heads(TENANT, [slot])[0], b"b")
    with pytest.raises(DecisionLogError):
        store.commit(WriteBatch([change], ["{}"]))
    (tmp_path / "log.jsonl").rmdir()

    assert store.heads(TENANT, [slot, slot._replace(key=None)]) == [
        Head("mem-1", 2, 1, "active"),
        Head(None, 0, 1, "active"),
    ]
    assert store.find_duplicate(TENANT, [b"a", b"b"]) == {b"a": "mem-1"}
    assert ids(ask(store, "support")) == ["mem-1"]


def test_a_lying_store_hands_out_what_the_plan_excludes() -> None:
    """Another tenant's record comes first."""
    store = open_store("memory:")
    put(store, make_record("mem-1"), make_record("mem-2", tenant_id="tenant-b"))
    lying = LyingStore(store, extra=lambda attributes: attributes["tenant_id"] == "tenant-b")

    assert ids(ask(lying, "support", plan=tenant_plan())) == ["mem-2", "mem-1"]


def test_a_faulty_store_fails_once() -> None:
    """Only the chosen call fails."""
    store = FaultyStore(
        open_store("memory:"), method="append_lines", error=StoreError("memory:", "full"), on_call=2
    )
    store.append_lines(["{}"], read=True)
    with pytest.raises(StoreError, match="full"):
        store.append_lines(["{}"], read=True)
    store.append_lines(["{}"], read=True)

    assert len(list(store.log(True))) == 2


def test_time_stands_still_and_ids_count() -> None:
    """A frozen clock moves when told to; ids count by kind."""
    clock, ids_ = FrozenClock(1_000), CountedIds()
    clock.advance(microseconds=1, seconds=2, days=1)

    assert clock.now_us() == 1_000 + 1 + 2_000_000 + 86_400_000_000
    assert [ids_.new("mem"), ids_.new("mem"), ids_.new("dec")] == ["mem-000001", "mem-000002", "dec-000001"]
