"""What forgetting a subject removes: its records, what was derived from them, and every trace of either.

A record that has expired is gone from the server, and what was derived from it may live on. Such a record is
found by its roots, the subjects that it was derived from in the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agent_runtime_ref.errors import RevisionConflictError
from agent_runtime_ref.stores.base import ForgetCounts
from agent_runtime_ref.stores.held import digests_of, forget_counts
from agent_runtime_ref.stores.memory_tenant import Entry
from agent_runtime_ref.stores.redis import names
from agent_runtime_ref.stores.redis.changes import Step, removed
from agent_runtime_ref.stores.redis.connection import Server
from agent_runtime_ref.stores.redis.names import STORE, Names
from agent_runtime_ref.stores.redis.view import View, Wanted, load


@dataclass(frozen=True, slots=True)
class Doomed:
    """What is to go, in the view that it was found in."""

    view: View
    tenant_id: str
    subject: str
    entries: list[Entry]

    def counts(self, store_key: bytes) -> ForgetCounts:
        """What removing it comes to."""
        return forget_counts(
            self.view.tenant(self.tenant_id),
            self.entries,
            tenant_id=self.tenant_id,
            subject=self.subject,
            store_key=store_key,
        )

    def steps(self, counts: ForgetCounts, now_us: int) -> Iterator[Step]:
        """The steps that remove it, and leave its tombstones."""
        named, tenant = Names.of(self.tenant_id), self.view.tenant(self.tenant_id)
        for entry in self.entries:
            yield from removed(named, entry, self.view)
            if entry.dedup is not None and tenant.holds_dedup(entry):
                yield "drop", named.dedup(entry.dedup)
        for digest in sorted(digests_of(counts)):
            yield "set", named.tombstones, digest.hex(), str(now_us)
        yield "unset", named.subject_keys, names.encoded(self.subject)
        yield "count", STORE, "forgets", "1"


def doomed(server: Server, tenant_id: str, subject: str) -> Doomed:
    """What is to go, loaded step by step from the subject's records to the last that was derived.

    Raises:
        RevisionConflictError: somebody changed the tenant between two steps.
    """
    wanted = Wanted(indexes={names.of_subject(subject): None, names.from_subject(subject): None})
    view: View | None = None
    reached: set[str] = set()
    while wanted.indexes:
        before = None if view is None else view.standings[tenant_id]
        view = load(server, {tenant_id: wanted}, view)
        if before is not None and view.standings[tenant_id] != before:
            raise RevisionConflictError(server.place, "the tenant was changed meanwhile")
        known = view.tenant(tenant_id).entries.keys() | view.gone.get(tenant_id, set())
        wanted = Wanted(indexes=dict.fromkeys(map(names.from_record, sorted(known - reached))))
        reached |= known
    assert view is not None
    return Doomed(view, tenant_id, subject, _in_order(view, tenant_id, subject))


def _in_order(view: View, tenant_id: str, subject: str) -> list[Entry]:
    """The subject's own records first, then the others by id; every loaded one is one of either."""
    entries = view.tenant(tenant_id).entries
    own = [one for one in entries.values() if one.record.subject == subject]
    rest = [entries[name] for name in sorted(entries) if entries[name].record.subject != subject]
    return [*own, *rest]
