"""Writing down what a gate did: log lines first, then the mirrors of the same events.

The decision log is the record of truth. Its lines are committed before an answer leaves, or with the
change they describe; the trace file and OpenTelemetry get the events afterwards and may fail without
changing anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from agent_runtime_ref.clock import Clock, Ids
from agent_runtime_ref.contracts import Caller, Decision
from agent_runtime_ref.enforcement.attributes import Attributes
from agent_runtime_ref.enforcement.failures import Failures
from agent_runtime_ref.errors import EngineFailureError, StoreError
from agent_runtime_ref.policy.engine import PolicyEngine
from agent_runtime_ref.stores.base import Store
from agent_runtime_ref.telemetry import diagnostics, metrics, otel, turns
from agent_runtime_ref.telemetry.chain import Lines, head
from agent_runtime_ref.telemetry.events import Event
from agent_runtime_ref.telemetry.lines import Considered, DecisionLine, decision_text, event_text
from agent_runtime_ref.telemetry.mask import Mask
from agent_runtime_ref.telemetry.places import chain_name, placed
from agent_runtime_ref.telemetry.trace import TraceFile

_NOTHING_MASKED: Mapping[str, list[str]] = {}


_READING = frozenset({"search", "get", "list", "inspect"})  # operations whose lines go into the log of reads


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a gate: who, when and in which conversation, in words that may be logged."""

    caller: Caller
    operation: str
    trace_id: str
    session_id: str | None
    at_us: int
    subjects: tuple[str, ...]  # what the log must show as pseudonyms only


class Recorder:
    """Makes decisions, lines and events, and knows where they go."""

    def __init__(
        self,
        *,
        store: Store,
        engine: PolicyEngine,
        attributes: Attributes,
        clock: Clock,
        ids: Ids,
        trace: TraceFile | None,
        mask: Mask | None = None,
    ) -> None:
        self._store = store
        self._engine = engine
        self._attributes = attributes
        self._clock = clock
        self._ids = ids
        self._trace = trace
        self._mask = mask

    def call(self, caller: Caller, operation: str, *, trace_id: str | None, session_id: str | None,
             subjects: tuple[str, ...]) -> Call:  # fmt: skip
        """Return the frame of a gate call, stamped now."""
        words = self._attributes.words
        self._attributes.pseudonyms.refresh()
        call = Call(
            caller=caller,
            operation=operation,
            trace_id=words.safe(trace_id or caller.trace_id or self._ids.new("trc")),
            session_id=words.optional(session_id or caller.session_id),
            at_us=self._clock.now_us(),
            subjects=(),
        )
        return self.about(call, subjects) if subjects else call

    def about(self, call: Call, subjects: tuple[str, ...]) -> Call:
        """Return the frame of a call that turns out to be about `subjects`; no id in it is one of theirs."""
        trace_id = self._unnamed(call.caller, subjects, call.trace_id)
        session_id = self._unnamed(call.caller, subjects, call.session_id)
        return replace(call, trace_id=trace_id or call.trace_id, session_id=session_id, subjects=subjects)

    def _unnamed(self, caller: Caller, subjects: tuple[str, ...], word: str | None) -> str | None:
        """Return a word of a call as it may be logged: a session may be called after its user."""
        for subject in subjects:
            if word == self._attributes.words.safe(subject):
                return self._attributes.pseudonyms.of(caller.tenant_id, subject, subject)
        return word

    def decision(
        self,
        call: Call,
        effect: str,
        rows: Sequence[Mapping[str, Any]],
        *,
        obligations: Sequence[Mapping[str, Any]] = (),
        duration_ns: int = 0,
    ) -> Decision:
        """Return the decision of `effect` for the reasons in `rows` (rule_id, reason), by rule id."""
        ordered = sorted({(row["rule_id"], row["reason"]) for row in rows}) if rows else []
        identity = self._engine.identity
        return Decision(
            decision_id=self._ids.new("dec"),
            operation=call.operation,
            effect=effect,
            reasons=tuple(dict.fromkeys(reason for _, reason in ordered)),
            rule_ids=tuple(dict.fromkeys(rule_id for rule_id, _ in ordered)),
            obligations=tuple(dict(obligation) for obligation in obligations),
            policy_digest=identity.digest,
            policy_revision=identity.revision,
            engine=self._engine.name,
            duration_ns=duration_ns,
        )

    def event(
        self,
        call: Call,
        event_type: str,
        decision: Decision | None,
        payload: Mapping[str, Any],
        *,
        decides: bool,
    ) -> Event:
        """Return an event with who, and with what was decided where the catalogue wants it.

        Without a decision it is one of before any, or it names one in its payload.
        """
        words = self._attributes.words
        who = {
            "event_id": self._ids.new("evt"),
            "session_id": call.session_id,
            "tenant_id": words.safe(call.caller.tenant_id),
            "principal_id": self._principal(call),
            "agent_id": self._unnamed(call.caller, call.subjects, words.optional(call.caller.agent_id)),
        }
        if decision is not None:
            who["decision_id"] = decision.decision_id
        decided = _decided(decision) if decision is not None and decides else {}
        return Event(
            event_type, call.trace_id, call.at_us, {**who, **otel.span_fields(), **decided, **payload}
        )

    def line(
        self,
        call: Call,
        decision: Decision,
        path: str,
        document: Mapping[str, Any],
        result: Mapping[str, Any],
        considered: Considered | None = None,
    ) -> str:
        """Return the body of the decision line: the input as the engine saw it, subjects masked."""
        masked: Mapping[str, Any] = self._attributes.masked(document, call.caller, call.subjects)
        told = _NOTHING_MASKED
        if self._mask is not None:
            masked, result, told = self._mask.applied(masked, result)
        return decision_text(
            DecisionLine(
                event_id=self._ids.new("evt"),
                trace_id=call.trace_id,
                session_id=call.session_id,
                at_us=call.at_us,
                path=path,
                decision=decision,
                requested_by=self._principal(call),
                input=masked,
                result=result,
                considered=considered,
                extra=told,
            )
        )

    def keep(
        self, lines: Sequence[str], events: Sequence[Event], *, read: bool, tenant_id: str | None
    ) -> int:
        """Commit lines and events of a tenant to the decision log, then mirror the events.

        Returns the number of the last line in its chain; 0 where the store does not say.

        Raises:
            DecisionLogError: the log cannot be written; the answer must not leave.
        """
        kept = Lines.of(tenant_id, (*lines, *map(event_text, events)))
        self._store.append_lines(kept, read=read)
        self.mirror(events, kept, read=read)
        return head(kept.sealed[-1])[0] if kept.sealed else 0

    def mirror(self, events: Sequence[Event], lines: Sequence[str] = (), *, read: bool = False) -> None:
        """Hand events that the log already holds to the trace file and to OpenTelemetry.

        `lines` are those that were handed to the store, as `Lines`: by them an event that leaves the process
        carries the place of its line in the log. Whatever a mirror does wrong is reported and changes
        nothing: the decision has been carried out.
        """
        turn = turns.current()
        if turn is not None:
            turn.add(events)
        self._measured(events)
        if self._trace is None and not otel.is_listening():
            return
        if isinstance(lines, Lines):
            chain = lines.chain or chain_name(self._store.log_mode, read=read)
            events = placed(events, lines.sealed, chain=chain)
        if self._trace is not None:
            self._trace.append(events)
        try:
            otel.emit(events)
        except Exception as error:
            diagnostics.warning("events_not_emitted", reason=type(error).__name__)

    def _measured(self, events: Sequence[Event]) -> None:
        try:
            metrics.count(events)
            otel.describe(events)
        except Exception as error:
            diagnostics.warning("events_not_measured", reason=type(error).__name__)

    def engine_failure(
        self, call: Call, failure: EngineFailureError, path: str, document: Mapping[str, Any], *, read: bool
    ) -> EngineFailureError:
        """Record a refusal for want of an answer, and return the error that carries its decision."""
        row = {"rule_id": "ENGINE", "reason": failure.reason}
        decision = self.decision(call, "deny", [row])
        payload = {
            "reason": failure.reason,
            "error.type": type(failure.__cause__ or failure).__name__,
            "digest": decision.policy_digest,
            "operation": call.operation,
        }
        event = self.event(call, "policy_engine_failure", decision, payload, decides=True)
        self._alarm("policy_engine_failure", call, reason=failure.reason)
        shown = {name: value for name, value in document.items() if name != "candidates"}
        result = {"allow": False, "effect": "deny", "deny": [row]}
        tenant_id = call.caller.tenant_id
        self.keep([self.line(call, decision, path, shown, result)], [event], read=read, tenant_id=tenant_id)
        return EngineFailureError(failure.reason, failure.detail, operation=call.operation, decision=decision)

    def _alarm(self, name: str, call: Call, **fields: object) -> None:
        diagnostics.error(name, operation=call.operation, call_trace_id=call.trace_id, **fields)

    def loaded(self) -> None:
        """Tell the mirrors which policies decide from now on."""
        self.mirror([self._loaded(None)])

    def replaced(self, previous_digest: str) -> None:
        """Write down that these policies decide from now on, in the place of others.

        Raises:
            DecisionLogError: the log cannot be written; the others must stay in force.
        """
        self.keep([], [self._loaded(previous_digest)], read=False, tenant_id=None)

    def _loaded(self, previous_digest: str | None) -> Event:
        identity = self._engine.identity
        payload = {
            "event_id": self._ids.new("evt"),
            "digest": identity.digest,
            "revision": identity.revision,
            "engine": self._engine.name,
        }
        if previous_digest is not None:
            payload["previous_digest"] = previous_digest
        return Event("policy_loaded", self._ids.new("trc"), self._clock.now_us(), payload)

    def not_replaced(self, failure: Exception) -> None:
        """Raise the alarm that other policies could not be used and these go on deciding."""
        reason = getattr(failure, "reason", "engine_exception")
        payload = {
            "event_id": self._ids.new("evt"),
            "operation": "reload",
            "reason": reason,
            "error.type": type(failure).__name__,
            "digest": self._engine.identity.digest,
        }
        diagnostics.error("policy_engine_failure", reason=reason, operation="reload", detail=str(failure))
        event = Event("policy_engine_failure", self._ids.new("trc"), self._clock.now_us(), payload)
        lines = Lines([event_text(event)])
        with suppress(StoreError):  # the alarm is wanted all the more where the log is broken too
            self._store.append_lines(lines, read=False)
        self.mirror([event], lines)

    def failures(
        self, call: Call, path: str, document: Callable[[], Mapping[str, Any]], *, read: bool
    ) -> Failures:
        """Return the block in which a gate does its work: an engine or a store that fails there is told once.

        `document` makes the question for the line of a refusal for want of an answer, without candidates.
        """
        return Failures(self, call, path, document, read=read)

    def store_failure(self, call: Call, failure: StoreError) -> None:
        """Tell the mirrors that a store failed; the store's own log may be what is broken."""
        failure.is_told = True
        payload = {
            "event_id": self._ids.new("evt"),
            "session_id": call.session_id,
            "tenant_id": self._attributes.words.safe(call.caller.tenant_id),
            "principal_id": self._principal(call),
            "operation": call.operation,
            "error.type": type(failure).__name__,
            "error.code": failure.code,
        }
        self._alarm("store_failure", call, code=failure.code)
        event = Event("store_failure", call.trace_id, call.at_us, payload)
        lines = Lines.of(call.caller.tenant_id, [event_text(event)])
        read = call.operation in _READING
        # A log that is itself what failed keeps its silence; the error says so.
        with suppress(StoreError):
            self._store.append_lines(lines, read=read)
        self.mirror([event], lines, read=read)

    def _principal(self, call: Call) -> str:
        principal = call.caller.principal_id
        if principal in call.subjects:
            return self._attributes.pseudonyms.of(call.caller.tenant_id, principal, principal)
        return self._attributes.words.safe(principal)


def _decided(decision: Decision) -> dict[str, Any]:
    return {
        "effect": decision.effect,
        "reasons": list(decision.reasons),
        "rule_ids": list(decision.rule_ids),
        "policy_digest": decision.policy_digest,
        "policy_revision": decision.policy_revision,
        "engine": decision.engine,
        "duration": decision.duration_ns,
    }
