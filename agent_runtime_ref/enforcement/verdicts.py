"""From a ruling to verdicts: what each candidate becomes, with the lines and events that say so.

Nothing here touches the store's records; a verdict is carried out by the write gate, in one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent_runtime_ref.clock import Ids
from agent_runtime_ref.contracts import Decision, MemoryCandidate, MemoryRecord
from agent_runtime_ref.enforcement.amend import amended, change_of, unmet_obligations
from agent_runtime_ref.enforcement.attributes import Attributes
from agent_runtime_ref.enforcement.prepared import Context, Prepared
from agent_runtime_ref.enforcement.recorder import Call, Recorder
from agent_runtime_ref.enforcement.ruling import Ruling
from agent_runtime_ref.errors import StoreCapabilityError
from agent_runtime_ref.stores.base import Change, Head, Held, SaysWhyVolatile, Store
from agent_runtime_ref.telemetry.events import Event

PATH = "memory/write/decision"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one candidate, before it is committed."""

    decision: Decision
    event: Event
    line: str
    record: MemoryRecord | None = None
    change: Change | None = None
    held: Held | None = None  # instead of a change: the same memory is there already

    @property
    def duplicate_of(self) -> str | None:
        """The id of the record that is there already."""
        return None if self.held is None else self.held.memory_id


class Verdicts:
    """Makes verdicts; holds what all of them need."""

    def __init__(
        self,
        *,
        store: Store,
        attributes: Attributes,
        recorder: Recorder,
        ids: Ids,
        durable_exempt: bool,
    ) -> None:
        self._store = store
        self._attributes = attributes
        self._recorder = recorder
        self._ids = ids
        self._keeps_durable = store.durable or durable_exempt

    def of(
        self,
        batch: Sequence[Prepared],
        call: Call,
        context: Context,
        document: Mapping[str, Any],
        ruling: Ruling,
    ) -> list[Verdict]:
        """Return one verdict for each candidate of `batch`, in order."""
        answer = ruling.document
        allowed = frozenset(answer["allowed"])
        denied, held, asked = (
            _by_index(answer["deny"]),
            _by_index(answer["quarantine"]),
            _by_index(answer["obligations"]),
        )
        share = ruling.duration_ns // len(batch)
        verdicts = []
        for index, item in enumerate(batch):
            obligations = asked.get(index, [])
            refusals = [*denied.get(index, []), *unmet_obligations(obligations, item.findings)]
            if index not in allowed and not refusals:
                refusals = [{"rule_id": "GATE", "reason": "not_permitted"}]
            self._require_durable_store(item, refusals)
            one = {**document, "candidates": [document["candidates"][index]]}
            if refusals:
                verdicts.append(self._refused(call, item, refusals, one, share))
                continue
            verdict = self._admitted(
                call,
                item,
                context,
                context.heads[index],
                held.get(index, []),
                obligations,
                answer["assign"][index],
                one,
                share,
            )
            verdicts.append(_unless_duplicate(verdict, context.duplicates.get(item.dedup)))
        return verdicts

    def _require_durable_store(self, item: Prepared, refusals: Sequence[Mapping[str, Any]]) -> None:
        if refusals or self._keeps_durable or item.candidate.memory_class == "short_term":
            return
        because = self._store.volatile_because if isinstance(self._store, SaysWhyVolatile) else None
        problem = f"it does not keep `{item.candidate.memory_class}` records durably"
        problem += "; use sqlite:PATH" if because is None else f": {because}"
        raise StoreCapabilityError(self._store.url, problem)

    def _refused(
        self,
        call: Call,
        item: Prepared,
        rows: Sequence[Mapping[str, Any]],
        one: Mapping[str, Any],
        share: int,
    ) -> Verdict:
        decision = self._recorder.decision(call, "deny", rows, duration_ns=share)
        result = {"allow": False, "effect": "deny", "deny": list(rows)}
        return self._verdict(call, item, decision, one, result)

    def _admitted(
        self,
        call: Call,
        item: Prepared,
        context: Context,
        head: Head | None,
        held: Sequence[Mapping[str, Any]],
        obligations: Sequence[Mapping[str, Any]],
        assigned: Mapping[str, Any],
        one: Mapping[str, Any],
        share: int,
    ) -> Verdict:
        effect = "quarantine" if held else "allow"
        if item.candidate.subject is not None:
            self._attributes.pseudonyms.keep(item.candidate.tenant_id, item.candidate.subject)
        bare = [{"type": row["type"], "findings": row["findings"]} for row in obligations]
        decision = self._recorder.decision(call, effect, held, obligations=bare, duration_ns=share)
        record = amended(
            item,
            assigned=assigned,
            obligations=obligations,
            quarantined=bool(held),
            head=head,
            now_us=call.at_us,
            ids=self._ids,
        )
        result = {"allow": True, "effect": effect, "deny": [], "quarantine": list(held), "assign": assigned}
        verdict = self._verdict(call, item, decision, one, result)
        return replace(verdict, record=record, change=change_of(item, record, head, context))

    def _verdict(
        self,
        call: Call,
        item: Prepared,
        decision: Decision,
        one: Mapping[str, Any],
        result: Mapping[str, Any],
    ) -> Verdict:
        words, candidate = self._attributes.words, item.candidate
        payload = {
            "memory_class": words.safe(candidate.memory_class),
            "kind": words.safe(candidate.kind),
            "source": words.safe(candidate.source),
            "provenance": words.safe(candidate.provenance),
            "revision_mode": candidate.revision_mode,
            "obligations": [obligation["type"] for obligation in decision.obligations],
            "findings": sorted({finding.type for finding in item.findings}),
        }
        event = self._recorder.event(call, "memory_write_decision", decision, payload, decides=True)
        logged = self._logged(one, candidate, call)
        return Verdict(decision, event, self._recorder.line(call, decision, PATH, logged, result))

    def _logged(self, one: Mapping[str, Any], candidate: MemoryCandidate, call: Call) -> Mapping[str, Any]:
        """Return the input for the log: the key of a record about somebody stands as a pseudonym."""
        if candidate.subject is None or candidate.key is None:
            return one
        shown = dict(one["candidates"][0])
        # In the caller's tenant, whatever the candidate claims: a refused write leaves no trace elsewhere.
        tenant_id = call.caller.tenant_id
        shown["key"] = self._attributes.pseudonyms.of(tenant_id, candidate.subject, candidate.key)
        return {**one, "candidates": [shown]}

    def after(self, call: Call, verdict: Verdict) -> Event | None:
        """Return the event of what happened after the decision; None where nothing was kept."""
        record = verdict.record
        if record is None:
            return None
        words, decision = self._attributes.words, verdict.decision
        payload: dict[str, Any] = {
            "record_id": words.safe(record.memory_id),
            "memory_class": words.safe(record.memory_class),
            "kind": words.safe(record.kind),
        }
        # A twin of what a reviewer let go adds nothing, and waits nowhere.
        if decision.effect == "quarantine" and verdict.duplicate_of is None:
            payload |= {"reasons": list(decision.reasons), "rule_ids": list(decision.rule_ids)}
            return self._recorder.event(call, "memory_quarantined", decision, payload, decides=False)
        superseded = verdict.change.supersedes if verdict.change is not None else None
        payload |= {
            "provenance": words.safe(record.provenance),
            "revision": record.revision,
            "trust_level": record.trust_level,
            "supersedes": words.optional(superseded.memory_id if superseded is not None else None),
        }
        if verdict.duplicate_of is not None:
            payload["duplicate_of"] = payload["record_id"]
        return self._recorder.event(call, "memory_persisted", decision, payload, decides=False)


def _unless_duplicate(verdict: Verdict, existing: MemoryRecord | None) -> Verdict:
    if existing is None or verdict.change is None or verdict.change.dedup is None:
        return verdict
    held = Held(existing.tenant_id, verdict.change.dedup, existing.memory_id)
    return replace(verdict, record=existing, change=None, held=held)


def _by_index(rows: Sequence[Mapping[str, Any]]) -> dict[int, list[Mapping[str, Any]]]:
    grouped: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        grouped.setdefault(row["index"], []).append(row)
    return grouped
