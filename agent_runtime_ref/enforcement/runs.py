"""A turn of the runtime as the gates see it: admitted or refused, and told from its start to its end.

The precheck is the read policy's decision about what the turn wants to read: who may not read for a purpose
may not have it answered either. Where it permits, the retrieval carries out that very decision. Events of a
turn go into the log of reads, before anything that they tell of leaves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent_runtime_ref.clock import Clock, Ids
from agent_runtime_ref.contracts import Caller, Decision, RetrievalQuery, RetrievalResult
from agent_runtime_ref.contracts.projection import CONVERSATION, PROFILE_SNAPSHOT
from agent_runtime_ref.enforcement.attributes import subjects_named
from agent_runtime_ref.enforcement.read import PATH, Question, ReadGate
from agent_runtime_ref.enforcement.recorder import Call, Recorder
from agent_runtime_ref.enforcement.ruling import DecisionPoint, Ruling, read_refusals
from agent_runtime_ref.errors import DecisionLogError, EngineFailureError, StoreError
from agent_runtime_ref.telemetry.events import Event
from agent_runtime_ref.telemetry.words import Words

__all__ = ["Built", "LateEnd", "Run", "RunGate", "RunRequest"]

# They have ways in of their own: conversations are recalled, a profile begins a conversation.
_NOT_RETRIEVED = frozenset({CONVERSATION, PROFILE_SNAPSHOT})
_LAYERS = ("static", "session", "retrieved", "tool")
# What `Run.built_payload` returns. What a file says beside it, such as another principal, is not believed.
_BUILT = (*(f"{name}_items" for name in _LAYERS), "record_ids", "context_digest", "left_out")
_DIGEST = re.compile(r"hmac:[0-9a-f]{32}\Z")  # what `Words` made of a word; made again it would be another
_NOT_PERMITTED = {"rule_id": "GATE", "reason": "not_permitted"}
_Admitted = tuple[Question, Ruling]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a turn is about: who, what for, the message, and how many memories may be retrieved."""

    caller: Caller  # with trace and session
    purpose: str
    text: str
    limit: int


@dataclass(frozen=True, slots=True)
class Built:
    """What entered the context of a turn: counts and record ids by layer, and the text that was rendered."""

    items: Mapping[str, int]
    record_ids: Mapping[str, Sequence[str]]
    left_out: Sequence[str]  # ids of records that the budget kept out
    text: str


@dataclass(frozen=True, slots=True)
class LateEnd:
    """A turn whose process died before it was told how it ended, as that process left it."""

    caller: Caller
    decision_id: str
    built: Mapping[str, Any] | None  # what `Run.built_payload` returned
    log_seq: int = 0  # of the line with which it began; 0: the log is looked through from its beginning


class Run:
    """A turn under way; every method writes down what it tells before it returns.

    Raises (all of them):
        DecisionLogError: it could not be written down, so it must not be acted on.
    """

    def __init__(
        self,
        gate: RunGate,
        call: Call,
        caller: Caller,
        decision: Decision,
        admitted: _Admitted | None,
        log_seq: int = 0,
        failure: StoreError | None = None,
    ) -> None:
        self._gate = gate
        self._call = call
        self._admitted = admitted
        self._retrieved: RetrievalResult | None = None
        self.caller = caller  # with the trace and session under which every gate of the turn is asked
        self.decision = decision
        self.failure = failure  # of the store, where nobody could be asked for the precheck
        self.turn_id = gate.ids.new("turn")
        self.at_us = call.at_us
        self.log_seq = log_seq  # of the log line that tells of its admission

    @property
    def is_admitted(self) -> bool:
        """Whether the turn may go on."""
        return self._admitted is not None

    def retrieve(self) -> RetrievalResult:
        """Return what the decision lets out; nothing, and why, where the message has nothing to search by.

        It is one decision and one line, however often it is asked for.

        Raises:
            EngineFailureError: the second check had no clear answer; nothing left the store.
            StoreError: the store failed.
        """
        assert self._admitted is not None, "only an admitted turn retrieves"
        if self._retrieved is None:
            self._retrieved = self._gate.reads.carried_out(*self._admitted, self.decision)
        return self._retrieved

    def tool(self, name: str, status: str, error: BaseException | None = None) -> None:
        """Tell of a call of a tool; the name of one that there is not is shown as a digest if need be."""
        payload = {"tool": self._gate.words.safe(name), "status": status, **_failure(error)}
        self._keep([self._event("tool_execution", payload)])

    def built_payload(self, built: Built) -> dict[str, Any]:
        """Return what the event says about a context: no text of it, its digest only."""
        words = self._gate.words
        return {
            **{f"{name}_items": built.items.get(name, 0) for name in _LAYERS},
            "record_ids": {name: words.each(ids) for name, ids in built.record_ids.items()},
            "context_digest": words.digest(built.text),
            "left_out": words.each(built.left_out),
        }

    def digest(self, text: str) -> str:
        """Return the keyed digest that stands for a context's text."""
        return self._gate.words.digest(text)

    def completed(self, built: Mapping[str, Any]) -> None:
        """Tell what entered the context and that the turn ended with a reply."""
        entered = self._event("context_layers_built", built)
        self._keep([entered, self._event("run_complete", {"status": "complete"})])

    def failed(self, error: BaseException | None, built: Mapping[str, Any] | None, status: str) -> None:
        """Tell that the turn ended without a reply, and what had entered the context by then."""
        events = [] if built is None else [self._event("context_layers_built", built)]
        self._keep([*events, self._event("run_failed", {"status": status, **_failure(error)})])

    def _keep(self, events: Sequence[Event]) -> None:
        self._gate.keep(self._call, events)

    def _event(self, event_type: str, payload: Mapping[str, Any]) -> Event:
        call = replace(self._call, at_us=self._gate.clock.now_us())
        return self._gate.recorder.event(call, event_type, self.decision, payload, decides=False)


class RunGate:
    """Admits turns, and writes down how they go."""

    def __init__(
        self,
        *,
        point: DecisionPoint,
        reads: ReadGate,
        recorder: Recorder,
        words: Words,
        settings: Mapping[str, Any],
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._point = point
        self._settings = settings
        self.ids = ids
        self.reads = reads
        self.recorder = recorder
        self.words = words
        self.clock = clock

    def begin(self, request: RunRequest) -> Run:
        """Ask the policy about a turn, and write down that it begins and whether it goes on.

        Raises:
            DocumentError: an id or the purpose is no label that a query could bear.
            DecisionLogError: the decision could not be written down.
        """
        request = self._identified(request)
        try:
            return self._begun(request)
        except DecisionLogError:
            raise
        except StoreError as failure:
            return self._without_store(request, failure)

    def _begun(self, request: RunRequest) -> Run:
        query = self._query(request)
        question = self.reads.question(query, caller=request.caller, text=request.text)
        start = self._event(question.call, "run_start", None, {"purpose": self.words.safe(request.purpose)})
        try:
            ruling = self._point.read(question.document)
        except EngineFailureError as failure:
            return self._without_answer(request, question, start, failure)
        rows = read_refusals(ruling.document)
        if rows:
            return self._refused(request, question, start, rows, ruling.duration_ns)
        decision = self.recorder.decision(question.call, "allow", (), duration_ns=ruling.duration_ns)
        check = {"action": "allow", "reason": "permitted"}
        told = [start, self._event(question.call, "policy_precheck", decision, check, decides=True)]
        log_seq = self.keep(question.call, told)
        return Run(self, question.call, request.caller, decision, (question, ruling), log_seq)

    def end_late(self, ended: LateEnd) -> bool:
        """Tell that a turn was interrupted whose process died, unless the log tells how it ended.

        Returns whether anything was left to tell. Of the log only what stands behind the turn's beginning is
        read, up to its end: that costs the same however long the log is.
        """
        decision_id = self.words.safe(ended.decision_id)
        needle = decision_id.encode()
        lines = self.reads.told_after(ended.caller.tenant_id, max(0, ended.log_seq))
        if any(_ends(line, needle) for line in lines):
            return False
        caller, about = ended.caller, subjects_named(ended.caller)
        call = self.recorder.call(caller, "search", trace_id=None, session_id=None, subjects=about)
        facts = {"decision_id": decision_id}
        events = [self._event(call, "run_failed", None, {"status": "interrupted", **facts})]
        if ended.built is not None:
            built = {name: _again(ended.built[name], self.words) for name in _BUILT if name in ended.built}
            events.insert(0, self._event(call, "context_layers_built", None, {**built, **facts}))
        self.keep(call, events)
        return True

    def keep(self, call: Call, events: Sequence[Event], lines: Sequence[str] = ()) -> int:
        """Commit events of one turn, and lines with them; returns the number of the last line."""
        return self.recorder.keep(lines, events, read=True, tenant_id=call.caller.tenant_id)

    def _event(
        self,
        call: Call,
        event_type: str,
        decision: Decision | None,
        payload: Mapping[str, Any],
        *,
        decides: bool = False,
    ) -> Event:
        return self.recorder.event(call, event_type, decision, payload, decides=decides)

    def _refused(
        self,
        request: RunRequest,
        question: Question,
        start: Event,
        rows: Sequence[Mapping[str, Any]],
        duration_ns: int,
    ) -> Run:
        call = question.call
        decision = self.recorder.decision(call, "deny", rows, duration_ns=duration_ns)
        result = {"allow": False, "effect": "deny", "deny": list(rows)}
        line = self.recorder.line(call, decision, PATH, question.document, result)
        self.keep(call, [start, *self._refusal(call, decision)], [line])
        return Run(self, call, request.caller, decision, None)

    def _without_answer(
        self, request: RunRequest, question: Question, start: Event, failure: EngineFailureError
    ) -> Run:
        call = question.call
        self.keep(call, [start])
        told = self.recorder.engine_failure(call, failure, PATH, question.document, read=True)
        assert told.decision is not None
        self.keep(call, self._refusal(call, told.decision))
        return Run(self, call, request.caller, told.decision, None)

    def _without_store(self, request: RunRequest, failure: StoreError) -> Run:
        """Write down that a turn went no further than its beginning: what is to be asked needs the store."""
        caller = request.caller
        try:
            about = subjects_named(caller, caller.subject)
            call = self.recorder.call(
                caller, "search", trace_id=caller.trace_id, session_id=caller.session_id, subjects=about
            )
            decision = self.recorder.decision(call, "deny", [_NOT_PERMITTED])
            start = self._event(call, "run_start", None, {"purpose": self.words.safe(request.purpose)})
            self.keep(call, [start])
            self.recorder.store_failure(call, failure)
            self.keep(call, self._refusal(call, decision, failure))
        except DecisionLogError:
            raise
        except StoreError as again:
            problem = f"the store fails too: {again.values['problem']}"
            raise DecisionLogError(str(again.values["store"]), problem) from failure
        return Run(self, call, caller, decision, None, failure=failure)

    def _refusal(self, call: Call, decision: Decision, failure: StoreError | None = None) -> list[Event]:
        check = {"action": "deny", "reason": next(iter(decision.reasons), "not_permitted")}
        ended = {"status": "denied" if failure is None else "failed", **_failure(failure)}
        return [
            self._event(call, "policy_precheck", decision, check, decides=True),
            self._event(call, "run_failed", decision, ended),
        ]

    def _identified(self, request: RunRequest) -> RunRequest:
        """Return the request with one trace for all of the turn; without a session it is one by itself."""
        caller = request.caller
        trace_id = caller.trace_id or self.ids.new("trc")
        caller = replace(caller, trace_id=trace_id, session_id=caller.session_id or trace_id)
        return replace(request, caller=caller)

    def _query(self, request: RunRequest) -> RetrievalQuery:
        caller = request.caller
        assert caller.trace_id is not None
        assert caller.session_id is not None
        purpose = self._settings["purposes"].get(request.purpose)
        classes = sorted(self._settings["classes"] if purpose is None else purpose["classes"])
        permitted = self._settings["permitted"]
        kinds = sorted({kind for name in classes for kind in permitted.get(name, ())} - _NOT_RETRIEVED)
        return RetrievalQuery(
            caller.trace_id,
            caller.session_id,
            caller.tenant_id,
            caller.principal_id,
            request.purpose,
            tuple(classes),
            request.limit,
            subject=caller.subject,
            kinds=tuple(kinds),
        )


def _ends(line: bytes, decision_id: bytes) -> bool:
    """Say whether a line of the log tells how the turn of a decision ended."""
    return decision_id in line and (
        b'"event_type":"run_complete"' in line or b'"event_type":"run_failed"' in line
    )


def _again(value: Any, words: Words) -> Any:
    """Return what a file says of a context as it may be logged: nobody knows who wrote it there."""
    if isinstance(value, str):
        return value if _DIGEST.match(value) else words.safe(value)
    if isinstance(value, Mapping):
        return {words.safe(name): _again(inner, words) for name, inner in value.items()}
    return [_again(inner, words) for inner in value] if isinstance(value, list) else value


def _failure(error: BaseException | None) -> dict[str, str]:
    """Return the type of an error: its message may quote what somebody wrote."""
    return {} if error is None else {"error.type": type(error).__name__}
