"""Conformance cases about the review queue: what waits is let go or removed, by one reviewer, once."""

from __future__ import annotations

from dataclasses import replace

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.errors import RevisionConflictError
from agent_runtime_ref.stores.base import Change, Queued, Rejected, Slot, Store, Waiting, WriteBatch
from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.testing.conformance_base import TENANT, StoreCases, ask, ids, put, raises
from agent_runtime_ref.testing.conformance_forgetting import forget
from agent_runtime_ref.testing.records import NOW_US, make_record

WAITING = Waiting(b"principal", b"agent", False)


def hold(
    store: Store, memory_id: str = "held", *, waiting: Waiting | None = WAITING, **changes: object
) -> Queued:
    """Put a record into quarantine, and return it as a reviewer sees it."""
    record = make_record(memory_id, status="quarantined", content="quince marmalade", **changes)
    change = Change(record, dedup=b"twin", original=b"as it was written", waiting=waiting, exclusive=False)
    store.commit(WriteBatch([change]))
    queued = store.queued(TENANT, memory_id)
    assert queued is not None
    return queued


def let_go(queued: Queued, **changes: object) -> Change:
    """The change that makes a record in quarantine active."""
    record: MemoryRecord = replace(queued.record, status="active", **changes)  # type: ignore[arg-type]
    return Change(record, dedup=queued.dedup, original=queued.original, queued=queued, exclusive=False)


class ReviewingCases(StoreCases):
    """Records in quarantine and what becomes of them."""

    def test_what_waits_is_found_with_who_wrote_it(self) -> None:
        """A record in quarantine comes back as it was put, with what is kept for its review."""
        with self.opened() as store:
            queued = hold(store)
            expected = make_record("held", status="quarantined", content="quince marmalade")

            assert queued == Queued(expected, WAITING, b"twin", b"as it was written")
            assert hold(store, "bare", waiting=None).waiting is None
            assert hold(store, "alone", waiting=Waiting(b"p", None, True)).waiting == Waiting(
                b"p", None, True
            )

    def test_nothing_else_is_in_the_queue(self) -> None:
        """An active record, one that is not there and another tenant's are not in quarantine."""
        with self.opened() as store:
            hold(store)
            store.commit(WriteBatch([Change(make_record("active"), waiting=WAITING)]))

            assert store.queued(TENANT, "active") is None
            assert store.queued(TENANT, "nobody") is None
            assert store.queued("tenant-b", "held") is None
            assert store.queued(TENANT, "HELD") is None

    def test_a_release_changes_the_record_in_its_place(self) -> None:
        """The released record is the one of its id, found by its words, with its duplicate key taken."""
        with self.opened() as store:
            queued = hold(store)
            change = let_go(queued, trust_level="low", retention="short_term")
            outcome = store.commit(WriteBatch([change], ['{"line":1}']))

            assert (outcome[0].memory_id, outcome[0].superseded) == ("held", ())
            assert store.fetch(TENANT, ["held"]) == [change.record]
            assert ids(ask(store)) == ids(ask(store, "quince")) == ["held"]
            assert store.find_duplicate(TENANT, [b"twin"]) == {b"twin": "held"}
            assert store.queued(TENANT, "held") is None
            assert [chain.body(line) for line in store.log(False)] == ['{"line":1}']

    def test_an_active_record_goes_into_quarantine_in_its_place(self) -> None:
        """Nobody finds it, its duplicate key is free, and it comes back as it was."""
        with self.opened() as store:
            record = make_record("jam", content="quince marmalade", key="jam", derived_from=("parent",))
            store.commit(WriteBatch([Change(record, dedup=b"twin", original=b"as written")]))
            seen = store.queued(TENANT, "jam", "active")
            assert seen == Queued(record, None, b"twin", b"as written")
            held = replace(record, status="quarantined")
            away = Change(held, dedup=b"twin", exclusive=False, original=b"as written", waiting=WAITING,
                          queued=seen)  # fmt: skip
            store.commit(WriteBatch([away], ['{"line":1}']))

            assert store.queued(TENANT, "jam") == Queued(held, WAITING, b"twin", b"as written")
            assert store.queued(TENANT, "jam", "active") is None
            assert store.find_duplicate(TENANT, [b"twin"]) == {}
            assert store.heads(TENANT, [Slot(None, "long_term", "validated_fact", "jam")]) == [None]
            assert store.children(TENANT, ["parent"]) == ["jam"]
            raises(RevisionConflictError, store.commit, WriteBatch([away]))
            waiting = store.queued(TENANT, "jam")
            assert waiting is not None
            store.commit(WriteBatch([let_go(waiting)]))
            assert store.fetch(TENANT, ["jam"]) == [record]
            assert ids(ask(store, "quince")) == ["jam"]
            assert store.find_duplicate(TENANT, [b"twin"]) == {b"twin": "jam"}

    def test_a_released_replacement_supersedes_the_head_that_was_seen(self) -> None:
        """The head goes in the same transaction; if it is another one by now, nothing happens."""
        with self.opened() as store:
            put(store, make_record("head", key="jam"))
            queued = hold(store, key="jam", waiting=Waiting(b"p", None, True))
            slot = Slot(None, "long_term", "validated_fact", "jam")
            seen = store.heads(TENANT, [slot])[0]
            put(store, make_record("newer", key="jam", revision=2))
            change = replace(let_go(queued, revision=2), supersedes=seen, exclusive=True)
            raises(RevisionConflictError, store.commit, WriteBatch([change]))

            assert store.queued(TENANT, "held") == queued
            now = replace(change, supersedes=store.heads(TENANT, [slot])[0])
            assert sorted(store.commit(WriteBatch([now]))[0].superseded) == ["head", "newer"]
            assert store.heads(TENANT, [slot])[0] is not None
            assert [one.status for one in store.fetch(TENANT, ["head", "newer", "held"])] == [
                "superseded", "superseded", "active"]  # fmt: skip

    def test_a_rejection_removes_every_trace(self) -> None:
        """Record, words, duplicate key and writer are gone; the digests that are named are tombstones."""
        with self.opened() as store:
            queued = hold(store, derived_from=("parent",))
            batch = WriteBatch([], ['{"line":1}'], rejected=[Rejected(queued, (b"kept", b"other"))])
            assert store.commit(batch) == []

            assert store.fetch(TENANT, ["held"]) == []
            assert store.queued(TENANT, "held") is None
            assert ask(store, "quince").considered == ask(store).considered == 0
            assert store.tombstoned(TENANT, [b"kept", b"other", b"twin"]) == {b"kept", b"other"}
            assert store.revision() == 1
            put(store, make_record("held"))
            assert ids(ask(store)) == ["held"]

    def test_a_rejection_without_digests_leaves_none(self) -> None:
        """Where nothing is to be known again, nothing is kept."""
        with self.opened() as store:
            queued = hold(store)
            store.commit(WriteBatch([], rejected=[Rejected(queued, ())]))

            assert store.tombstoned(TENANT, [b"twin", b"as it was written"]) == set()

    def test_only_the_first_of_two_reviewers_succeeds(self) -> None:
        """Whoever comes second is told, whatever either of them wanted."""
        for first, second in (("go", "go"), ("go", "out"), ("out", "go"), ("out", "out")):
            with self.opened() as store:
                queued = hold(store)
                batches = {
                    "go": WriteBatch([let_go(queued)]),
                    "out": WriteBatch([], rejected=[Rejected(queued, (b"kept",))]),
                }
                store.commit(batches[first])
                raises(RevisionConflictError, store.commit, batches[second])

                there = [one.status for one in store.fetch(TENANT, ["held"])]
                assert there == (["active"] if first == "go" else [])
                assert store.tombstoned(TENANT, [b"kept"]) == (set() if first == "go" else {b"kept"})

    def test_another_record_of_the_same_id_is_not_the_one_that_was_seen(self) -> None:
        """A record that was removed and written anew under its id has not been reviewed."""
        with self.opened() as store:
            queued = hold(store)
            store.commit(WriteBatch([], rejected=[Rejected(queued, ())]))
            again = hold(store, waiting=Waiting(b"somebody else", None, False))
            raises(RevisionConflictError, store.commit, WriteBatch([let_go(queued)]))

            assert store.queued(TENANT, "held") == again

    def test_a_failed_step_leaves_the_record_waiting(self) -> None:
        """Where another part of the batch is refused, nothing of the step remains."""
        with self.opened() as store:
            queued = hold(store)
            put(store, make_record("taken"))
            taken = Change(make_record("taken", content="plum"), exclusive=False)
            raises(RevisionConflictError, store.commit, WriteBatch([let_go(queued), taken]))
            batch = WriteBatch([taken], rejected=[Rejected(queued, (b"kept",))])
            raises(RevisionConflictError, store.commit, batch)

            assert store.queued(TENANT, "held") == queued
            assert ids(ask(store, "quince")) == ["held"]
            assert store.tombstoned(TENANT, [b"kept"]) == set()
            assert store.find_duplicate(TENANT, [b"twin"]) == {}
            store.commit(WriteBatch([let_go(queued)]))
            assert store.fetch(TENANT, ["held"])[0].status == "active"

    def test_who_wrote_it_goes_with_its_subject(self) -> None:
        """Forgetting the subject takes a record in quarantine along, and it can be released no more."""
        with self.opened() as store:
            queued = hold(store, subject="user-42")
            forget(store)

            assert store.queued(TENANT, "held") is None
            raises(RevisionConflictError, store.commit, WriteBatch([let_go(queued)]))
            again = hold(store, subject="user-42", waiting=None)
            assert again.waiting is None

    def test_a_release_waits_for_a_forgotten_digest(self) -> None:
        """A digest that was to have no tombstone, and has one by now, stops the release."""
        with self.opened() as store:
            queued = hold(store)
            other = hold(store, "other")
            store.commit(WriteBatch([], rejected=[Rejected(other, (b"kept",))], now_us=NOW_US))
            change = replace(let_go(queued), unforgotten=b"kept")
            raises(RevisionConflictError, store.commit, WriteBatch([change]))

            assert store.queued(TENANT, "held") == queued

    def test_a_record_that_is_read_goes_as_it_was_seen(self) -> None:
        """An active and a superseded record are removed with every trace, if they still are what was seen."""
        with self.opened() as store:
            put(store, make_record("old", key="jam", content="quince", status="superseded"))
            put(
                store, make_record("new", key="jam", content="quince jelly", revision=2), make_record("other")
            )
            seen = store.fetch(TENANT, ["old", "new"])
            gone = [Rejected(Queued(one, None, None, None), (one.memory_id.encode(),)) for one in seen]
            stale = Queued(replace(seen[1], content="plum"), None, None, None)
            raises(RevisionConflictError, store.commit, WriteBatch([], rejected=[Rejected(stale, ())]))
            store.commit(WriteBatch([], ['{"line":1}'], rejected=gone))

            assert store.fetch(TENANT, ["old", "new"]) == []
            assert ask(store, "quince").considered == 0
            assert store.heads(TENANT, [Slot(None, seen[1].memory_class, seen[1].kind, "jam")]) == [None]
            assert store.tombstoned(TENANT, [b"old", b"new"]) == {b"old", b"new"}
            assert ids(ask(store)) == ["other"]
            raises(RevisionConflictError, store.commit, WriteBatch([], rejected=gone))
