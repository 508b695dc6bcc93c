"""The revision gate: what is known of somebody under a few keys is looked at and changed in one transaction.

It is the write gate for a writer whose candidates depend on what is there: it shows the records of the keys,
as far as the read gate lets the caller see them, takes the candidates that follow from them, asks the policy
about each, and commits them with the removal of what they contradict. If anything it looked at changed
meanwhile, all of it is done again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from agent_runtime_ref.clock import microseconds
from agent_runtime_ref.contracts import Caller, Decision, MemoryCandidate, MemoryRecord, RetrievalQuery
from agent_runtime_ref.contracts.arguments import (
    each_of,
    require,
    require_integer,
    require_string,
    require_strings,
)
from agent_runtime_ref.enforcement.attributes import Attributes, subjects_named
from agent_runtime_ref.enforcement.failures import settled
from agent_runtime_ref.enforcement.prepared import Context, Prepared, context_of, document_of, prepared
from agent_runtime_ref.enforcement.read import ReadGate
from agent_runtime_ref.enforcement.recorder import Call, Recorder
from agent_runtime_ref.enforcement.removals import Meant, Removal, Removals, key_tombstone
from agent_runtime_ref.enforcement.ruling import DecisionPoint
from agent_runtime_ref.enforcement.scanner import Scanner
from agent_runtime_ref.enforcement.verdicts import PATH, Verdict, Verdicts
from agent_runtime_ref.errors import RevisionConflictError
from agent_runtime_ref.stores.attributes import TRUST_RANKS
from agent_runtime_ref.stores.base import Change, Head, Slot, Store, WriteBatch
from agent_runtime_ref.telemetry import turns
from agent_runtime_ref.telemetry.chain import Lines
from agent_runtime_ref.telemetry.events import Event
from agent_runtime_ref.telemetry.lines import event_text
from agent_runtime_ref.telemetry.otel import gate_span

__all__ = ["Removed", "Revise", "Revised", "Revision", "RevisionGate", "Revisions"]

# Many may write about one person at once, and each of them has to look again after each of the others.
ATTEMPTS_MAX = 20
KEYS_TOLD_MAX = 100  # in one event; the others are counted
T = TypeVar("T")
_EFFECTS = {"deny": "refused", "quarantine": "quarantined"}


@dataclass(frozen=True, slots=True)
class Revision:
    """A candidate, how the event counts it, and the keys whose records go if it is admitted."""

    candidate: MemoryCandidate
    counted: str
    contradicts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what is of the wrong type, by the name of the field."""
        require("candidate", self.candidate, MemoryCandidate)
        require_string("counted", self.counted)
        object.__setattr__(self, "counted", str(self.counted))  # for JSON
        object.__setattr__(self, "contradicts", require_strings("contradicts", self.contradicts))


@dataclass(frozen=True, slots=True)
class Revisions:
    """What follows from what is there, and what of the keys stays as it is, by how the event counts it."""

    revisions: tuple[Revision, ...]
    kept: Mapping[str, int]
    keys: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse what is of the wrong type, by the name of the field."""
        object.__setattr__(self, "revisions", tuple(each_of("revisions", self.revisions, Revision)))
        require("kept", self.kept, Mapping, wanted="a mapping of names to counts")
        for name, count in self.kept.items():
            require_string("kept", name)
            require_integer("kept", count)
        object.__setattr__(self, "kept", {str(name): count for name, count in self.kept.items()})
        object.__setattr__(self, "keys", require_strings("keys", self.keys))


@dataclass(frozen=True, slots=True)
class Removed:
    """A record that is gone, and the decision that let it go."""

    record: MemoryRecord
    decision: Decision


@dataclass(frozen=True, slots=True)
class Revised:
    """What became of one revision: the record that is kept, in quarantine or active; None where refused."""

    candidate: MemoryCandidate
    decision: Decision
    record: MemoryRecord | None
    removed: tuple[Removed, ...] = ()


# Given the active records that the caller may read by key, and the instant in microseconds, says what shall
# be written; called again if the records changed meanwhile.
Revise = Callable[[Mapping[str, MemoryRecord], int], Revisions]


@dataclass(frozen=True, slots=True)
class _Taken:
    """A verdict and what goes with it."""

    item: Prepared
    verdict: Verdict
    after: Event | None
    removals: tuple[Removal, ...]
    vacant: tuple[Slot, ...]  # under the other keys that it contradicts

    @property
    def change(self) -> Change | None:
        """What is put, under the condition that nothing it contradicts has come meanwhile."""
        change = self.verdict.change
        return None if change is None else replace(change, vacant=self.vacant)


class RevisionGate:
    """Changes what is known of the caller's own subject under a few keys of one memory class."""

    def __init__(
        self,
        *,
        point: DecisionPoint,
        store: Store,
        attributes: Attributes,
        recorder: Recorder,
        scanner: Scanner,
        verdicts: Verdicts,
        reads: ReadGate,
        shown_at_once: int,
    ) -> None:
        self._point = point
        self._reads = reads
        self._shown_at_once = shown_at_once  # as many as one query may ask for
        self._store = store
        self._attributes = attributes
        self._recorder = recorder
        self._scanner = scanner
        self._verdicts = verdicts
        self._removals = Removals(point=point, store=store, attributes=attributes, recorder=recorder)

    def revise(
        self, memory_class: str, keys: Sequence[str], revise: Revise, *, caller: Caller, purpose: str
    ) -> list[Revised]:
        """Carry out what `revise` makes of the records under `keys`, and return what became of each.

        Raises:
            PolicyDeniedError: the policy refuses a removal, or the look for `purpose`; nothing was changed.
                A candidate that it refuses is none: its decision is in what is returned.
            EngineFailureError: the engine gave no clear answer; nothing was changed.
            RevisionConflictError: other writers kept changing the same records.
            DecisionLogError: the log could not be written; nothing was changed.
        """
        call = self._frame(caller, "write")
        what = Meant(memory_class, tuple(keys))
        return self._settled(call, lambda: self._revised(call, what, revise, purpose))

    def remove(self, what: Meant, *, caller: Caller) -> list[Removed]:
        """Remove records about the caller's own subject, a decision for each. Raises what `revise` raises."""
        call = self._frame(caller, "delete")
        return self._settled(call, lambda: self._removed(call, what))

    def _frame(self, caller: Caller, operation: str) -> Call:
        subjects = subjects_named(caller, caller.own_subject)
        return self._recorder.call(caller, operation, trace_id=None, session_id=None, subjects=subjects)

    def _settled(self, call: Call, attempt: Callable[[], T]) -> T:
        told = self._recorder.failures(call, PATH, lambda: self._document(call, ()), read=False)
        with gate_span(call.operation), told:
            return settled(attempt, ATTEMPTS_MAX)

    def _revised(self, call: Call, what: Meant, revise: Revise, purpose: str) -> list[Revised]:
        # Of each key every revision is kept, so what stood there before is looked for only where it is to go.
        active = _active(self._removals.found(call, what, status="active"), call.at_us)
        wanted = revise(self._shown(call, what.memory_class, active, purpose), call.at_us)
        require("revise", wanted, Revisions, wanted="a function that returns Revisions")
        if not wanted.revisions and not wanted.kept:
            return []
        against = tuple(dict.fromkeys(key for one in wanted.revisions for key in one.contradicts))
        found = self._removals.found(call, Meant(what.memory_class, against))
        taken = self._taken(call, wanted.revisions, found, active) if wanted.revisions else []
        said = turns.said()
        of_turn = {} if said is None else {"turn_id": self._attributes.words.safe(said.turn_id)}
        told = self._curated(call, _counts(wanted, taken), wanted.keys, of_turn)
        events = [event for one in taken for event in _events(one)]
        lines = [one.verdict.line for one in taken]
        lines += [removal.line for one in taken for removal in one.removals]
        self._commit(
            call,
            lines,
            [*events, told],
            WriteBatch(
                [change for one in taken if (change := one.change) is not None],
                held=[one.verdict.held for one in taken if one.verdict.held is not None],
                now_us=call.at_us,
                rejected=[removal.rejected for one in taken for removal in one.removals],
            ),
        )
        return [_outcome(one) for one in taken]

    def _shown(
        self, call: Call, memory_class: str, active: Mapping[str, MemoryRecord], purpose: str
    ) -> dict[str, MemoryRecord]:
        """Return those of the records that the read gate lets the caller see for `purpose`."""
        caller, ids = call.caller, [one.memory_id for one in active.values()]
        admitted: set[str] = set()
        for first in range(0, len(ids), self._shown_at_once):
            some = ids[first : first + self._shown_at_once]
            query = RetrievalQuery(
                call.trace_id,
                call.session_id or call.trace_id,
                caller.tenant_id,
                caller.principal_id,
                purpose,
                (memory_class,),
                len(some),
                subject=caller.subject,
                record_ids=tuple(some),
            )
            result = self._reads.read(query, caller=caller, operation="get")
            admitted.update(hit.record.memory_id for hit in result.hits)
        return {key: one for key, one in active.items() if one.memory_id in admitted}

    def _taken(
        self,
        call: Call,
        revisions: Sequence[Revision],
        found: Sequence[MemoryRecord],
        active: Mapping[str, MemoryRecord],
    ) -> list[_Taken]:
        key = self._store.store_key()
        items = [prepared(one.candidate, scanner=self._scanner, store_key=key) for one in revisions]
        context = self._context(items, call, active)
        words = self._attributes.words
        document = self._document(
            call,
            [
                document_of(item, _strongest(head, revision, found, call.at_us), context, words)
                for item, head, revision in zip(items, context.heads, revisions, strict=True)
            ],
        )
        verdicts = self._verdicts.of(items, call, context, document, self._point.write(document))
        gone: set[str] = set()
        taken = []
        for item, verdict, revision in zip(items, verdicts, revisions, strict=True):
            records = [
                one
                for one in found
                if verdict.decision.effect == "allow"
                and one.key in revision.contradicts
                and one.memory_id not in gone
            ]
            gone.update(one.memory_id for one in records)
            removals = tuple(self._removals.decided(call, records, tombstones=False))
            vacant = _vacant(revision, active) if verdict.decision.effect == "allow" else ()
            taken.append(_Taken(item, verdict, self._verdicts.after(call, verdict), removals, vacant))
        return taken

    def _context(self, items: Sequence[Prepared], call: Call, active: Mapping[str, MemoryRecord]) -> Context:
        """Return what the store knows, if it is still what was there when the writer was shown it."""
        context = context_of(items, self._store, call.caller, call.at_us)
        for item, head in zip(items, context.heads, strict=True):
            shown = active.get(item.candidate.key or "")
            seen = None if head is None or head.status != "active" else head.memory_id
            if seen != (None if shown is None else shown.memory_id):
                raise RevisionConflictError(self._store.url, "another record is active under this key")
        # A preference that was forgotten is not learnt again in other words either.
        marks = {self._key_mark(item): item.tombstone for item in items}
        forgotten = self._store.tombstoned(call.caller.tenant_id, list(marks))
        return replace(context, forgotten=context.forgotten | {marks[one] for one in forgotten})

    def _key_mark(self, item: Prepared) -> bytes:
        one = item.candidate
        return key_tombstone(self._store.store_key(), one.tenant_id, one.subject, one.key or "")

    def _removed(self, call: Call, what: Meant) -> list[Removed]:
        records = self._removals.found(call, what)
        if not records:
            return []
        removals = self._removals.decided(call, records, tombstones=what.tombstones)
        keys = tuple(dict.fromkeys(one.key for one in records if one.key is not None))
        told = self._curated(call, {"removed": len(records)}, keys, {})
        batch = WriteBatch([], now_us=call.at_us, rejected=[one.rejected for one in removals])
        self._commit(call, [one.line for one in removals], [*(one.event for one in removals), told], batch)
        return [Removed(one.record, one.decision) for one in removals]

    def _curated(
        self, call: Call, counts: Mapping[str, int], keys: Sequence[str], of_turn: Mapping[str, str]
    ) -> Event:
        caller, pseudonym = call.caller, self._attributes.pseudonyms.of
        masks = [pseudonym(caller.tenant_id, caller.own_subject, key) for key in keys[:KEYS_TOLD_MAX]]
        unnamed = {"keys_not_named": len(keys) - len(masks)} if len(keys) > len(masks) else {}
        payload: dict[str, Any] = {"counts": {**counts, **unnamed}, "keys": masks, **of_turn}
        return self._recorder.event(call, "preferences_curated", None, payload, decides=False)

    def _commit(self, call: Call, lines: Sequence[str], events: Sequence[Event], batch: WriteBatch) -> None:
        kept = Lines.of(call.caller.tenant_id, (*lines, *map(event_text, events)))
        self._store.commit(replace(batch, lines=kept))
        self._recorder.mirror(events, kept, read=False)

    def _document(self, call: Call, candidates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {
            "operation": "write",
            "now_ns": call.at_us * 1000,
            "caller": self._attributes.caller(call.caller),
            "candidates": list(candidates),
        }


def _active(found: Sequence[MemoryRecord], at_us: int) -> dict[str, MemoryRecord]:
    """Return the head of each key: of several active records the last revision."""
    heads: dict[str, MemoryRecord] = {}
    for one in sorted(found, key=lambda record: record.revision):
        if one.key is not None and _is_live(one, at_us):
            heads[one.key] = one
    return heads


def _vacant(revision: Revision, active: Mapping[str, MemoryRecord]) -> tuple[Slot, ...]:
    """Return the slots of what is contradicted in which nothing is active: two that say the opposite of each
    other at one moment would else both be kept, as neither replaces the other's record.
    """
    one = revision.candidate
    keys = (key for key in revision.contradicts if key not in active)
    return tuple(Slot(one.subject, one.memory_class, one.kind, key) for key in keys)


def _is_live(record: MemoryRecord, at_us: int) -> bool:
    ended = record.expires_at is not None and microseconds(record.expires_at) <= at_us
    return record.status == "active" and not ended


def _strongest(
    head: Head | None, revision: Revision, found: Sequence[MemoryRecord], at_us: int
) -> Head | None:
    """Return the active record of most trust that goes if a revision is admitted, under whatever key.

    To the policy all of them are replaced: lower trust takes away no more than it writes over.
    """
    heads = [] if head is None or head.status != "active" else [head]
    heads += [
        Head(one.memory_id, TRUST_RANKS[one.trust_level], one.revision, one.status)
        for one in found
        if one.key in revision.contradicts and _is_live(one, at_us)
    ]
    return max(heads, key=lambda one: one.trust_rank, default=head)


def _events(one: _Taken) -> list[Event]:
    told = [one.verdict.event] if one.after is None else [one.verdict.event, one.after]
    return [*told, *(removal.event for removal in one.removals)]


def _counts(wanted: Revisions, taken: Sequence[_Taken]) -> dict[str, int]:
    told = Counter(wanted.kept)
    for revision, one in zip(wanted.revisions, taken, strict=True):
        effect = one.verdict.decision.effect
        told[revision.counted if effect == "allow" else _EFFECTS[effect]] += 1
        told["superseded"] += len({removal.record.key for removal in one.removals})
    return {name: number for name, number in sorted(told.items()) if number}


def _outcome(one: _Taken) -> Revised:
    removed = tuple(Removed(removal.record, removal.decision) for removal in one.removals)
    return Revised(one.item.candidate, one.verdict.decision, one.verdict.record, removed)
