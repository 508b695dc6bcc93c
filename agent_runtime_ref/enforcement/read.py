"""The read gate: nothing leaves memory but through here (a PEP).

One call follows one query from the door to the answer: attributes, decision, plan, search, second
check, cut, document, log line. Policy comes before ranking and before the limit, always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent_runtime_ref.clock import Clock
from agent_runtime_ref.contracts import Caller, Decision, Hit, Plan, RetrievalQuery, RetrievalResult
from agent_runtime_ref.enforcement.answer import SCAN_BATCH, Answer, exact_answer, hits_of, result_document
from agent_runtime_ref.enforcement.attributes import (
    Attributes,
    Inspection,
    real_plan,
    request_strings,
    subjects_named,
)
from agent_runtime_ref.enforcement.recollection import Gather
from agent_runtime_ref.enforcement.recorder import Call, Recorder
from agent_runtime_ref.enforcement.ruling import DecisionPoint, Ruling, read_refusals
from agent_runtime_ref.errors import PolicyDeniedError, TextError
from agent_runtime_ref.recall.analysis import query_terms
from agent_runtime_ref.recall.render import render_memories
from agent_runtime_ref.stores.base import Match, SearchPage, SearchRequest, Store
from agent_runtime_ref.stores.chains import chain_with
from agent_runtime_ref.telemetry import turns
from agent_runtime_ref.telemetry.lines import Considered
from agent_runtime_ref.telemetry.otel import gate_span

PATH = "memory/read/decision"
# How many records beyond the limit are checked a second time, so that a few that the store should not
# have returned do not make the answer short.
SPARE = 5
# Fewer than the fifty that a line may hold: each one costs a read about 15 microseconds.
KEPT_OUT_LOGGED = 20
# An inspection may return more than a log line can name; its event names the first so many.
SELECTED_LOGGED = 100
_NOTHING: Mapping[str, Any] = {
    "selected": [],
    "selection_reason": [],
    "excluded_records": 0,
    "exclusions": {},
    "considered": 0,
}
_UNSEARCHABLE = {"rule_id": "GATE", "reason": "text_not_searchable"}
_UNBUILT_PURPOSES = frozenset({"inspection", "compliance_review"})


@dataclass(frozen=True, slots=True)
class Question:
    """One read on its way: what was asked, in the words of each side. Made by the gate, for the gate."""

    call: Call
    document: dict[str, Any]
    terms: tuple[str, ...] | None
    tenant_ids: tuple[str, ...] | None
    limit: int
    purpose: str
    names: Sequence[str]
    gather: Gather | None = None  # None: records come in the store's own order
    # Policy views of the records on the page, made for the second check and used again for the log line.
    shown: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)


class ReadGate:
    """Answers queries with what policy lets the caller see, best match first."""

    def __init__(
        self, *, point: DecisionPoint, store: Store, attributes: Attributes, recorder: Recorder, clock: Clock
    ) -> None:
        self._point = point
        self._store = store
        self._attributes = attributes
        self._recorder = recorder
        self._clock = clock

    def read(
        self, query: RetrievalQuery, *, caller: Caller, text: str | None = None, operation: str = "search"
    ) -> RetrievalResult:
        """Return the records that `query` and the policy select, ranked.

        Raises:
            PolicyDeniedError: the policy refused, or asked for something the gate cannot do.
            EngineFailureError: the engine gave no clear answer.
            TextError: `text` has nothing to search by.
            DecisionLogError: the decision could not be written down; nothing left the store.
        """
        return self._answered(self._asked(query, caller, text, operation, None))[0]

    def gathered(
        self, query: RetrievalQuery, *, caller: Caller, text: str | None, gather: Gather
    ) -> tuple[RetrievalResult, Answer, int]:
        """Return the records that `query` and the policy select in the order of `gather`, and when it was.

        The hits of the result bear no score: the order is not that of a read. Raises what `read` raises.
        """
        question = self._asked(query, caller, text, "search", gather)
        return *self._answered(question), question.call.at_us

    def told_after(self, tenant_id: str, seq: int) -> Iterator[bytes]:
        """Return the lines behind line `seq` of the chain that reads of a tenant go to, oldest first."""
        return chain_with(self._store, tenant_id, read=True).raw(seq)

    def question(self, query: RetrievalQuery, *, caller: Caller, text: str | None) -> Question:
        """Return a search that is to be decided now and carried out later, by `carried_out`.

        A text with nothing to search by is no refusal here: it finds nothing, and the result says why.
        """
        return self._asked(query, caller, text, "search", None, finds_nothing=True)

    def carried_out(self, question: Question, ruling: Ruling, decision: Decision) -> RetrievalResult:
        """Return what a ruling that permits `question` lets out, as `read` does, under its decision."""
        return self._guarded(question, lambda: self._carried_out(question, ruling, decision))[0]

    def _asked(
        self, query: RetrievalQuery, caller: Caller, text: str | None, operation: str, gather: Gather | None,
        *, finds_nothing: bool = False
    ) -> Question:  # fmt: skip
        subjects = subjects_named(caller, query.subject)
        call = self._recorder.call(
            caller, operation, trace_id=query.trace_id, session_id=query.session_id, subjects=subjects
        )
        document = self._attributes.read(
            query, caller, now_us=call.at_us, has_text=text is not None, operation=operation
        )
        try:
            terms = None if text is None else query_terms(text)
        except TextError:
            if not finds_nothing:
                self._record_refusal(call, document, query.limit, [_UNSEARCHABLE], 0)
                raise
            terms = ()
        names = request_strings(query, caller)
        if terms is not None and gather is not None:
            terms = tuple(sorted(terms))
        tenants = (query.tenant_id,)
        return Question(call, document, terms, tenants, query.limit, query.purpose, names, gather)

    def inspect(
        self, inspection: Inspection, *, caller: Caller
    ) -> tuple[RetrievalResult, list[dict[str, Any]]]:
        """Return the records an operator asked to look at, whatever their status, and their attributes.

        Raises:
            PolicyDeniedError: the caller is no operator, or the purpose is not inspection.
        """
        call = self._recorder.call(
            caller, "inspect", trace_id=None, session_id=None, subjects=subjects_named(caller)
        )
        document = self._attributes.inspect(inspection, caller, now_us=call.at_us)
        tenants = None if inspection.tenant_id is None else (inspection.tenant_id,)
        names = [
            caller.tenant_id,
            caller.own_subject,
            *(tenants or ()),
            *(inspection.classes or ()),
            *inspection.kinds,
            *inspection.sources,
            *inspection.record_ids,
        ]
        question = Question(call, document, None, tenants, inspection.limit, inspection.purpose, names)
        result, answer = self._answered(question)
        return result, [match.attributes for match in answer.selected]

    def _answered(self, question: Question) -> tuple[RetrievalResult, Answer]:
        return self._guarded(question, lambda: self._answer(question))

    def _guarded(
        self, question: Question, answer: Callable[[], tuple[RetrievalResult, Answer]]
    ) -> tuple[RetrievalResult, Answer]:
        told = self._recorder.failures(question.call, PATH, lambda: question.document, read=True)
        with gate_span(question.call.operation), told:
            return answer()

    def _answer(self, question: Question) -> tuple[RetrievalResult, Answer]:
        ruling = self._point.read(question.document)
        rows = read_refusals(ruling.document)
        if rows:
            raise PolicyDeniedError(
                self._record_refusal(
                    question.call, question.document, question.limit, rows, ruling.duration_ns
                )
            )
        return self._carried_out(question, ruling)

    def _carried_out(
        self, question: Question, ruling: Ruling, decided: Decision | None = None
    ) -> tuple[RetrievalResult, Answer]:
        """Search as the ruling says, check what was found, and write it down, under a decision of before."""
        plan = real_plan(Plan.from_decision(ruling.document), self._attributes.words, question.names)
        answer = self._found(question, plan)
        scored = question.terms if question.gather is None else None
        records = hits_of(answer, scored, question.call.at_us)
        duration_ns = answer.duration(ruling)
        decision = self._recorder.decision(question.call, "allow", (), duration_ns=duration_ns)
        if decided is not None:
            decision = replace(decided, duration_ns=duration_ns)
        result = RetrievalResult(
            document=result_document(question.call, decision, answer, records, self._attributes.words, plan,
                                     has_text=question.terms is not None),
            hits=records,
            exclusions=answer.exclusions,
            decision=decision,
            underfilled=answer.underfilled,
        )  # fmt: skip
        self._keep(question, ruling, answer, result, decision)
        return result, answer

    def _record_refusal(
        self,
        call: Call,
        document: Mapping[str, Any],
        limit: int,
        rows: Sequence[Mapping[str, Any]],
        duration_ns: int,
    ) -> Decision:
        """Write down that nothing was read and why, and return the decision."""
        decision = self._recorder.decision(call, "deny", rows, duration_ns=duration_ns)
        purpose = document["query"]["purpose"]
        payload = {"operation": call.operation, "purpose": purpose, "limit": limit, **_NOTHING}
        event = self._recorder.event(call, "retrieval", decision, payload, decides=True)
        result = {"allow": False, "effect": "deny", "deny": list(rows)}
        line = self._recorder.line(call, decision, PATH, document, result)
        self._recorder.keep([line], [event], read=True, tenant_id=call.caller.tenant_id)
        return decision

    def _found(self, question: Question, plan: Plan) -> Answer:
        if question.terms == ():
            return Answer.nothing(_UNSEARCHABLE["reason"], self._store.revision())
        limit, gather = min(question.limit, plan.limit), question.gather
        request = SearchRequest(
            tenant_ids=question.tenant_ids,
            plan=plan,
            terms=question.terms,
            now_us=question.call.at_us,
            take=limit + SPARE if plan.complete else 0,
            excluded_take=KEPT_OUT_LOGGED,
            labels=gather is None,
        )
        if not plan.complete:
            verdicts = self._verdicts(question)
            if gather is not None:
                return gather.answer(self._store, request, limit, verdicts)
            return exact_answer(self._store, request, limit, verdicts)
        page = self._store.search(request) if gather is None else gather.page(self._store, request)
        walls = frozenset(clause.rule_id for clause in plan.clauses if clause.role == "wall")
        return self._checked(question, page, limit, walls)

    def _checked(self, question: Question, page: SearchPage, limit: int, walls: frozenset[str]) -> Answer:
        """Ask the policy about each record that would be returned; what it refuses is dropped and told."""
        verdicts = self._verdicts(question)
        refused: dict[int, list[Any]] = {}
        duration = 0
        for start in range(0, len(page.matches), SCAN_BATCH):
            batch = page.matches[start : start + SCAN_BATCH]
            question.shown.update(
                (_name(match), self._attributes.candidate(match.attributes)) for match in batch
            )
            rows, took = verdicts(batch)
            refused |= {start + index: fired for index, fired in rows.items()}
            duration += took
        return Answer.of(page, refused, limit=limit, check_ns=duration, walls=walls)

    def _verdicts(self, question: Question) -> Callable[[Sequence[Match]], tuple[dict[int, list[Any]], int]]:
        def verdicts(matches: Sequence[Match]) -> tuple[dict[int, list[Any]], int]:
            shown, candidate = question.shown, self._attributes.candidate
            candidates = [shown.get(_name(match)) or candidate(match.attributes) for match in matches]
            ruling = self._point.read({**question.document, "candidates": candidates})
            admitted = (
                frozenset(ruling.document["admitted"]) if ruling.document["allow"] is True else frozenset()
            )
            refused: dict[int, list[Any]] = {
                index: [] for index in range(len(matches)) if index not in admitted
            }
            for row in ruling.document["excluded"]:
                refused.setdefault(row["index"], []).append(row)
            return refused, ruling.duration_ns

        return verdicts

    def _keep(
        self,
        question: Question,
        ruling: Ruling,
        answer: Answer,
        result: RetrievalResult,
        decision: Decision,
    ) -> None:
        call, document = question.call, result.document
        recorder = self._recorder
        retrieval = {
            "operation": call.operation,
            "purpose": question.document["query"]["purpose"],
            "selected": document["selected_records"][:SELECTED_LOGGED],
            "selection_reason": document["selection_reason"],
            "excluded_records": document["excluded_records"],
            "exclusions": document["exclusions"],
            "considered": answer.considered,
            "limit": question.limit,
            "underfilled": answer.underfilled,
        }
        events = [recorder.event(call, "retrieval", decision, retrieval, decides=True)]
        for match, rows in answer.mismatches:
            payload = {
                "record_id": self._mismatch_id(question, match),
                "reasons": sorted(row["reason"] for row in rows) or ["not_admitted"],
                "rule_ids": sorted(row["rule_id"] for row in rows) or ["GATE"],
            }
            events.append(recorder.event(call, "plan_mismatch", decision, payload, decides=False))
        # Inside a turn of the runtime the turn tells what entered its context, once; a look is handed on to
        # nobody.
        if question.purpose not in _UNBUILT_PURPOSES and turns.tells_contexts():
            layers = self._layers(result.hits, decision, document)
            events.append(recorder.event(call, "context_layers_built", decision, layers, decides=False))
        row, scored = self._attributes.row, question.terms is not None
        considered = Considered(
            returned=[
                [*row(match.attributes, question.shown.get(_name(match))), match.total if scored else None]
                for match in answer.selected
            ],
            kept_out=[
                [*row(match.attributes), match.total if scored else None, reason]
                for match, reason in answer.kept_out
            ],
            total=answer.considered,
            exclusions=answer.exclusions,
            store_revision=answer.store_revision,
            by_reader=question.gather is not None and not scored,
        )
        outcome: dict[str, Any] = {
            "allow": True,
            "effect": "allow",
            "deny": [],
            "policy": ruling.document.get("policy"),
        }
        line = recorder.line(call, decision, PATH, question.document, outcome, considered)
        recorder.keep([line], events, read=True, tenant_id=call.caller.tenant_id)

    def _mismatch_id(self, question: Question, match: Match) -> str:
        """Return a record's id for the alarm; one of another tenant is not named in this tenant's log."""
        words = self._attributes.words
        foreign = question.tenant_ids is not None and match.tenant_id not in question.tenant_ids
        return words.digest(match.memory_id) if foreign else words.safe(match.memory_id)

    def _layers(self, hits: Sequence[Hit], decision: Decision, document: Mapping[str, Any]) -> dict[str, Any]:
        text = render_memories([hit.record for hit in hits], decision_id=decision.decision_id)
        return {
            "static_items": 0,
            "session_items": 0,
            "retrieved_items": len(hits),
            "tool_items": 0,
            "record_ids": {"retrieved": [row["record_id"] for row in document["selected_records"]]},
            "context_digest": self._attributes.words.digest(text),
        }


def _name(match: Match) -> tuple[str, str]:
    """Return what names a record in a whole store: ids are unique within a tenant only."""
    return match.tenant_id, match.memory_id
