"""The removal of single records, decided one by one: the write policy's operation `delete` for each of them.

Nothing here touches the store. A removal is carried out by the gate that asked for it, in one transaction
with whatever else that gate changes, and with the lines that say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent_runtime_ref.contracts import Atom, Clause, Decision, MemoryRecord, Plan
from agent_runtime_ref.contracts.arguments import require_flag, require_string, require_strings
from agent_runtime_ref.enforcement.attributes import Attributes
from agent_runtime_ref.enforcement.recorder import Call, Recorder
from agent_runtime_ref.enforcement.ruling import DecisionPoint
from agent_runtime_ref.errors import PolicyDeniedError, RevisionConflictError, StoreCapabilityError
from agent_runtime_ref.stores.base import Queued, Rejected, SearchRequest, Store
from agent_runtime_ref.stores.digests import tombstone_digest
from agent_runtime_ref.telemetry.events import Event

__all__ = ["RECORDS_MAX", "Meant", "Removal", "Removals", "key_tombstone", "refused_removal"]

PATH = "memory/write/decision"
# What an engine is asked about at once must stay within its bound; what goes together may be more.
ASKED_MAX = 500
RECORDS_MAX = 20_000  # of one call, every revision counted


@dataclass(frozen=True, slots=True)
class Meant:
    """Which records of one memory class are meant: all under a key, or under one of these ids."""

    memory_class: str
    keys: tuple[str, ...] = ()
    record_ids: tuple[str, ...] = ()
    tombstones: bool = True  # whether what goes is known when it comes again, and not learnt by inference

    def __post_init__(self) -> None:
        """Refuse what names no records; a bare string would be taken letter by letter."""
        require_string("memory_class", self.memory_class)
        for name in ("keys", "record_ids"):
            object.__setattr__(self, name, require_strings(name, getattr(self, name)))
        require_flag("tombstones", self.tombstones)


@dataclass(frozen=True, slots=True)
class Removal:
    """One record that the policy lets go, with the line and the event that say so."""

    record: MemoryRecord
    decision: Decision
    line: str
    event: Event
    rejected: Rejected


class Removals:
    """Finds the records of keys and asks the policy about each that is to go."""

    def __init__(
        self, *, point: DecisionPoint, store: Store, attributes: Attributes, recorder: Recorder
    ) -> None:
        self._point = point
        self._store = store
        self._attributes = attributes
        self._recorder = recorder

    def found(self, call: Call, what: Meant, *, status: str | None = None) -> list[MemoryRecord]:
        """Return the records about the caller's own subject that are meant, of one status or of any.

        Raises:
            StoreCapabilityError: there are more than one call may change.
        """
        if not what.keys and not what.record_ids:
            return []
        page = self._store.search(
            SearchRequest(
                tenant_ids=(call.caller.tenant_id,),
                plan=_plan(call.caller.own_subject, what, status),
                terms=None,
                now_us=call.at_us,
                take=RECORDS_MAX + 1,
                excluded_take=0,
            )
        )
        if len(page.matches) > RECORDS_MAX:
            problem = f"more than {RECORDS_MAX} records are meant; name fewer at once"
            raise StoreCapabilityError(self._store.url, problem)
        return [match.record() for match in page.matches]

    def decided(
        self, call: Call, records: Sequence[MemoryRecord], *, tombstones: bool, repeats: bool = False
    ) -> list[Removal]:
        """Return one removal for each of `records`; with `tombstones` their content is known when it returns.

        `repeats` says that each repeats another record of the same trust, which stays.

        Raises:
            PolicyDeniedError: the policy refuses one of them; the refusal is on record, and nothing may go.
        """
        call = replace(call, operation="delete")
        return [
            removal
            for first in range(0, len(records), ASKED_MAX)
            for removal in self._asked(call, records[first : first + ASKED_MAX], tombstones, repeats)
        ]

    def _asked(
        self, call: Call, records: Sequence[MemoryRecord], tombstones: bool, repeats: bool
    ) -> list[Removal]:
        document = self._document(call, records, repeats)
        ruling = self._point.write(document)
        answer = ruling.document
        rows = [*answer["deny"], *answer["quarantine"], *answer["obligations"]]
        if rows or list(answer["allowed"]) != list(range(len(records))):
            raise refused_removal(self._recorder, call, document, answer["deny"], ruling.duration_ns)
        share = ruling.duration_ns // len(records)
        shown = document["candidates"]
        return [
            self._removal(call, {**document, "candidates": [one]}, record, tombstones, share)
            for record, one in zip(records, shown, strict=True)
        ]

    def _document(self, call: Call, records: Sequence[MemoryRecord], repeats: bool) -> dict[str, Any]:
        words = self._attributes.words
        said = {"repeats": True} if repeats else {}
        return {
            "operation": "delete",
            "now_ns": call.at_us * 1000,
            "caller": self._attributes.caller(call.caller),
            "candidates": [
                {"tenant_id": words.safe(one.tenant_id), "subject": words.optional(one.subject), **said}
                for one in records
            ],
        }

    def _removal(
        self,
        call: Call,
        document: Mapping[str, Any],
        record: MemoryRecord,
        tombstones: bool,
        duration_ns: int,
    ) -> Removal:
        marks = self._marks(record) if tombstones else ()
        decision = self._recorder.decision(call, "allow", (), duration_ns=duration_ns)
        result = {"allow": True, "effect": "allow", "deny": []}
        subject, pseudonym = record.subject, self._attributes.pseudonyms.of
        payload = {
            "subject": None if subject is None else pseudonym(record.tenant_id, subject, subject),
            "record_id": self._attributes.words.safe(record.memory_id),
            "counts": {record.memory_class: 1},
            "tombstones": len(marks),
            "dry_run": False,
        }
        return Removal(
            record=record,
            decision=decision,
            line=self._recorder.line(call, decision, PATH, document, result),
            event=self._recorder.event(call, "memory_forgotten", decision, payload, decides=True),
            rejected=Rejected(self._as_seen(record), marks),
        )

    def _marks(self, record: MemoryRecord) -> tuple[bytes, ...]:
        """Return the tombstones of a record: of its words, and of its key, under which others may say it."""
        key = self._store.store_key()
        marks = [tombstone_digest(key, record.tenant_id, record.subject, record.content)]
        if record.key is not None:
            marks.append(key_tombstone(key, record.tenant_id, record.subject, record.key))
        return tuple(marks)

    def _as_seen(self, record: MemoryRecord) -> Queued:
        if record.status != "quarantined":
            return Queued(record, None, None, None)
        queued = self._store.queued(record.tenant_id, record.memory_id)
        if queued is None:
            raise RevisionConflictError(self._store.url, "the record is no longer in quarantine as it was")
        return queued


def refused_removal(
    recorder: Recorder,
    call: Call,
    document: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    duration_ns: int,
) -> PolicyDeniedError:
    """Write down that nothing was removed and why, and return the error that says so.

    The line names alike candidates once and does not grow with what was asked; `asked` counts them all.
    """
    asked = len(document["candidates"])
    document, told = _alike_once(document, rows)
    refusals = told or [{"rule_id": "GATE", "reason": "not_permitted"}]
    decision = recorder.decision(call, "deny", refusals, duration_ns=duration_ns)
    event = recorder.event(call, "memory_forgotten", decision, {}, decides=True)
    result: dict[str, Any] = {"allow": False, "effect": "deny", "deny": refusals}
    if asked > len(document["candidates"]):
        result["asked"] = asked
    line = recorder.line(call, decision, PATH, document, result)
    recorder.keep([line], [event], read=False, tenant_id=call.caller.tenant_id)
    return PolicyDeniedError(decision)


def _alike_once(
    document: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """Return a question with each of its candidates once, and the rows about these.

    What a removal says of a record is its tenant, its subject and whether it repeats another, so of many
    records there are few candidates.
    """
    candidates = document["candidates"]
    marks = [tuple(sorted(one.items())) for one in candidates]
    places = {mark: place for place, mark in enumerate(dict.fromkeys(marks))}
    told: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in rows:
        about = places[marks[row["index"]]] if row.get("index") in range(len(marks)) else None
        of_it = row if about is None else {**row, "index": about}
        told.setdefault((about, row["rule_id"], row["reason"]), of_it)
    return {**document, "candidates": [dict(mark) for mark in places]}, list(told.values())


def key_tombstone(store_key: bytes, tenant_id: str, subject: str | None, key: str) -> bytes:
    """Return the digest under which a key is known as forgotten; no content begins as it does."""
    return tombstone_digest(store_key, tenant_id, subject, f"key of a forgotten record: {key}")


def _plan(subject: str, what: Meant, status: str | None) -> Plan:
    """Return what finds the records that are meant; the policy is asked about each of them afterwards."""
    named = [
        Atom(name, "in", tuple(dict.fromkeys(values)))
        for name, values in (("key", what.keys), ("record_id", what.record_ids))
        if values
    ]
    alone = [Atom("subject", "eq", subject), Atom("memory_class", "eq", what.memory_class)]
    if status is not None:
        alone.append(Atom("status", "eq", status))
    clauses = [Clause("selector", "GATE", "not_meant", (atom,)) for atom in alone]
    clauses.append(Clause("selector", "GATE", "not_meant", tuple(named)))
    return Plan(clauses=tuple(clauses), complete=True, limit=RECORDS_MAX + 1)
