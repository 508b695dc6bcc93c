"""The forget gate: one call removes everything about a subject, if the write policy permits it.

It is the write gate's operation `delete`. The decision is made first, the removal and its log lines
are one transaction, and the receipt says what it does not cover.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from agent_runtime_ref.contracts import Caller, Decision, ForgetReceipt
from agent_runtime_ref.enforcement.attributes import Attributes
from agent_runtime_ref.enforcement.recorder import Call, Recorder
from agent_runtime_ref.enforcement.removals import PATH, refused_removal
from agent_runtime_ref.enforcement.ruling import DecisionPoint
from agent_runtime_ref.stores.base import ForgetCounts, Store
from agent_runtime_ref.telemetry.chain import Lines
from agent_runtime_ref.telemetry.events import Event
from agent_runtime_ref.telemetry.lines import event_text
from agent_runtime_ref.telemetry.otel import gate_span

NOT_COVERED = (
    "backups and copies of the store that were made before",
    "what was already sent to a collector, a prompt or a model",
    (
        "principal ids in the decision log where they are not the subject of the call, as in calls without"
        " one and in those about a session's constraints and turns; they tell whose the other lines of their"
        " trace are"
    ),
    "source, kind and provenance of the forgotten records in the decision log",
    "keyed digests of the forgotten content, kept so that it is not learned again",
    "keyed digests of who wrote the records that wait in quarantine, kept until these are reviewed",
    "constraints and turns in folders of sessions that `Sessions.forget` did not go through",
    "messages of turns that a killed process left beside the store, until a runtime opens it",
    "long-term preferences that are kept elsewhere; `preferences forget --all` removes them",
)


class ForgetGate:
    """Removes a subject from a tenant."""

    def __init__(
        self, *, point: DecisionPoint, store: Store, attributes: Attributes, recorder: Recorder
    ) -> None:
        self._point = point
        self._store = store
        self._attributes = attributes
        self._recorder = recorder

    def forget(self, subject: str, *, caller: Caller, dry_run: bool) -> ForgetReceipt:
        """Return the receipt of removing `subject` from the caller's tenant; a dry run only counts.

        Raises:
            PolicyDeniedError: the caller may not erase this subject.
            EngineFailureError: the engine gave no clear answer; nothing was removed.
        """
        named = tuple(dict.fromkeys(one for one in (caller.subject, subject) if one is not None))
        call = self._recorder.call(caller, "delete", trace_id=None, session_id=None, subjects=named)
        document = self._document(call, subject)
        with gate_span("delete"), self._recorder.failures(call, PATH, lambda: document, read=False):
            return self._forgotten(call, document, subject, dry_run)

    def _document(self, call: Call, subject: str) -> dict[str, Any]:
        words = self._attributes.words
        candidate = {"tenant_id": words.safe(call.caller.tenant_id), "subject": words.safe(subject)}
        return {
            "operation": "delete",
            "now_ns": call.at_us * 1000,
            "caller": self._attributes.caller(call.caller),
            "candidates": [candidate],
        }

    def _forgotten(
        self, call: Call, document: Mapping[str, Any], subject: str, dry_run: bool
    ) -> ForgetReceipt:
        ruling = self._point.write(document)
        answer = ruling.document
        rows = [*answer["deny"], *answer["quarantine"], *answer["obligations"]]
        if answer["allowed"] != [0] or rows:
            raise refused_removal(self._recorder, call, document, answer["deny"], ruling.duration_ns)
        decision = self._recorder.decision(call, "allow", (), duration_ns=ruling.duration_ns)
        # Asked for here, because the store must not be asked for a key inside its own transaction.
        pseudonym = self._attributes.pseudonyms.of(call.caller.tenant_id, subject, subject)
        kept: list[Event] = []
        lines = Lines.of(call.caller.tenant_id)

        def lines_for(counts: ForgetCounts) -> Sequence[str]:
            event = self._event(call, decision, pseudonym, counts, dry_run)
            kept[:] = [event]
            result = {"allow": True, "effect": "allow", "deny": []}
            lines[:] = [self._recorder.line(call, decision, PATH, document, result), event_text(event)]
            return lines

        counts = self._store.forget(
            call.caller.tenant_id, subject, now_us=call.at_us, dry_run=dry_run, lines_for=lines_for
        )
        if not dry_run:
            self._attributes.pseudonyms.drop()
        self._recorder.mirror(kept, lines, read=False)
        return _receipt(counts, decision, dry_run)

    def _event(
        self, call: Call, decision: Decision, pseudonym: str, counts: ForgetCounts, dry_run: bool
    ) -> Event:
        payload = {
            "subject": pseudonym,
            "counts": dict(counts.by_class),
            "digests": _digests(counts),
            "derived_records": counts.derived,
            "tombstones": counts.tombstones,
            "dry_run": dry_run,
            "not_covered": [*NOT_COVERED, *counts.notes],
        }
        return self._recorder.event(call, "memory_forgotten", decision, payload, decides=True)


def _digests(counts: ForgetCounts) -> dict[str, str]:
    """Return one digest for each class, over those of its records: bounded, and enough to compare."""
    return {
        name: "sha256:" + hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()
        for name, digests in sorted(counts.digests.items())
    }


def _receipt(counts: ForgetCounts, decision: Decision, dry_run: bool) -> ForgetReceipt:
    return ForgetReceipt(
        decision=decision,
        dry_run=dry_run,
        records=counts.records,
        derived=counts.derived,
        superseded=counts.superseded,
        terms=counts.postings,
        dedup_keys=counts.dedup_keys,
        tombstones=counts.tombstones,
        by_class=dict(counts.by_class),
        digests=_digests(counts),
        log_key_destroyed=counts.log_key_destroyed,
        not_covered=(*NOT_COVERED, *counts.notes),
    )
