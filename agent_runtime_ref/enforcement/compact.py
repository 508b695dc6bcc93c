"""The compaction gate: a memory that was kept twice is kept once, and each removal is a decision.

What repeats what is found by a governed read, so nobody's records are looked at that the caller may not see.
Of records that say the same about the same subject, in the same class, of the same kind, under the same key
and with the same trust and retention, the earliest stays and takes over where the others came from (see
`uniting`). The write policy is asked about each of the others, and whatever it lets go goes in one
transaction with the lines that say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent_runtime_ref.clock import Ids
from agent_runtime_ref.contracts import Caller, MemoryRecord, RetrievalQuery
from agent_runtime_ref.enforcement.attributes import Attributes, subjects_named
from agent_runtime_ref.enforcement.chosen import Chosen
from agent_runtime_ref.enforcement.prepared import dedup_digest
from agent_runtime_ref.enforcement.read import ReadGate
from agent_runtime_ref.enforcement.recorder import Call, Recorder
from agent_runtime_ref.enforcement.removals import PATH, Removal, Removals
from agent_runtime_ref.enforcement.review_document import candidate_of
from agent_runtime_ref.enforcement.ruling import DecisionPoint
from agent_runtime_ref.enforcement.uniting import groups_of, united
from agent_runtime_ref.errors import (
    DuplicateRecordError,
    EngineFailureError,
    PolicyDeniedError,
    RevisionConflictError,
)
from agent_runtime_ref.stores.base import Change, Queued, Store, WriteBatch
from agent_runtime_ref.telemetry.chain import Lines
from agent_runtime_ref.telemetry.lines import event_text
from agent_runtime_ref.telemetry.otel import gate_span

__all__ = ["Compacted", "CompactionGate"]

ROUNDS_MAX = 100  # of one call; what is left then is found by the next


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction did; ids of records."""

    examined: int  # records that the last look went through
    kept: tuple[str, ...] = ()  # took over where others came from
    removed: tuple[str, ...] = ()
    superseded: tuple[
        str, ...
    ] = ()  # repeated something too, and stay as what other records were derived from
    refused: tuple[PolicyDeniedError, ...] = ()


@dataclass(frozen=True, slots=True)
class _Group:
    """Records that say the same, the earliest first."""

    records: tuple[MemoryRecord, ...]

    @property
    def others(self) -> tuple[MemoryRecord, ...]:
        return self.records[1:]


@dataclass(frozen=True, slots=True)
class _Found:
    """What one read found to merge."""

    examined: int
    groups: Sequence[_Group]
    is_all: bool  # whether nothing was left for another


class CompactionGate:
    """Merges repetitions among the records that a caller sees."""

    def __init__(
        self,
        *,
        point: DecisionPoint,
        store: Store,
        attributes: Attributes,
        recorder: Recorder,
        reads: ReadGate,
        settings: Mapping[str, Any],
        ids: Ids,
    ) -> None:
        self._store = store
        self._attributes = attributes
        self._recorder = recorder
        self._reads = reads
        self._settings = settings
        self._ids = ids
        self._removals = Removals(point=point, store=store, attributes=attributes, recorder=recorder)

    def compact(self, *, caller: Caller, purpose: str) -> Compacted:
        """Merge what repeats itself among the records that `caller` sees for `purpose`.

        Raises:
            PolicyDeniedError: the caller may not read for that purpose.
            StoreCapabilityError: there are more records than one read chooses from; nothing was merged.
            EngineFailureError, StoreError: as a read or a write does; what was merged before stays merged.
        """
        done = Compacted(0)
        for _ in range(ROUNDS_MAX):
            found = self._found(caller, purpose)
            done = replace(done, examined=found.examined)
            before = len(done.removed) + len(done.superseded)
            for about in _by_subject(found.groups):
                done = self._merged_all(about, done, caller)
            merged = len(done.removed) + len(done.superseded) - before
            if done.refused or not merged or found.is_all:
                break
        if not done.removed and not done.superseded:
            self._tell_nothing(caller)
        return done

    def _found(self, caller: Caller, purpose: str) -> _Found:
        """Return records that say the same as others, as many as one read may answer."""
        limit = int(self._settings["limits"]["query_max"])
        examined, chosen = 0, 0

        def choose(records: Sequence[MemoryRecord]) -> list[int]:
            nonlocal examined, chosen
            places = _repeated(records, limit)
            examined, chosen = len(records), len(places)
            return places

        query = self._query(caller, purpose, limit)
        result, _, _ = self._reads.gathered(query, caller=caller, text=None, gather=Chosen(choose))
        return _Found(examined, _grouped([hit.record for hit in result.hits]), chosen < limit - 1)

    def _tell_nothing(self, caller: Caller) -> None:
        """Write down that there was nothing to merge; no change goes with it, so it goes with the reads."""
        subjects = subjects_named(caller)
        call = self._recorder.call(caller, "delete", trace_id=None, session_id=None, subjects=subjects)
        payload = {"removed": 0, "superseded": 0, "kept": []}
        told = self._recorder.event(call, "background_compaction", None, payload, decides=False)
        self._recorder.keep([], [told], read=True, tenant_id=caller.tenant_id)

    def _query(self, caller: Caller, purpose: str, limit: int) -> RetrievalQuery:
        trace_id = caller.trace_id or self._ids.new("trc")
        known = self._settings["purposes"].get(purpose)
        classes = sorted(self._settings["classes"] if known is None else known["classes"])
        return RetrievalQuery(
            trace_id,
            caller.session_id or trace_id,
            caller.tenant_id,
            caller.principal_id,
            purpose,
            tuple(classes),
            limit,
            subject=caller.subject,
        )

    def _merged_all(self, groups: Sequence[_Group], done: Compacted, caller: Caller) -> Compacted:
        """Merge the groups about one subject, or about nobody; a refusal ends these, not the others."""
        call = self._recorder.call(
            caller,
            "delete",
            trace_id=None,
            session_id=None,
            subjects=subjects_named(caller, caller.own_subject),
        )
        told = self._recorder.failures(
            call, PATH, lambda: {"operation": "delete", "caller": self._attributes.caller(caller)}, read=False
        )
        with gate_span("delete"), told:
            try:
                return self._attempted(call, groups, done)
            except EngineFailureError:
                raise
            except PolicyDeniedError as refused:
                return replace(done, refused=(*done.refused, refused))
            except (RevisionConflictError, DuplicateRecordError):
                return done  # somebody else is at work on these; the next round sees what came of it

    def _attempted(self, call: Call, groups: Sequence[_Group], done: Compacted) -> Compacted:
        others = [one for group in groups for one in group.others]
        removals = self._removals.decided(call, others, tombstones=False, repeats=True)
        parents = self._parents(call.caller.tenant_id, others)
        gone = [one for one in removals if one.record.memory_id not in parents]
        stays = [one.record for one in removals if one.record.memory_id in parents]
        changes = [change for group in groups if (change := self._united(call, group)) is not None]
        changes += [_superseded(record) for record in stays]
        self._commit(call, groups, removals, gone, stays, changes)
        return Compacted(
            done.examined,
            (*done.kept, *(group.records[0].memory_id for group in groups)),
            (*done.removed, *(one.record.memory_id for one in gone)),
            (*done.superseded, *(record.memory_id for record in stays)),
            done.refused,
        )

    def _parents(self, tenant_id: str, records: Sequence[MemoryRecord]) -> set[str]:
        """Return the ids that others were derived from, these among them; in two looks."""
        children = self._store.children(tenant_id, [one.memory_id for one in records])
        found = self._store.fetch(tenant_id, children) if children else []
        return {one for record in found for one in record.derived_from}

    def _united(self, call: Call, group: _Group) -> Change | None:
        """Return what stays with what it takes over; None where that says nothing new."""
        kept = group.records[0]
        over = united(group.records)
        if over == kept:
            return None
        digest = dedup_digest(self._store.store_key(), candidate_of(kept, revision_mode="append"))
        holder = self._store.find_duplicate(kept.tenant_id, [digest], call.at_us).get(digest)
        return Change(
            record=over,
            dedup=digest if holder == kept.memory_id else None,
            exclusive=False,
            queued=Queued(kept, None, None, None),
        )

    def _commit(
        self,
        call: Call,
        groups: Sequence[_Group],
        removals: Sequence[Removal],
        gone: Sequence[Removal],
        stays: Sequence[MemoryRecord],
        changes: Sequence[Change],
    ) -> None:
        safe = self._attributes.words.each
        payload = {
            "removed": len(gone),
            "superseded": len(stays),
            "kept": safe(group.records[0].memory_id for group in groups),
        }
        told = self._recorder.event(call, "background_compaction", None, payload, decides=False)
        # What stays as superseded is not forgotten; its line says that its going was permitted.
        events = [*(one.event for one in gone), told]
        kept = Lines.of(call.caller.tenant_id, (*(one.line for one in removals), *map(event_text, events)))
        rejected = [one.rejected for one in gone]
        self._store.commit(WriteBatch(changes, kept, now_us=call.at_us, rejected=rejected))
        self._recorder.mirror(events, kept, read=False)


def _superseded(record: MemoryRecord) -> Change:
    """Return the change of a record that others were derived from: forgetting must still find these."""
    over = replace(record, status="superseded")
    return Change(record=over, exclusive=False, queued=Queued(record, None, None, None))


def _repeated(records: Sequence[MemoryRecord], limit: int) -> list[int]:
    """Return the places of records that say the same, group by group, the earliest of each first."""
    chosen: list[int] = []
    for places in groups_of(records):
        room = limit - len(chosen)
        if room > 1:
            chosen += places[:room]
    return chosen


def _grouped(records: Sequence[MemoryRecord]) -> list[_Group]:
    """Return what the policy let through of the chosen records, in groups of at least two."""
    return [_Group(tuple(records[place] for place in places)) for places in groups_of(records)]


def _by_subject(groups: Sequence[_Group]) -> list[list[_Group]]:
    """Return the groups apart by whether they are about somebody: the policy may permit one and not both."""
    apart = [
        [one for one in groups if (one.records[0].subject is None) is shared] for shared in (False, True)
    ]
    return [one for one in apart if one]
