"""The write gate: nothing enters memory but through here (a PEP).

One call follows a batch from the door to the store: detectors, attributes, decision, amendment, one
transaction with the log lines, receipts. A single write is a batch of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agent_runtime_ref.contracts import Caller, MemoryCandidate, MemoryRecord, WriteReceipt
from agent_runtime_ref.enforcement.attributes import Attributes, subjects_named
from agent_runtime_ref.enforcement.failures import settled
from agent_runtime_ref.enforcement.prepared import Pinned, Prepared, context_of, document_of, prepared
from agent_runtime_ref.enforcement.recorder import Call, Recorder
from agent_runtime_ref.enforcement.ruling import DecisionPoint
from agent_runtime_ref.enforcement.scanner import Scanner
from agent_runtime_ref.enforcement.verdicts import PATH, Verdict, Verdicts
from agent_runtime_ref.errors import (
    EngineFailureError,
    PolicyDeniedError,
    StoreError,
    WriteInterruptedError,
)
from agent_runtime_ref.stores.base import CommitOutcome, Store, WriteBatch
from agent_runtime_ref.telemetry.chain import Lines
from agent_runtime_ref.telemetry.lines import event_text
from agent_runtime_ref.telemetry.otel import gate_span

BATCH_MAX = 1_000

Outcome = WriteReceipt | PolicyDeniedError


class WriteGate:
    """Admits, amends, quarantines or refuses what somebody wants remembered."""

    def __init__(
        self,
        *,
        point: DecisionPoint,
        store: Store,
        attributes: Attributes,
        recorder: Recorder,
        scanner: Scanner,
        verdicts: Verdicts,
    ) -> None:
        self._point = point
        self._store = store
        self._attributes = attributes
        self._recorder = recorder
        self._scanner = scanner
        self._verdicts = verdicts

    def write(self, candidate: MemoryCandidate, *, caller: Caller) -> WriteReceipt:
        """Keep `candidate` if the policy admits it, and return the receipt.

        Raises:
            PolicyDeniedError: the policy refused; nothing was written.
            EngineFailureError: the engine gave no clear answer; nothing was written.
            RevisionConflictError: other writers kept changing the same memory.
            DecisionLogError: the decision could not be written down; neither was the record.
        """
        outcome = next(iter(self.write_many([candidate], caller=caller)))
        if isinstance(outcome, PolicyDeniedError):
            raise outcome
        return outcome

    def write_many(self, candidates: Iterable[MemoryCandidate], *, caller: Caller) -> list[Outcome]:
        """Return one receipt or refusal for each candidate, in order; one transaction a batch.

        All candidates are taken in before the first batch is committed: an iterable that fails on the way
        leaves nothing written whose receipt would be lost.

        Raises:
            WriteInterruptedError: the engine or the store failed after some batches had been committed; it
                carries their outcomes. What fails in the first batch is raised as `write` raises it.
        """
        return self._all(((candidate, None) for candidate in candidates), caller)

    def load(self, records: Iterable[tuple[MemoryCandidate, Pinned]], *, caller: Caller) -> list[Outcome]:
        """Return the outcomes for seed records, which keep their own ids, revisions and instants."""
        return self._all(iter(records), caller)

    def _all(self, pairs: Iterator[tuple[MemoryCandidate, Pinned | None]], caller: Caller) -> list[Outcome]:
        key = self._store.store_key()
        items = [prepared(one, scanner=self._scanner, store_key=key, pinned=pin) for one, pin in pairs]
        outcomes: list[Outcome] = []
        for batch in _batches(items):
            try:
                self._write(batch, caller, outcomes)
            except (EngineFailureError, StoreError) as failure:
                if not outcomes:
                    raise
                # A receipt that is lost is a memory that nobody knows of: what was settled goes along.
                raise WriteInterruptedError(outcomes, len(items), failure) from failure
        return outcomes

    def _write(self, batch: Sequence[Prepared], caller: Caller, outcomes: list[Outcome]) -> None:
        """Write a batch, in parts where an engine is asked too much, and add the outcomes of each part."""
        subjects = subjects_named(caller, *(item.candidate.subject for item in batch))
        call = self._recorder.call(caller, "write", trace_id=None, session_id=None, subjects=subjects)
        told = self._recorder.failures(call, PATH, lambda: self._document(call, ()), read=False)
        with gate_span("write"), told:
            try:
                outcomes += settled(lambda: self._committed(batch, call))
            except EngineFailureError as failure:
                if failure.reason != "input_too_large" or len(batch) == 1:
                    raise
                half = len(batch) // 2
                self._write(batch[:half], caller, outcomes)
                self._write(batch[half:], caller, outcomes)

    def _committed(self, batch: Sequence[Prepared], call: Call) -> list[Outcome]:
        context = context_of(batch, self._store, call.caller, call.at_us)
        words = self._attributes.words
        candidates = [
            document_of(item, head, context, words) for item, head in zip(batch, context.heads, strict=True)
        ]
        document = self._document(call, candidates)
        ruling = self._point.write(document)
        verdicts = self._verdicts.of(batch, call, context, document, ruling)
        changes = [verdict.change for verdict in verdicts if verdict.change is not None]
        after = [self._verdicts.after(call, verdict) for verdict in verdicts]
        lines = Lines.of(
            call.caller.tenant_id,
            (
                text
                for verdict, event in zip(verdicts, after, strict=True)
                for text in (verdict.line, event_text(verdict.event), *([event_text(event)] if event else []))
            ),
        )
        held = [verdict.held for verdict in verdicts if verdict.held is not None]
        committed = self._store.commit(WriteBatch(changes, lines, held, now_us=call.at_us))
        self._recorder.mirror(
            [
                one
                for verdict, event in zip(verdicts, after, strict=True)
                for one in (verdict.event, event)
                if one
            ],
            lines,
            read=False,
        )
        return self._outcomes(verdicts, iter(committed))

    def _document(self, call: Call, candidates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {
            "operation": "write",
            "now_ns": call.at_us * 1000,
            "caller": self._attributes.caller(call.caller),
            "candidates": list(candidates),
        }

    def _outcomes(self, verdicts: Sequence[Verdict], committed: Iterator[CommitOutcome]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for verdict in verdicts:
            if verdict.record is None:
                outcomes.append(PolicyDeniedError(verdict.decision))
                continue
            superseded = next(committed).superseded if verdict.change is not None else ()
            outcomes.append(self._receipt(verdict, verdict.record, superseded))
        return outcomes

    def _receipt(self, verdict: Verdict, record: MemoryRecord, superseded: tuple[str, ...]) -> WriteReceipt:
        notes = []
        if verdict.duplicate_of is not None:
            notes.append("the same memory was there already; nothing was added")
        elif record.key is None and record.revision > 1:
            notes.append("no key: the revision count was continued and nothing was superseded")
        return WriteReceipt(
            effect=verdict.decision.effect if verdict.duplicate_of is None else "allow",
            record=record,
            decision=verdict.decision,
            supersedes=superseded[0] if superseded else None,
            duplicate_of=verdict.duplicate_of,
            notes=tuple(notes),
        )


def _batches(items: Iterable[Prepared]) -> Iterator[list[Prepared]]:
    """Cut into batches in which no candidate depends on another one of the same batch."""
    batch: list[Prepared] = []
    seen: set[object] = set()
    for item in items:
        mark = _mark(item)
        if len(batch) >= BATCH_MAX or mark in seen or not seen.isdisjoint(item.candidate.derived_from):
            yield batch
            batch, seen = [], set()
        batch.append(item)
        seen.add(mark)
    if batch:
        yield batch


def _mark(item: Prepared) -> object:
    if item.pinned is not None:
        return item.pinned.memory_id
    if item.candidate.revision_mode == "append":
        return item.dedup
    return (item.candidate.tenant_id, item.slot)
