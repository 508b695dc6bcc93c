"""Conformance cases about writing: what is put comes back, and conflicting writers are told."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from agent_runtime_ref.clock import instant
from agent_runtime_ref.contracts import MemoryRecord, Origin
from agent_runtime_ref.errors import DuplicateRecordError, RevisionConflictError, StoreError
from agent_runtime_ref.stores.base import Change, Head, Held, Parent, Slot, Store, WriteBatch
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.testing.conformance_base import TENANT, StoreCases, ask, ids, put, raises
from agent_runtime_ref.testing.records import NOW, NOW_US, make_record

# Ids that careless comparison, escaping or joining would take for one another.
ALIKE = (
    "acme",
    "Acme",
    "acme-eu",
    "acme%",
    "a_me",
    "acm_",
    "acme ",
    " acme",
    "acme/",
    "acme:eu",
    "acme|eu",
    "caf\u00e9",
    "cafe\u0301",
    "ａｃｍｅ",
    "acme*",
    "'acme'",
)
SLOT = Slot(None, "long_term", "validated_fact", "queue")


def replace_with(store: Store, record: MemoryRecord, *, dedup: bytes | None = None) -> tuple[str, ...]:
    """Commit `record` over what is active in its slot, and return what it superseded."""
    slot = Slot(record.subject, record.memory_class, record.kind, record.key)
    head = store.heads(record.tenant_id, [slot])[0]
    return store.commit(WriteBatch([Change(record, supersedes=head, dedup=dedup)]))[0].superseded


class WritingCases(StoreCases):
    """Writing, revisions, duplicates and the log."""

    def test_every_field_comes_back(self) -> None:
        """A record is fetched and found as it was put, every field of it."""
        record = make_record(
            "mem-full",
            subject="user-42",
            key="queue",
            summary="a summary",
            origin=Origin("src-1", "transcript", "A title", datetime(2026, 4, 1, 1, 2, 3, 4, tzinfo=UTC)),
            created_at=datetime(2026, 5, 1, 0, 0, 0, 1, tzinfo=UTC),
            expires_at=datetime(2199, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
            confidence=0.123456789,
            revision=7,
            status="quarantined",
            derived_from=("mem-b", "mem-a"),
            scope=("label:one", "label two"),
            content="多层记忆\n\tcafé \U0001f680",
        )
        with self.opened() as store:
            put(store, record)

            assert store.fetch(TENANT, ["mem-full"]) == [record]
            assert ask(store).matches[0].record() == record

    def test_optional_fields_stay_absent(self) -> None:
        """What a record does not have it does not get."""
        record = make_record("mem-bare", retention=None, expires_at=None)
        with self.opened() as store:
            put(store, record)

            assert store.fetch(TENANT, ["mem-bare"]) == [record]

    def test_tenants_that_look_alike_are_different(self) -> None:
        """Ids are compared byte for byte: no pattern, no case, no normal form, no trimming."""
        with self.opened() as store:
            for number, tenant_id in enumerate(ALIKE):
                put(store, make_record(f"mem-{number}", tenant_id=tenant_id))
            for number, tenant_id in enumerate(ALIKE):
                assert ids(ask(store, tenant_ids=(tenant_id,))) == [f"mem-{number}"]
                assert ids(ask(store, "support", tenant_ids=(tenant_id,))) == [f"mem-{number}"]

    def test_record_ids_that_look_alike_are_different(self) -> None:
        """Two records whose ids differ in one byte are two records."""
        with self.opened() as store:
            put(store, *(make_record(memory_id) for memory_id in ALIKE))

            assert [one.memory_id for one in store.fetch(TENANT, ALIKE)] == list(ALIKE)
            assert set(store.lineage(TENANT, ALIKE)) == set(ALIKE)

    def test_same_id_in_two_tenants(self) -> None:
        """An id is unique within its tenant only."""
        with self.opened() as store:
            put(store, make_record("mem-1", content="ours"))
            put(store, make_record("mem-1", content="theirs", tenant_id="tenant-b"))

            assert store.fetch(TENANT, ["mem-1"])[0].content == "ours"
            assert store.fetch("tenant-b", ["mem-1"])[0].content == "theirs"

    def test_same_id_twice_is_refused(self) -> None:
        """A record is never overwritten."""
        with self.opened() as store:
            put(store, make_record("mem-1", content="first"))
            raises(RevisionConflictError, put, store, make_record("mem-1", content="second"))

            assert store.fetch(TENANT, ["mem-1"])[0].content == "first"

    def test_a_then_b_then_a_leaves_one_active(self) -> None:
        """Replacing back and forth leaves exactly one active record, and its text is no duplicate."""
        with self.opened() as store:
            assert replace_with(store, make_record("mem-1", key="queue", content="A"), dedup=b"a") == ()
            second = make_record("mem-2", key="queue", content="B", revision=2)
            assert replace_with(store, second, dedup=b"b") == ("mem-1",)
            third = make_record("mem-3", key="queue", content="A", revision=3)
            assert replace_with(store, third, dedup=b"a") == ("mem-2",)

            statuses = {one.memory_id: one.status for one in store.fetch(TENANT, ["mem-1", "mem-2", "mem-3"])}
            assert statuses == {"mem-1": "superseded", "mem-2": "superseded", "mem-3": "active"}
            assert store.heads(TENANT, [SLOT]) == [Head("mem-3", 2, 3, "active")]
            assert store.find_duplicate(TENANT, [b"a", b"b"]) == {b"a": "mem-3"}

    def test_a_chain_within_one_batch(self) -> None:
        """A later change of a batch sees the earlier ones."""
        first, second = make_record("mem-1", key="queue"), make_record("mem-2", key="queue", revision=2)
        head = Head("mem-1", 2, 1, "active")
        with self.opened() as store:
            outcomes = store.commit(WriteBatch([Change(first), Change(second, supersedes=head)]))

            assert [outcome.superseded for outcome in outcomes] == [(), ("mem-1",)]
            assert store.heads(TENANT, [SLOT]) == [Head("mem-2", 2, 2, "active")]

    def test_a_moved_head_refuses_the_whole_batch(self) -> None:
        """A writer that saw an older head writes nothing of its batch."""
        with self.opened() as store:
            replace_with(store, make_record("mem-1", key="queue"))
            seen = store.heads(TENANT, [SLOT])[0]
            replace_with(store, make_record("mem-2", key="queue", revision=2))
            late = [Change(make_record("mem-3")), Change(make_record("mem-4", key="queue"), supersedes=seen)]
            raises(RevisionConflictError, store.commit, WriteBatch(late, ['{"late":1}']))

            assert [one.memory_id for one in store.fetch(TENANT, ["mem-2", "mem-3", "mem-4"])] == ["mem-2"]
            assert list(store.log(False)) == []

    def test_no_head_expected_means_no_head_there(self) -> None:
        """`supersedes=None` with a key refuses where a record is active, unless the writer says otherwise."""
        with self.opened() as store:
            replace_with(store, make_record("mem-1", key="queue"))
            late = make_record("mem-2", key="queue")
            raises(RevisionConflictError, store.commit, WriteBatch([Change(late)]))
            store.commit(WriteBatch([Change(late, exclusive=False)]))

            assert len(ask(store).matches) == 2

    def test_quarantined_replaces_nothing(self) -> None:
        """A record in quarantine leaves the active one active."""
        with self.opened() as store:
            replace_with(store, make_record("mem-1", key="queue"))
            held = make_record("mem-2", key="queue", revision=2, status="quarantined")
            assert replace_with(store, held) == ()

            assert store.heads(TENANT, [SLOT]) == [Head("mem-1", 2, 1, "active")]

    def test_slots_of_other_subjects_classes_and_kinds_are_others(self) -> None:
        """A slot is tenant, subject, class, kind and key together; no subject is one of its own."""
        with self.opened() as store:
            replace_with(store, make_record("mem-1", key="queue"))
            replace_with(store, make_record("mem-2", key="queue", subject="user-42"))
            replace_with(store, make_record("mem-3", key="queue", memory_class="profile"))
            replace_with(store, make_record("mem-4", key="queue", kind="preference"))
            replace_with(store, make_record("mem-5", key="queue", tenant_id="tenant-b"))

            assert store.heads(TENANT, [SLOT, SLOT._replace(subject="user-42")]) == [
                Head("mem-1", 2, 1, "active"),
                Head("mem-2", 2, 1, "active"),
            ]

    def test_without_a_key_the_revision_count_goes_on(self) -> None:
        """A slot without a key answers the highest revision of its class and kind, and names no record."""
        slot = SLOT._replace(key=None)
        with self.opened() as store:
            assert store.heads(TENANT, [slot]) == [None]
            put(store, make_record("mem-1", revision=4), make_record("mem-2", revision=2))
            head = store.heads(TENANT, [slot])[0]
            assert head is not None
            assert (head.memory_id, head.revision) == (None, 4)
            put(store, make_record("mem-3", revision=5))

            late = Change(make_record("mem-4", revision=5), supersedes=head)
            raises(RevisionConflictError, store.commit, WriteBatch([late]))

    def test_a_duplicate_names_the_record_that_is_there(self) -> None:
        """Of two writes with one dedup key the second is refused, also within a batch."""
        with self.opened() as store:
            store.commit(WriteBatch([Change(make_record("mem-1"), dedup=b"digest")]))
            again = WriteBatch([Change(make_record("mem-2"), dedup=b"digest")])
            raised = raises(DuplicateRecordError, store.commit, again)
            assert isinstance(raised, DuplicateRecordError)
            assert raised.existing == "mem-1"
            twice = [Change(make_record(one), dedup=b"other") for one in ("mem-3", "mem-4")]
            raises(DuplicateRecordError, store.commit, WriteBatch(twice))

            assert len(ask(store).matches) == 1

    def test_what_a_write_relied_on_is_looked_at_again(self) -> None:
        """A parent that is gone or changed, and a duplicate that is gone, refuse the whole batch."""
        seen = Parent(2, None, "active")
        stale = [
            WriteBatch([Change(make_record("mem-2"), parents={"mem-1": seen._replace(trust_rank=1)})]),
            WriteBatch([Change(make_record("mem-2"), parents={"mem-none": seen})]),
            WriteBatch([], ["{}"], held=[Held(TENANT, b"digest", "mem-none")]),
            WriteBatch([], ["{}"], held=[Held(TENANT, b"other", "mem-1")]),
        ]
        with self.opened() as store:
            store.commit(WriteBatch([Change(make_record("mem-1"), dedup=b"digest")]))
            for batch in stale:
                raises(RevisionConflictError, store.commit, batch)
            assert list(store.log(False)) == []
            good = Change(make_record("mem-2"), parents={"mem-1": seen}, unforgotten=b"never")
            store.commit(WriteBatch([good], held=[Held(TENANT, b"digest", "mem-1")]))

            assert ids(ask(store)) == ["mem-1", "mem-2"]

    def test_a_slot_that_was_vacant_is_looked_at_again(self) -> None:
        """What a write contradicts and did not find refuses the whole batch where it came meanwhile."""
        other = Slot(None, "long_term", "validated_fact", "not:queue")
        writing = [
            Change(make_record(f"mem-{number}", key=key), vacant=(slot,))
            for number, key, slot in ((1, "queue", other), (2, "not:queue", SLOT))
        ]
        with self.opened() as store:
            store.commit(WriteBatch(writing[:1], now_us=NOW_US))
            raises(RevisionConflictError, store.commit, WriteBatch(writing[1:], ["{}"], now_us=NOW_US))
            assert ids(ask(store)) == ["mem-1"]
            assert list(store.log(False)) == []

            ended = make_record("mem-3", key="ended", expires_at=NOW)
            elsewhere = make_record("mem-1", key="elsewhere", tenant_id="tenant-b")
            store.commit(WriteBatch([Change(ended), Change(elsewhere)], now_us=NOW_US - 1))
            free = [SLOT._replace(key=key) for key in ("ended", "elsewhere", "none")]
            store.commit(WriteBatch([Change(make_record("mem-4", key="new"), vacant=free)], now_us=NOW_US))

            assert "mem-4" in ids(ask(store))

    def test_an_expired_record_gives_way(self) -> None:
        """It heads no slot and holds no dedup key; a replacement counts its revision on."""
        gone = make_record("mem-1", key="queue", trust_level="high", revision=3, expires_at=NOW)
        fresh = make_record("mem-2", key="queue", revision=4)
        with self.opened() as store:
            store.commit(WriteBatch([Change(gone, dedup=b"digest")]))
            assert store.heads(TENANT, [SLOT], NOW_US - 1) == [Head("mem-1", 3, 3, "active")]
            assert store.find_duplicate(TENANT, [b"digest"], NOW_US - 1) == {b"digest": "mem-1"}
            head = store.heads(TENANT, [SLOT], NOW_US)[0]
            assert head == Head("mem-1", 0, 3, "expired")
            assert store.find_duplicate(TENANT, [b"digest"], NOW_US) == {}

            twice = make_record("mem-2")  # the whole batch is taken back, the key of the expired one too
            failing = [Change(make_record("mem-2"), dedup=b"digest"), Change(twice)]
            raises(RevisionConflictError, store.commit, WriteBatch(failing, now_us=NOW_US))
            assert store.find_duplicate(TENANT, [b"digest"]) == {b"digest": "mem-1"}
            (outcome,) = store.commit(WriteBatch([Change(fresh, head, dedup=b"digest")], now_us=NOW_US))

            assert outcome.superseded == ("mem-1",)
            assert store.find_duplicate(TENANT, [b"digest"], NOW_US) == {b"digest": "mem-2"}
            assert store.heads(TENANT, [SLOT], NOW_US) == [Head("mem-2", 2, 4, "active")]

    def test_an_append_beside_an_expired_record_keeps_the_key(self) -> None:
        """The dedup key stays with the new record when the expired one is superseded."""
        gone = make_record("mem-1", key="queue", expires_at=NOW)
        with self.opened() as store:
            store.commit(WriteBatch([Change(gone, dedup=b"digest")]))
            again = make_record("mem-2", key="queue", kind="preference")
            store.commit(WriteBatch([Change(again, dedup=b"digest", exclusive=False)], now_us=NOW_US))
            head = store.heads(TENANT, [SLOT], NOW_US)[0]
            replacement = Change(make_record("mem-3", key="queue", revision=2), head)
            failing = WriteBatch([replacement, Change(make_record("mem-3"))], now_us=NOW_US)
            raises(RevisionConflictError, store.commit, failing)
            store.commit(WriteBatch([replacement], now_us=NOW_US))

            assert store.find_duplicate(TENANT, [b"digest"], NOW_US) == {b"digest": "mem-2"}

    def test_dedup_keys_are_a_tenants_own(self) -> None:
        """The same memory of another tenant is no duplicate."""
        with self.opened() as store:
            store.commit(WriteBatch([Change(make_record("mem-1"), dedup=b"digest")]))

            assert store.find_duplicate("tenant-b", [b"digest"]) == {}

    def test_lineage_says_what_has_expired(self) -> None:
        """At the instant at which its life ends an active record is told as expired, and not before."""
        ends = instant(NOW_US)
        with self.opened() as store:
            put(store, make_record("mem-1", expires_at=ends))
            put(store, make_record("mem-2", expires_at=ends, status="quarantined"))
            put(store, make_record("mem-3"))
            wanted = ["mem-1", "mem-2", "mem-3"]

            before = {one: found.status for one, found in store.lineage(TENANT, wanted, NOW_US - 1).items()}
            after = {one: found.status for one, found in store.lineage(TENANT, wanted, NOW_US).items()}
            assert before == {"mem-1": "active", "mem-2": "quarantined", "mem-3": "active"}
            assert after == {"mem-1": "expired", "mem-2": "quarantined", "mem-3": "active"}

    def test_children_are_those_of_a_tenant(self) -> None:
        """One step of derivation, of any status, by its own tenant's ids, of parents that are gone too."""
        with self.opened() as store:
            put(store, make_record("mem-1"))
            put(store, make_record("mem-2", derived_from=("mem-1", "mem-0")))
            put(store, make_record("mem-3", derived_from=("mem-2",), status="quarantined"))
            put(store, make_record("mem-4", derived_from=("mem-1",), tenant_id="tenant-b"))

            assert store.children(TENANT, ["mem-1"]) == ["mem-2"]
            assert store.children(TENANT, ["mem-0", "mem-2", "mem-1"]) == ["mem-2", "mem-3"]
            assert store.children("tenant-b", ["mem-1"]) == ["mem-4"]
            assert store.children(TENANT, ["mem-4", "mem-%"]) == []
            assert store.children(TENANT, []) == []

    def test_lineage_of_a_thousand_ids(self) -> None:
        """Heads, lineage and duplicates are asked for a thousand at a time."""
        records = [
            make_record(f"mem-{number:04d}", subject="u" if number % 2 else None) for number in range(1500)
        ]
        with self.opened() as store:
            changes = [Change(one, dedup=one.memory_id.encode()) for one in records]
            store.commit(WriteBatch(changes))
            wanted = [one.memory_id for one in records] + ["mem-none"]

            assert store.lineage(TENANT, wanted) == {
                one.memory_id: Parent(2, one.subject, "active") for one in records
            }
            assert len(store.find_duplicate(TENANT, [one.encode() for one in wanted])) == 1500
            assert len(store.heads(TENANT, [SLOT] * 1500)) == 1500

    def test_log_lines_are_chained_and_survive(self) -> None:
        """Every line is sealed in order, behind the one before it, whatever it was written with."""
        bodies = ['{"number":1}', '{"number":2,"text":"多层"}', "{}"]
        with self.opened() as store:
            put(store, make_record("mem-1"), lines=bodies[:2])
            before = store.revision()
            store.append_lines(chain.Lines.of(TENANT, bodies[2:]), read=False)
            lines = list(store.log(False))

            assert [chain.body(line) for line in lines] == bodies
            assert [json.loads(line)["seq"] for line in lines] == [1, 2, 3]
            assert chain.verify(lines) is None
            assert (before, store.revision()) == (2, 3)

    def test_log_lines_are_read_on_from_where_one_was_left(self) -> None:
        """An export reads what stands behind a line, and never the whole log again."""
        bodies = ['{"number":1}', '{"number":2}', '{"number":3}']
        with self.opened() as store:
            put(store, make_record("mem-1"), lines=bodies)

            whole = list(store.raw_log(False))
            assert [line.decode() for line in whole] == list(store.log(False))
            assert list(store.raw_log(False, 1)) == whole[1:]
            assert list(store.raw_log(False, 3)) == []

    def test_keys_are_made_once(self) -> None:
        """A subject's key is made when it is asked for, stays, and differs by subject and tenant."""
        with self.opened() as store:
            assert store.subject_key(TENANT, "user-42", False) is None
            key = store.subject_key(TENANT, "user-42", True)
            others = [store.subject_key(*one, True) for one in ((TENANT, "user-4"), ("tenant-b", "user-42"))]

            assert key is not None
            assert len(key) == 32
            assert store.subject_key(TENANT, "user-42", False) == key
            assert key not in others
            assert len(store.store_key()) == 32

    def test_a_closed_store_refuses(self) -> None:
        """After close, nothing is read or written."""
        with self.opened() as store:
            store.close()

            raises(StoreError, ask, store)
            raises(StoreError, put, store, make_record())
