"""Kinds of fault that users of memory systems reported, each tried on the gates, on every store."""

from __future__ import annotations

import os
import time
import unicodedata
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import (
    Caller,
    DocumentValueError,
    GovernedMemory,
    MemoryRecord,
    PolicyDeniedError,
    RetrievalQuery,
    WriteReceipt,
)
from agent_runtime_ref.clock import instant
from agent_runtime_ref.contracts import Origin
from agent_runtime_ref.errors import DecisionLogError, GovernanceError
from agent_runtime_ref.testing import CountedIds, FrozenClock
from tests.support import TENANT, caller, candidate, note, query


@pytest.fixture(params=["memory", "sqlite"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store."""
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path / 'memory.db'}"


@pytest.fixture
def clock() -> FrozenClock:
    """The clock of the fixture `memory`."""
    return FrozenClock()


@pytest.fixture
def memory(store_url: str, clock: FrozenClock) -> Iterator[GovernedMemory]:
    """An empty governed memory."""
    with GovernedMemory.open(store_url, clock=clock, ids=CountedIds()) as opened:
        yield opened


def _contents(memory: GovernedMemory, who: Caller, text: str | None = None, **changes: Any) -> list[str]:
    asked = query(tenant_id=who.tenant_id, principal_id=who.principal_id, limit=100, **changes)
    return [hit.record.content for hit in memory.read(asked, caller=who, text=text).hits]


LOOKALIKES = ["acme-eu", "acme%", "a_me", "ACME", "acme ", " acme", "acme\u200b", "ac", "acme.", "acmé"]
LOOKALIKES += ["*", "acme/x", "acme:x"]


@pytest.mark.parametrize("other", LOOKALIKES)
def test_tenants_that_look_alike_are_strangers(memory: GovernedMemory, other: str) -> None:
    """Ids are compared byte for byte: no prefix, wildcard, case, form or blank joins two tenants."""
    here, there = caller(tenant_id="acme"), caller(tenant_id=other)
    memory.write(note("mine", tenant_id="acme"), caller=here)
    try:
        memory.write(note("theirs", tenant_id=other), caller=there)
        seen = _contents(memory, there)
    except (PolicyDeniedError, GovernanceError):
        seen = []

    assert _contents(memory, here) == ["mine"]
    assert "mine" not in seen


def test_composed_and_decomposed_tenants_differ_while_text_is_one(memory: GovernedMemory) -> None:
    """Ids are raw, text is normalized: NFC and NFD tenants are two, NFC and NFD words one."""
    nfc, nfd = (unicodedata.normalize(form, "café") for form in ("NFC", "NFD"))
    memory.write(note(f"meet at {nfc}"), caller=caller())
    memory.write(note("x", tenant_id=nfc), caller=caller(tenant_id=nfc))

    assert _contents(memory, caller(), nfd) == [f"meet at {nfc}"]
    assert _contents(memory, caller(), "\uff43\uff41\uff46\u00e9") == [f"meet at {nfc}"]
    assert _contents(memory, caller(tenant_id=nfd)) == []


def test_an_owner_stored_on_write_is_honoured_on_read(memory: GovernedMemory) -> None:
    """What alice's agent keeps about alice, bob's session does not see; nor does a similar id."""
    alice = caller(principal_id="agent", subject="u1")
    memory.write(note("about alice", subject="u1"), caller=alice)

    for subject in ("u", "u2", "U1", "u1 "):
        assert _contents(memory, caller(principal_id="agent", subject=subject)) == []
    assert _contents(memory, alice) == ["about alice"]


@pytest.mark.parametrize("operation", ["search", "get", "list"])
def test_every_read_operation_passes_the_same_gate(memory: GovernedMemory, operation: str) -> None:
    """Reading by id or listing shows no more than searching."""
    kept = memory.write(note("theirs", tenant_id="tenant-b"), caller=caller(tenant_id="tenant-b"))
    asked = query(record_ids=[kept.record.memory_id])

    result = memory.read(asked, caller=caller(), operation=operation)

    assert (result.hits, result.document["excluded_records"]) == ((), 0)


def test_identity_comes_from_the_context_only(memory: GovernedMemory) -> None:
    """A tenant, principal or subject that a model names is compared with the caller's, never taken."""
    for attempt in (
        lambda: memory.read(query(tenant_id="tenant-b"), caller=caller()),
        lambda: memory.read(query(principal_id="root"), caller=caller()),
        lambda: memory.read(query(subject="user-7"), caller=caller()),
        lambda: memory.write(note("x", tenant_id="tenant-b"), caller=caller()),
        lambda: memory.write(note("x", subject="user-7"), caller=caller()),
    ):
        with pytest.raises(PolicyDeniedError) as refused:
            attempt()
        assert refused.value.decision.rule_ids


def test_one_principal_in_two_tenants_is_decided_by_the_active_one(memory: GovernedMemory) -> None:
    """A member of two tenants sees those of the tenant he acts in."""
    a, b = caller(tenant_id="a"), caller(tenant_id="b")
    memory.write(note("of a", tenant_id="a"), caller=a)
    memory.write(note("of b", tenant_id="b"), caller=b)

    assert (_contents(memory, a), _contents(memory, b)) == (["of a"], ["of b"])


def test_forgetting_in_one_tenant_leaves_the_other_whole(memory: GovernedMemory) -> None:
    """A scoped removal removes what is in scope, and nothing of the same subject elsewhere."""
    a = caller(tenant_id="a", subject="s")
    b = caller(tenant_id="b", subject="s")
    memory.write(note("of a", tenant_id="a", subject="s"), caller=a)
    memory.write(note("of b", tenant_id="b", subject="s"), caller=b)

    assert memory.forget(subject="s", caller=a).records == 1

    assert (_contents(memory, a, "of"), _contents(memory, b, "of")) == ([], ["of b"])


def test_a_forgotten_subject_that_comes_back_starts_empty(memory: GovernedMemory) -> None:
    """The same id used again sees nothing of what was forgotten, by text, key or id."""
    who = caller(subject="s")
    kept = memory.write(note("old words", subject="s", key="k"), caller=who)
    memory.forget(subject="s", caller=who)
    memory.write(note("new words", subject="s", key="k"), caller=who)

    assert _contents(memory, who, "words") == ["new words"]
    assert _contents(memory, who, keys=["k"]) == ["new words"]
    assert _contents(memory, who, record_ids=[kept.record.memory_id]) == []


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)  # every store: the conformance suite
def test_ten_thousand_records_are_forgotten_in_one_call(memory: GovernedMemory) -> None:
    """Erasure of a large subject is one bulk call, and its time is bounded."""
    who = caller(subject="s")
    memory.write_many([note(f"fact {n}", subject="s") for n in range(10_000)], caller=who)
    started = time.monotonic()

    receipt = memory.forget(subject="s", caller=who)

    assert receipt.records == 10_000
    assert time.monotonic() - started < 60
    assert _contents(memory, who, "fact") == []


@pytest.mark.parametrize("value", ["soon", "2026-04-07T12:00:00", "2026-04-07", "9999"])
def test_an_expiry_without_a_zone_or_sense_is_refused(value: str) -> None:
    """A naive or unparsable end does not mean `never`."""
    document = {
        "kind": "memory_record",
        "record_id": "mem-1",
        "tenant_id": TENANT,
        "memory_class": "profile",
        "key": "k",
        "value": "v",
        "source": "s",
        "provenance": "p",
        "revision": 1,
        "trust_level": "high",
        "created_at": "2026-04-07T12:00:00Z",
        "retention": "long_term",
        "expires_at": value,
    }
    with pytest.raises(DocumentValueError, match="expires_at"):
        MemoryRecord.from_document(document)


def test_expired_records_do_not_crowd_out_live_ones(memory: GovernedMemory, clock: FrozenClock) -> None:
    """Five expired records that match better leave the live one its place within the limit."""
    for number in range(5):
        memory.write(note(f"alpha beta gamma {number}"), caller=caller())
    clock.advance(days=31)
    memory.write(note("alpha only"), caller=caller())

    assert _contents(memory, caller(), "alpha beta gamma") == ["alpha only"]


def test_ties_are_always_ordered_the_same(memory: GovernedMemory) -> None:
    """Equal scores, trust and time fall back to the id, every time."""
    for number in range(6):
        memory.write(note("same words", provenance=f"turn-{number}"), caller=caller())
    asked = query(limit=3)
    orders = {
        tuple(hit.record.memory_id for hit in memory.read(asked, caller=caller(), text="same").hits)
        for _ in range(50)
    }

    assert len(orders) == 1
    assert list(next(iter(orders))) == sorted(next(iter(orders)))


def test_the_same_text_from_many_threads_is_one_record(memory: GovernedMemory) -> None:
    """Uniqueness is the store's, not a check before the insert."""
    with ThreadPoolExecutor(8) as threads:
        receipts = list(threads.map(lambda _: memory.write(note("only once"), caller=caller()), range(16)))

    assert len({receipt.record.memory_id for receipt in receipts}) == 1
    assert _contents(memory, caller()) == ["only once"]


def test_parallel_replacements_lose_no_revision(memory: GovernedMemory) -> None:
    """Each acknowledged replacement has a revision of its own, and one record is active."""

    def replace(number: int) -> WriteReceipt | None:
        try:
            return memory.write(note(f"value {number}", key="k", revision_mode="replace"), caller=caller())
        except GovernanceError:
            return None

    with ThreadPoolExecutor(4) as threads:
        receipts = [one for one in threads.map(replace, range(40)) if one is not None]

    revisions = sorted(receipt.record.revision for receipt in receipts)
    assert revisions == list(range(1, len(receipts) + 1))
    assert len(_contents(memory, caller())) == 1


@pytest.mark.parametrize(
    ("size", "fits"), [(2_001, True), (65_000, True), (70_000, False), (10_000_000, False)]
)
def test_a_long_text_is_kept_whole_or_refused(memory: GovernedMemory, size: int, fits: bool) -> None:
    """Nothing is cut in silence; what is too long is refused with the limit named."""
    text = "lorem ipsum " * (size // 12 + 1)
    if fits:
        assert memory.write(note(text[:size]), caller=caller()).record.content == text[:size]
        return
    with pytest.raises((DocumentValueError, PolicyDeniedError)) as refused:
        memory.write(note(text[:size]), caller=caller())
    assert "65536" in str(refused.value).replace(",", "") or "too_large" in str(refused.value)


def test_every_field_comes_back(memory: GovernedMemory) -> None:
    """What a writer gave beside content is returned as it was, lists of origins included."""
    parts = [memory.write(note(f"message {n}"), caller=caller()).record.memory_id for n in (1, 2)]
    origin = Origin("msg-17", "message", "a talk", instant(1_750_000_000_000_000))
    written = note("from two messages", key="k", summary="short", origin=origin, scope=("a", "b:c"),
                   derived_from=tuple(parts))  # fmt: skip

    memory.write(written, caller=caller())

    record = memory.read(query(keys=["k"]), caller=caller()).hits[0].record
    assert (record.origin, record.scope, record.summary) == (origin, ("a", "b:c"), "short")
    assert record.derived_from == tuple(parts)


def test_a_ledger_that_cannot_be_written_rolls_the_write_back(tmp_path: Path) -> None:
    """A write without its log line does not happen; a read without one is not answered."""
    path = tmp_path / "memory.db"
    with GovernedMemory.open(f"sqlite:{path}") as memory:
        memory.write(note("kept"), caller=caller())
        import sqlite3

        with sqlite3.connect(path) as raw:
            tables = "select name from sqlite_master where name like '%log%' and type = 'table'"
            table = raw.execute(tables).fetchone()[0]
            raw.execute(
                f"create trigger no_log before insert on {table} begin select raise(abort, 'ro'); end"
            )
        with pytest.raises(DecisionLogError):
            memory.write(note("not kept"), caller=caller())
        with sqlite3.connect(path) as raw:
            raw.execute("drop trigger no_log")
        assert _contents(memory, caller()) == ["kept"]


def test_an_unknown_filter_is_an_error_not_a_wider_answer() -> None:
    """A filter that the schema does not know is refused; it is never dropped."""
    for change in ({"filters": {"owner": "me"}}, {"owner": "me"}, {"filters": {"trust_min": "highest"}}):
        with pytest.raises(GovernanceError):
            RetrievalQuery.from_document(query().to_document() | change)


def test_an_empty_list_of_classes_opens_nothing(memory: GovernedMemory) -> None:
    """An empty scope is an error or a refusal, not `everything`."""
    memory.write(note("x"), caller=caller())
    with pytest.raises((PolicyDeniedError, DocumentValueError)):
        memory.read(query(allowed_classes=[]), caller=caller())


def test_acting_and_subject_identities_are_both_kept(memory: GovernedMemory) -> None:
    """What an agent writes for a user, the user's session reads."""
    memory.write(note("for you", subject="user-9"), caller=Caller(TENANT, "agent-x", subject="user-9"))

    mine = Caller(TENANT, "user-9")
    assert _contents(memory, mine) == ["for you"]


def test_files_of_a_store_are_private(tmp_path: Path) -> None:
    """Only the owner may read the files of a durable store."""
    with GovernedMemory.open(f"sqlite:{tmp_path / 'memory.db'}") as memory:
        memory.write(candidate(), caller=caller())
        memory.read(query(), caller=caller())
        modes = {path.name: os.stat(path).st_mode & 0o077 for path in tmp_path.iterdir()}

    assert len(modes) >= 2
    assert set(modes.values()) == {0}
