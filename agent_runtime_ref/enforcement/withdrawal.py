"""Active records are put into quarantine by a reviewer, several in one step, if the policy permits each.

It is the write policy's operation `quarantine`. Whoever puts a record there counts as its writer from then
on, so that somebody else has to let it go; who wrote it when it was active is in the log alone. Records,
decisions and events are one transaction: where one may not be put there, or is no longer as it was seen,
none is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent_runtime_ref.contracts import Decision
from agent_runtime_ref.enforcement.amend import writer_digests
from agent_runtime_ref.enforcement.failures import Failures, settled
from agent_runtime_ref.enforcement.recorder import Call
from agent_runtime_ref.enforcement.review_document import Request
from agent_runtime_ref.enforcement.review_queue import PATH, Asked, ReviewGate, review_refusals
from agent_runtime_ref.stores.base import Change, Waiting, WriteBatch
from agent_runtime_ref.telemetry.chain import Lines
from agent_runtime_ref.telemetry.events import Event
from agent_runtime_ref.telemetry.lines import event_text
from agent_runtime_ref.telemetry.otel import gate_span

__all__ = ["OPERATION", "WithdrawalGate"]

OPERATION = "quarantine"
# Why a record is in quarantine, as the queue lists it; the reviewer's own reason stands beside it as a word.
_REASON = "quarantined_by_reviewer"


class WithdrawalGate(ReviewGate):
    """Takes records from whoever reads them and puts them before a reviewer."""

    def quarantine(self, requests: Sequence[Request]) -> list[Decision]:
        """Put the records of all requests into quarantine, and return the decisions in their order.

        Raises:
            PolicyDeniedError: the policy refused one of them; nothing was changed.
            EngineFailureError: the engine gave no clear answer; nothing was changed.
            RevisionConflictError: others kept changing the records.
            DecisionLogError: the decisions could not be written down, so nothing was done.
        """
        if not requests:
            return []
        with gate_span(OPERATION), self._failures(requests[0]) as told:
            call = told.call
            return settled(lambda: self._put_back(requests, call, told))

    def _put_back(self, requests: Sequence[Request], call: Call, told: Failures) -> list[Decision]:
        permitted = []
        for one in requests:
            asked = self._asked(one, call, told)
            permitted.append((asked, self._permitted(asked)))
        lines: list[str] = []
        events: list[Event] = []
        for asked, decision in permitted:
            of_it = self._events(asked, decision)
            result = {"allow": True, "effect": "allow", "deny": []}
            lines += [self._recorder.line(asked.call, decision, PATH, self._logged(asked), result)]
            lines += map(event_text, of_it)
            events += of_it
        first = permitted[0][0].call
        kept = Lines.of(first.caller.tenant_id, lines)
        self._store.commit(WriteBatch([_change(asked) for asked, _ in permitted], kept, now_us=first.at_us))
        self._recorder.mirror(events, kept)
        return [decision for _, decision in permitted]

    def _permitted(self, asked: Asked) -> Decision:
        ruling = self._point.write(asked.document)
        refusals = review_refusals(ruling.document, OPERATION)
        if refusals:
            raise self._refused(asked, refusals, ruling)
        return self._recorder.decision(asked.call, "allow", (), duration_ns=ruling.duration_ns)

    def _events(self, asked: Asked, decision: Decision) -> list[Event]:
        facts = {"reasons": [_REASON], "rule_ids": []}
        return [self._decided(asked, decision), self._told(asked, decision, "memory_quarantined", facts)]


def _change(asked: Asked) -> Change:
    """Return the change that puts a record into quarantine; what it had superseded stays superseded."""
    found = asked.look.waiting
    assert found is not None, "the policy permits it of what is active only"
    record = replace(found.queued.record, status="quarantined")
    principal, agent = writer_digests(found.context.store_key, record.memory_id, asked.request.caller)
    return Change(
        record,
        dedup=found.queued.dedup,
        exclusive=False,
        original=found.queued.original,
        waiting=Waiting(principal, agent, False),
        queued=found.queued,
    )
