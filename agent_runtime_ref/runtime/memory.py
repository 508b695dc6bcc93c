"""The facade: memory behind its two gates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.contracts import (
    Caller,
    Decision,
    ForgetReceipt,
    MemoryCandidate,
    RetrievalQuery,
    RetrievalResult,
    ReviewReceipt,
    WriteReceipt,
)
from agent_runtime_ref.contracts.arguments import (
    each_of,
    require,
    require_callable,
    require_flag,
    require_instant,
    require_parts,
    require_string,
    require_strings,
)
from agent_runtime_ref.enforcement.attributes import Inspection
from agent_runtime_ref.enforcement.write import Outcome
from agent_runtime_ref.errors import DocumentValueError
from agent_runtime_ref.runtime.opened import OpenedMemory

if TYPE_CHECKING:
    from agent_runtime_ref.contracts.stored import StoredMemory
    from agent_runtime_ref.enforcement.chosen import Choose
    from agent_runtime_ref.enforcement.compact import Compacted
    from agent_runtime_ref.enforcement.descent import Descent
    from agent_runtime_ref.enforcement.explain import Explanation
    from agent_runtime_ref.enforcement.removals import Meant
    from agent_runtime_ref.enforcement.revise import Removed, Revise, Revised
    from agent_runtime_ref.enforcement.runs import LateEnd, Run
    from agent_runtime_ref.enforcement.survey import Survey
    from agent_runtime_ref.recall.engine import Ranker
    from agent_runtime_ref.recall.hits import RecallResult


class GovernedMemory(OpenedMemory):
    """Memory behind its two gates. Thread-safe; use it as a context manager or call `close`."""

    def write(self, candidate: MemoryCandidate, *, caller: Caller) -> WriteReceipt:
        """Keep `candidate` if the policy admits it; see `WriteGate.write` for what it raises."""
        self._check(caller, candidate, MemoryCandidate, "candidate")
        return self._gates.writes.write(candidate, caller=caller)

    def write_many(self, candidates: Iterable[MemoryCandidate], *, caller: Caller) -> list[Outcome]:
        """Return a receipt or a `PolicyDeniedError` for each candidate, in order; one transaction a batch.

        Raises:
            WriteInterruptedError: engine or store failed on the way; it carries the outcomes so far.
        """
        self._check(caller)
        offered = each_of("candidates", candidates, MemoryCandidate)
        return self._gates.writes.write_many(offered, caller=caller)

    def read(
        self, query: RetrievalQuery, *, caller: Caller, text: str | None = None, operation: str = "search"
    ) -> RetrievalResult:
        """Return what the policy lets `caller` see of `query`; see `ReadGate.read` for what it raises."""
        self._check(caller, query, RetrievalQuery, "query")
        require_string("text", text, optional=True)
        require_string("operation", operation)
        return self._gates.reads.read(query, caller=caller, text=text, operation=operation)

    def choose(self, query: RetrievalQuery, choose: Choose, *, caller: Caller) -> RetrievalResult:
        """Return what `choose` takes of all that the policy admits of `query`, in its order.

        It is called with the admitted records and returns places among them. Raises what `read` raises, and
        StoreCapabilityError where there is more than anybody chooses from.
        """
        from agent_runtime_ref.enforcement.chosen import Chosen

        self._check(caller, query, RetrievalQuery, "query")
        require_callable("choose", choose)
        chosen = Chosen(choose)
        result, _, _ = self._gates.reads.gathered(query, caller=caller, text=None, gather=chosen)
        if chosen.failure is not None:
            raise chosen.failure
        return result

    def revise(
        self, memory_class: str, keys: Sequence[str], revise: Revise, *, caller: Caller, purpose: str
    ) -> list[Revised]:
        """Change what is known of the caller's own subject under `keys`; see `RevisionGate.revise`.

        `revise` is shown what the caller may read for `purpose`, and the look is a decision of its own.
        """
        self._check(caller)
        require_string("memory_class", memory_class)
        require_callable("revise", revise)
        require_string("purpose", purpose)
        named = require_strings("keys", keys)
        return self._gates.revisions.revise(memory_class, named, revise, caller=caller, purpose=purpose)

    def remove(self, what: Meant, *, caller: Caller) -> list[Removed]:
        """Remove single records about the caller's own subject; see `RevisionGate.remove`."""
        from agent_runtime_ref.enforcement.removals import Meant

        self._check(caller, what, Meant, "what")
        return self._gates.revisions.remove(what, caller=caller)

    def taken_back(self, keys: Sequence[str], *, since_us: int, caller: Caller) -> frozenset[str]:
        """Return those of `keys` whose records the caller's subject has had removed later than `since_us`.

        `since_us` is an instant in microseconds since 1970.
        """
        from agent_runtime_ref.enforcement.taken_back import taken_back

        self._check(caller)
        require_instant("since_us", since_us)
        return taken_back(self._gates, require_strings("keys", keys), since_us, caller)

    def recall(
        self,
        text: str,
        *,
        caller: Caller,
        purpose: str = "answer_generation",
        limit: int = 5,
        ranker: Ranker | None = None,
    ) -> RecallResult:
        """Return the caller's conversations that answer `text`, best first, as far as the policy shows them.

        Nothing is written but the decision; a hit carries its id. `ranker` takes the place of words and time.
        See `Recaller.recall` for what it raises.
        """
        self._check(caller)
        require_string("purpose", purpose)
        if ranker is not None:
            require_parts("ranker", ranker, "finds_by_meaning", "find")
        return self._gates.recalls.recall(text, caller=caller, purpose=purpose, limit=limit, ranker=ranker)

    def latest_profile(self, *, caller: Caller, purpose: str = "personalization") -> StoredMemory | None:
        """Return the caller's profile snapshot that was captured last, for the start of a conversation."""
        self._check(caller)
        require_string("purpose", purpose)
        return self._gates.recalls.latest_profile(caller=caller, purpose=purpose)

    def compact(self, *, caller: Caller, purpose: str = "answer_generation") -> Compacted:
        """Merge what repeats itself among the records that `caller` sees; see `CompactionGate.compact`."""
        self._check(caller)
        require_string("purpose", purpose)
        return self._gates.compactions.compact(caller=caller, purpose=purpose)

    def begin_run(self, message: str, *, caller: Caller, purpose: str, limit: int) -> Run:
        """Ask whether `caller` may have `message` answered for `purpose`; see `RunGate.begin`.

        The run that comes back says whether it was admitted, retrieves, and is told how it ends.
        """
        from agent_runtime_ref.enforcement.runs import RunRequest

        self._check(caller)
        require_string("message", message)
        require_string("purpose", purpose)
        return self._gates.runs.begin(RunRequest(caller, purpose, message, limit))

    def end_run(self, ended: LateEnd) -> bool:
        """Tell that a turn of a process that died was interrupted; see `RunGate.end_late`."""
        from agent_runtime_ref.enforcement.runs import LateEnd

        require("ended", ended, LateEnd)
        self._check(ended.caller)
        require_string("decision_id", ended.decision_id)
        return self._gates.runs.end_late(ended)

    def subject_mark(self, *, caller: Caller) -> str:
        """Return what stands for the caller's subject until it is forgotten; then another does.

        Work about somebody that waits is thrown away where the mark of its beginning is no longer the mark.
        """
        self._check(caller)
        pseudonyms = self._gates.surroundings.pseudonyms
        pseudonyms.refresh()
        pseudonyms.keep(caller.tenant_id, caller.own_subject)
        return pseudonyms.of(caller.tenant_id, caller.own_subject, caller.own_subject)

    def load_stored(self, records: Iterable[StoredMemory], *, caller: Caller) -> list[Outcome]:
        """Write a user's stored memories, each under its own id and instant, about the caller's subject.

        Returns a receipt or a `PolicyDeniedError` for each, in order: what the policy refuses is left out.

        Raises:
            RemoteMemoryValidationError: one of them is a retraction, which is no memory.
            RemoteMemoryScopeError: one of them belongs to another user than the caller's subject.
        """
        from agent_runtime_ref.contracts.stored import StoredMemory
        from agent_runtime_ref.seeds import load_stored

        self._check(caller)
        return load_stored(each_of("records", records, StoredMemory), self._gates.writes, caller=caller)

    def inspect(self, inspection: Inspection, *, caller: Caller) -> RetrievalResult:
        """Return records as an operator sees them, whatever their status."""
        self._check(caller, inspection, Inspection, "inspection")
        return self._gates.reads.inspect(inspection, caller=caller)[0]

    def explain(
        self, inspection: Inspection, query: RetrievalQuery, *, operator: Caller, caller: Caller
    ) -> list[Explanation]:
        """Say for each record that `operator` sees what `query` by `caller` would do with it, and why.

        Looking is an inspection of its own, decided and logged as one.
        """
        from agent_runtime_ref.enforcement.attributes import subjects_named
        from agent_runtime_ref.enforcement.explain import Explanation, explained
        from agent_runtime_ref.enforcement.read import PATH

        require("operator", operator, Caller)
        self._check(operator, inspection, Inspection, "inspection")
        self._check(caller, query, RetrievalQuery, "query")
        gates = self._gates
        result, attributes = gates.reads.inspect(inspection, caller=operator)
        now_us = gates.surroundings.clock.now_us()
        question = gates.attributes.read(query, caller, now_us=now_us, has_text=False, operation="search")
        shown = [gates.attributes.candidate(one) for one in attributes]
        subjects = subjects_named(operator, caller.subject, query.subject)
        call = gates.recorder.call(operator, "inspect", trace_id=None, session_id=None, subjects=subjects)
        with gates.recorder.failures(call, PATH, lambda: question, read=True):
            verdicts = explained(shown, question, point=gates.point, bundle=gates.bundle)
        return [Explanation(hit.record, *verdict) for hit, verdict in zip(result.hits, verdicts, strict=True)]

    def question(
        self, query: RetrievalQuery, *, caller: Caller, at_us: int, operation: str = "list"
    ) -> Mapping[str, Any]:
        """Return what the policies would have been asked for `query` at `at_us`, as the log would show it."""
        from agent_runtime_ref.enforcement.attributes import subjects_named

        self._check(caller, query, RetrievalQuery, "query")
        require_instant("at_us", at_us)
        require_string("operation", operation)
        attributes = self._gates.attributes
        document = attributes.read(query, caller, now_us=at_us, has_text=False, operation=operation)
        return attributes.masked(document, caller, subjects_named(caller, query.subject))

    def survey(self, *, caller: Caller) -> Survey:
        """Return the metadata of every record, for a replay; an inspection by an operator, logged as one."""
        from agent_runtime_ref.enforcement.survey import surveyed

        self._check(caller)
        return surveyed(self._gates, caller)

    def descent(self, record_id: str, *, caller: Caller) -> Descent:
        """Return a record and all that was derived from it, as an operator inspects them; see `descended`."""
        from agent_runtime_ref.enforcement.descent import descended

        self._check(caller)
        require_string("record_id", record_id)
        return descended(self._gates, record_id, caller)

    def look_into_log(self, *, caller: Caller, tenant_id: str | None) -> Decision:
        """Return the decision that lets `caller` see the log of a tenant; see `looked_into_log`."""
        from agent_runtime_ref.enforcement.log_look import looked_into_log

        self._check(caller)
        require_string("tenant_id", tenant_id, optional=True)
        return looked_into_log(self._gates, caller, tenant_id)

    def log_name(self, name: str) -> str:
        """Return what the log calls an id that is nobody's: as written, or its digest."""
        require_string("name", name)
        return self._gates.attributes.words.safe(name)

    def pseudonym(self, tenant_id: str, subject: str) -> str:
        """Return what the log calls a subject; what nothing in it is called, where it has no key."""
        require_string("tenant_id", tenant_id)
        require_string("subject", subject)
        pseudonyms = self._gates.attributes.pseudonyms
        pseudonyms.refresh()
        return pseudonyms.of(tenant_id, subject, subject)

    def release(self, record_id: str, *, caller: Caller, reason: str) -> ReviewReceipt:
        """Let a record out of quarantine; see `ReviewGate.review` for what it raises."""
        return self._reviewed("release", record_id, caller, reason)

    def reject(self, record_id: str, *, caller: Caller, reason: str) -> ReviewReceipt:
        """Remove a record from quarantine for good; see `ReviewGate.review` for what it raises."""
        return self._reviewed("reject", record_id, caller, reason)

    def quarantine(self, record_ids: Sequence[str], *, caller: Caller, reason: str) -> list[Decision]:
        """Put active records into quarantine, all or none; see `WithdrawalGate` for what it raises.

        Whoever does it cannot let them go again. Who wrote them can, with a role that reviews: of a record
        that was active the store keeps no writer; the log has it.
        """
        from agent_runtime_ref.enforcement.review_document import Request

        self._check(caller)
        named = require_strings("record_ids", record_ids)
        requests = [Request("quarantine", one, caller, reason) for one in dict.fromkeys(named)]
        return self._gates.reviews.quarantine(requests)

    def _reviewed(self, operation: str, record_id: str, caller: Caller, reason: str) -> ReviewReceipt:
        from agent_runtime_ref.enforcement.review_document import Request

        self._check(caller)
        return self._gates.reviews.review(Request(operation, record_id, caller, reason))

    def forget(self, *, subject: str, caller: Caller, dry_run: bool = False) -> ForgetReceipt:
        """Remove everything about `subject` in the caller's tenant, and return the receipt."""
        self._check(caller)
        require_string("subject", subject)
        require_flag("dry_run", dry_run)
        if not subject.strip():
            raise DocumentValueError("subject: must not be empty")
        return self._gates.forgets.forget(subject, caller=caller, dry_run=dry_run)

    def tell(
        self,
        event_type: str,
        payload: Mapping[str, Any],
        *,
        caller: Caller,
        keys: Sequence[str] = (),
        decision_id: str | None = None,
    ) -> None:
        """Write an event of the catalogue into the log: something happened that no gate tells of.

        `keys` are those of records about the caller's subject, and stand in the event as pseudonyms. Any
        other string that is no harmless identifier stands there as a digest.

        Raises:
            DocumentValueError: the catalogue has no such event or field, or the field is a fact of the event
                itself (its id, who did it, its place) or no value of JSON; or it tells of a decision.
            DecisionLogError: the log cannot be written.
        """
        from agent_runtime_ref.enforcement.telling import tell

        self._check(caller)
        require_string("event_type", event_type)
        require("payload", payload, Mapping)
        require_string("decision_id", decision_id, optional=True)
        named = require_strings("keys", keys)
        tell(self._gates, event_type, payload, caller=caller, keys=named, decision_id=decision_id)
