"""Why a record entered an answer or did not, where the line of the read does not name it.

The record is looked at as it was when the read was decided, and put to policies again. What it was then comes
from the store and its log of writes, so the log of reads alone cannot tell it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.clock import Clock
from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.enforcement.hindsight import Hindsight
from agent_runtime_ref.errors import DocumentUnreadableError, EngineFailureError
from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.policy.embedded import EmbeddedEngine
from agent_runtime_ref.replay.past import History, StorePast
from agent_runtime_ref.replay.question import NotReplayableError, ReadQuestion, question_of
from agent_runtime_ref.replay.rule_names import RuleNames
from agent_runtime_ref.runtime import GovernedMemory
from agent_runtime_ref.telemetry.reader import LoggedDecision

__all__ = ["Evaluated", "Judge"]

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What would become of a record in a read, asked again.

    `outcome` is one of: absent (no such record in the tenant then), erased (it may have been there and is
    gone, so nobody can say), refused (the whole read), kept_out (by the rules named), outranked (let in, and
    others stood before it), admitted (let in; whether the text found it nobody can say), returned, unknown.
    """

    outcome: str
    status: str | None = None  # of the record, then
    reasons: tuple[str, ...] = ()
    rule_ids: tuple[str, ...] = ()
    rank: int | None = None  # among all that the policies let in, from 1

    def to_document(self) -> dict[str, Any]:
        """Return it as the command prints it."""
        document: dict[str, Any] = {"outcome": self.outcome, "status": self.status}
        document |= {"reasons": list(self.reasons), "rule_ids": list(self.rule_ids)}
        return document if self.rank is None else document | {"rank": self.rank}


class Judge:
    """Looks at the records of a store once, and says of any read what became of one of them."""

    def __init__(self, memory: GovernedMemory, bundle: Bundle, *, operator: Caller, clock: Clock) -> None:
        """Look; it is decided and logged as an inspection by `operator`.

        Raises:
            PolicyDeniedError: the policies in force do not let `operator` inspect.
            DocumentUnreadableError: a line of the log of writes is damaged; it says which.
        """
        history = History(memory.log_lines(), by_tenant=memory.is_chained_by_tenant)
        self._past = StorePast(memory.survey(caller=operator).records, history)
        self._history = history
        self._engine = EmbeddedEngine(bundle)
        self._hindsight = Hindsight(self._engine, clock)
        self._names = RuleNames(bundle)
        self.digest = bundle.digest

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()

    def of(self, decision: LoggedDecision, record_id: str) -> Evaluated:
        """Return what became of a record in the read that was decided."""
        try:
            question = question_of(decision)
        except (NotReplayableError, DocumentUnreadableError):
            return Evaluated("unknown")
        if not isinstance(question, ReadQuestion):
            return Evaluated("unknown")
        document = question.document
        tenant_id, now_ns = document["query"]["tenant_id"], document["now_ns"]
        if tenant_id is None:
            return Evaluated("unknown")  # a look across tenants: an id is a tenant's own
        revision = question.revision
        if revision is None:
            revision = self._history.revision_at(now_ns, tenant_id)
        records = self._past.records_at(tenant_id, revision, now_ns)
        place = next((one for one, record in enumerate(records) if record["record_id"] == record_id), None)
        if place is None:
            erased = record_id in self._past.erased_at(tenant_id, revision)
            return Evaluated("erased" if erased else "absent")
        try:
            return self._judged(question, records, place)
        except EngineFailureError:
            return Evaluated("unknown", records[place]["status"])

    def _judged(self, question: ReadQuestion, records: Sequence[Row], place: int) -> Evaluated:
        document, record = question.document, records[place]
        status = record["status"]
        alone = self._hindsight.read(document, [record], ranked=False)
        if alone.denied:
            return self._because("refused", status, alone.denied)
        if 0 not in alone.returned:
            return self._because("kept_out", status, alone.why_not(0, record))
        if document["query"]["has_text"] or not question.ranked:
            return Evaluated("admitted", status)
        let_in = sorted(self._hindsight.read(document, records, ranked=False).returned)
        returned = self._hindsight.read(document, records, ranked=True).returned
        outcome = "returned" if place in returned else "outranked"
        return Evaluated(outcome, status, rank=let_in.index(place) + 1)

    def _because(self, outcome: str, status: str, rows: Sequence[Row]) -> Evaluated:
        reasons = tuple(sorted({row["reason"] for row in rows}))
        return Evaluated(outcome, status, reasons, self._names.of("read", rows))
