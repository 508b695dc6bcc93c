"""Conformance cases about names: ids that look alike are others, wherever a store compares them."""

from __future__ import annotations

from datetime import timedelta

from agent_runtime_ref.stores.base import Change, Head, Slot, WriteBatch
from agent_runtime_ref.testing.conformance_base import TENANT, StoreCases, ask, ids, put
from agent_runtime_ref.testing.conformance_forgetting import forget
from agent_runtime_ref.testing.conformance_writing import ALIKE
from agent_runtime_ref.testing.records import NOW, NOW_US, clause, make_record, open_plan

_MOMENT = timedelta(microseconds=1)


class NamingCases(StoreCases):
    """Subjects, keys and tenants that careless comparison would take for one another; instants too."""

    def test_subjects_that_look_alike_are_different(self) -> None:
        """A wall by subject and the forgetting of a subject meet exactly one of them."""
        with self.opened() as store:
            put(store, *(make_record(f"mem-{n:02}", subject=name) for n, name in enumerate(ALIKE)))
            for number, subject in enumerate(ALIKE):
                plan = open_plan(clause("wall", "MEM-R-002", ("subject", "eq", subject)))
                assert ids(ask(store, plan=plan)) == [f"mem-{number:02}"]
                store.subject_key(TENANT, subject, True)
            forget(store, ALIKE[0])

            assert sorted(ids(ask(store))) == [f"mem-{number:02}" for number in range(1, len(ALIKE))]
            assert [store.subject_key(TENANT, one, False) is None for one in ALIKE] == [
                number == 0 for number in range(len(ALIKE))
            ]

    def test_keys_that_look_alike_are_different(self) -> None:
        """Each key is a slot of its own, with its own head."""
        slots = [Slot(None, "long_term", "validated_fact", key) for key in ALIKE]
        with self.opened() as store:
            records = [make_record(f"mem-{n:02}", key=key) for n, key in enumerate(ALIKE)]
            store.commit(WriteBatch([Change(record) for record in records]))

            assert store.heads(TENANT, slots) == [Head(one.memory_id, 2, 1, "active") for one in records]

    def test_the_same_everything_in_tenants_that_look_alike(self) -> None:
        """Id, subject, key, dedup key and log key are a tenant's own; one forgets, the others do not."""
        slot = Slot("user-42", "long_term", "validated_fact", "queue")
        names = (TENANT, f"{TENANT}-eu", f"{TENANT}%", TENANT.upper(), f"{TENANT} ")
        with self.opened() as store:
            for name in names:
                record = make_record("mem-1", tenant_id=name, subject="user-42", key="queue")
                store.commit(WriteBatch([Change(record, dedup=b"digest")]))
                store.subject_key(name, "user-42", True)
            forget(store, "user-42")

            for name in names:
                there = 0 if name == TENANT else 1
                assert len(store.fetch(name, ["mem-1"])) == there
                assert len(store.find_duplicate(name, [b"digest"])) == there
                assert (store.heads(name, [slot])[0] is not None) == bool(there)
                assert (store.subject_key(name, "user-42", False) is not None) == bool(there)

    def test_expiry_before_at_and_after_the_instant(self) -> None:
        """A record lives until the very microsecond, for filters, heads and duplicates alike."""
        plan = open_plan(
            clause(
                "filter", "MEM-R-109", ("expires_ns", "is_null", None), ("expires_ns", "gt", NOW_US * 1000)
            )
        )
        expiries = {"before": NOW - _MOMENT, "at": NOW, "after": NOW + _MOMENT, "never": None}
        slots = [Slot(None, "long_term", "validated_fact", name) for name in expiries]
        with self.opened() as store:
            for name, expires_at in expiries.items():
                record = make_record(name, key=name, expires_at=expires_at)
                store.commit(WriteBatch([Change(record, dedup=name.encode())]))

            assert sorted(ids(ask(store, plan=plan))) == ["after", "never"]
            statuses = [head and head.status for head in store.heads(TENANT, slots, NOW_US)]
            assert statuses == ["expired", "expired", "active", "active"]
            held = store.find_duplicate(TENANT, [name.encode() for name in expiries], NOW_US)
            assert held == {b"after": "after", b"never": "never"}
