"""Conformance cases about forgetting: a subject goes with every trace, and nobody else does."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.errors import RevisionConflictError
from agent_runtime_ref.stores.base import Change, ForgetCounts, Slot, Store, WriteBatch
from agent_runtime_ref.stores.digests import tombstone_digest
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.testing.conformance_base import TENANT, StoreCases, ask, ids, put, raises
from agent_runtime_ref.testing.records import NOW_US, make_record

SUBJECT = "user-42"
MANY = 10_000


def forget(store: Store, subject: str = SUBJECT, *, dry_run: bool = False) -> ForgetCounts:
    """Forget a subject with one log line."""

    def lines_for(counts: ForgetCounts) -> Sequence[str]:
        return [f'{{"records":{counts.records}}}']

    return store.forget(TENANT, subject, now_us=NOW_US, dry_run=dry_run, lines_for=lines_for)


def fill(store: Store) -> None:
    """Two records of the subject, one of them superseded; two derived, over two steps; and others."""
    records: list[MemoryRecord] = [
        make_record("own-1", subject=SUBJECT, content="apricot marmalade", key="jam", status="superseded"),
        make_record("own-2", subject=SUBJECT, content="quince marmalade", key="jam", revision=2),
        make_record("child", content="prefers fruit", derived_from=("own-1",), memory_class="profile"),
        make_record("grandchild", subject="user-7", content="buys fruit", derived_from=("child", "other")),
        make_record("other", subject="user-4", content="plum marmalade"),
        make_record("nobody", content="support queue"),
    ]
    store.commit(WriteBatch([Change(one, dedup=one.memory_id.encode(), exclusive=False) for one in records]))
    put(store, make_record("own-1", subject=SUBJECT, tenant_id="tenant-b", content="apricot marmalade"))
    store.subject_key(TENANT, SUBJECT, True)


class ForgettingCases(StoreCases):
    """Erasure by subject within a tenant."""

    def test_a_subject_goes_with_what_was_derived(self) -> None:
        """Records, revisions, derived records over any steps, terms and dedup keys are gone."""
        with self.opened() as store:
            fill(store)
            counts = forget(store)

            assert (counts.records, counts.derived, counts.superseded) == (2, 2, 1)
            assert counts.by_class == {"long_term": 3, "profile": 1}
            assert (counts.dedup_keys, counts.tombstones, counts.log_key_destroyed) == (3, 4, True)
            assert counts.notes == ()
            assert sorted(ids(ask(store))) == ["nobody", "other"]
            for word in ("apricot", "quince", "fruit"):
                assert ask(store, word).considered == 0
            assert ids(ask(store, "marmalade")) == ["other"]
            gone = ["own-1", "own-2", "child", "grandchild"]
            assert store.fetch(TENANT, gone) == []
            assert store.find_duplicate(TENANT, [one.encode() for one in gone]) == {}

    def test_other_tenants_and_subjects_stay(self) -> None:
        """The same subject id in another tenant, and the same words of another subject, are not touched."""
        with self.opened() as store:
            fill(store)
            forget(store)

            assert ids(ask(store, "apricot", tenant_ids=("tenant-b",))) == ["own-1"]
            assert store.fetch(TENANT, ["other"])[0].subject == "user-4"

    def test_a_dry_run_counts_and_leaves_everything(self) -> None:
        """A dry run gives the counts of the real one, is logged, and changes nothing else."""
        with self.opened() as store:
            fill(store)
            before = ids(ask(store))
            planned = forget(store, dry_run=True)
            assert store.forgets() == 0
            assert ids(ask(store)) == before
            assert store.subject_key(TENANT, SUBJECT, False) is not None
            done = forget(store)

            assert store.forgets() == 1
            assert planned.dry_run is True
            assert done.dry_run is False
            same = (
                "records",
                "derived",
                "superseded",
                "postings",
                "dedup_keys",
                "tombstones",
                "by_class",
                "digests",
            )
            assert all(getattr(planned, name) == getattr(done, name) for name in same)
            assert done.postings > 0

    def test_the_key_goes_and_the_chain_still_holds(self) -> None:
        """The subject's log key is destroyed; a later one is another; the log verifies."""
        with self.opened() as store:
            fill(store)
            key = store.subject_key(TENANT, SUBJECT, False)
            forget(store)

            assert store.subject_key(TENANT, SUBJECT, False) is None
            assert store.subject_key(TENANT, SUBJECT, True) != key
            lines = list(store.log(False))
            assert [chain.body(line) for line in lines] == ['{"records":2}']
            assert chain.verify(lines) is None

    def test_a_tombstone_knows_the_content_again(self) -> None:
        """What was forgotten is known again in the same tenant, in any spacing, case or normal form."""
        with self.opened() as store:
            fill(store)
            forget(store)
            key = store.store_key()
            again = tombstone_digest(key, TENANT, SUBJECT, "  Apricot\nMARMALADE ")
            elsewhere = tombstone_digest(key, "tenant-b", SUBJECT, "apricot marmalade")
            others = [tombstone_digest(key, TENANT, one, "apricot marmalade") for one in (None, "user-4")]

            assert store.tombstoned(TENANT, [again, elsewhere, *others, b"x"]) == {again}
            assert store.tombstoned("tenant-b", [again, elsewhere]) == set()
            assert ask(store).considered == 2
            late = Change(make_record("late", content="apricot marmalade"), unforgotten=again)
            raises(RevisionConflictError, store.commit, WriteBatch([late]))

    def test_redacted_content_is_known_again_as_it_was_written(self) -> None:
        """Of a redacted record both what was kept and what was written leave a tombstone."""
        with self.opened() as store:
            redacted = make_record("own", subject=SUBJECT, content="the key is [redacted]")
            store.commit(WriteBatch([Change(redacted, original=b"as it was written")]))
            counts = forget(store)
            kept = tombstone_digest(store.store_key(), TENANT, SUBJECT, redacted.content)

            assert counts.tombstones == 2
            assert store.tombstoned(TENANT, [b"as it was written", kept]) == {b"as it was written", kept}

    def test_forgetting_again_or_nobody_finds_nothing(self) -> None:
        """A second time, an unknown subject and one that looks like it find nothing and are logged."""
        with self.opened() as store:
            fill(store)
            forget(store)

            for subject in (SUBJECT, "user-4%", "user-", "user_4"):
                counts = forget(store, subject)
                assert (counts.records, counts.derived, counts.tombstones) == (0, 0, 0)
            assert store.revision() == 5

    def test_the_same_memory_can_be_written_later(self) -> None:
        """Id and dedup key are free again; whether the content may come back is the policy's to say."""
        with self.opened() as store:
            fill(store)
            forget(store)
            record = make_record("own-1", subject=SUBJECT, content="apricot marmalade")
            store.commit(WriteBatch([Change(record, dedup=b"own-1")]))

            assert ids(ask(store, "apricot")) == ["own-1"]

    def test_ten_thousand_records_go_in_one_bounded_call(self) -> None:
        """Forgetting costs no more than a few times what writing did, and nothing of them is found."""
        records = [make_record(f"own-{n:05}", subject=SUBJECT, content=f"plum {n}") for n in range(MANY)]
        with self.opened() as store:
            put(store, make_record("other", content="plum"))
            begun = perf_counter()
            for start in range(0, MANY, 1000):
                part = [Change(one, dedup=one.memory_id.encode()) for one in records[start : start + 1000]]
                store.commit(WriteBatch(part))
            written = perf_counter()
            counts = forget(store)
            forgotten = perf_counter()

            assert (counts.records, counts.dedup_keys, counts.tombstones) == (MANY, MANY, MANY)
            assert ids(ask(store, "plum")) == ids(ask(store)) == ["other"]
            assert store.fetch(TENANT, [one.memory_id for one in records]) == []
            assert store.find_duplicate(TENANT, [one.memory_id.encode() for one in records]) == {}
            assert store.heads(TENANT, [Slot(None, "long_term", "validated_fact", None)])[0] is not None
            # A ratio, since the machine may be a busy one; what is not bounded is a hundred times slower.
            assert forgotten - written < 5 * (written - begun) + 5
