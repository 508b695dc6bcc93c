"""Put recorded decisions to other policies, one at a time, and count what would come out otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent_runtime_ref.enforcement.hindsight import Hindsight, ReadOutcome, all_or_none
from agent_runtime_ref.errors import EngineFailureError
from agent_runtime_ref.replay.changes import Change, Changes
from agent_runtime_ref.replay.question import (
    DAMAGES,
    NotReplayableError,
    ReadQuestion,
    WriteQuestion,
    damaged,
    question_of,
)
from agent_runtime_ref.replay.rule_names import RuleNames
from agent_runtime_ref.telemetry.reader import LoggedDecision

__all__ = ["Coverage", "Past", "Replay", "Tally"]

Row = Mapping[str, Any]
_KIND_BY_EFFECT = {"allow": "newly_admitted", "deny": "newly_refused", "quarantine": "newly_quarantined"}


class Past(Protocol):
    """What a store can say about records as they were when a decision was made."""

    @property
    def erased(self) -> int:
        """How many records are gone that a read it was asked about could have been about."""
        ...

    def at(self, question: ReadQuestion) -> Rebuilt | None:
        """Return every record that the read could have been about; None where nobody can tell any more."""
        ...


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A read with all records that there were, in rank order."""

    question: ReadQuestion
    has_erased: bool  # some were there and are gone, so that nothing can be said of them


@dataclass(slots=True)
class Coverage:
    """Of how many records the answer speaks."""

    reads: int = 0
    considered: int = 0
    considered_logged: int = 0
    reads_rebuilt: int = 0  # from a store, with every record
    reads_unknown: int = 0  # refused before and answered now: of their records nothing is known
    erased_records: int = 0  # that some rebuilt read could have been about, and that are gone
    reads_with_erased: int = 0
    not_replayed: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Tally:
    """What came out, in numbers."""

    decisions: int = 0
    unchanged: int = 0
    reassigned: int = 0  # writes kept as before, with another trust or retention
    coverage: Coverage = field(default_factory=Coverage)


class Replay:
    """Takes decisions and keeps what the new policies would have changed."""

    def __init__(
        self, hindsight: Hindsight, names: RuleNames, changes: Changes, *, past: Past | None = None
    ) -> None:
        self.tally = Tally()
        self.changes = changes
        self._hindsight = hindsight
        self._names = names
        self._past = past

    @property
    def mismatches(self) -> int:
        """Whether plan and verdicts of the policies disagreed, as a number."""
        return self._hindsight.mismatches

    def run(self, decisions: Iterable[LoggedDecision], *, progress: Callable[[int], None]) -> None:
        """Replay all `decisions`; `progress` is told after each how many there were so far.

        Raises:
            DocumentUnreadableError: an entry of the log is damaged; it says which.
        """
        for decision in decisions:
            self.take(decision)
            progress(self.tally.decisions)
        progress(self.tally.decisions)
        if self._past is not None:
            self.tally.coverage.erased_records = self._past.erased

    def take(self, decision: LoggedDecision) -> None:
        """Replay one decision.

        Raises:
            DocumentUnreadableError: its entry is damaged.
        """
        tally = self.tally
        tally.decisions += 1
        before = len(self.changes)
        try:
            question = question_of(decision)
            if isinstance(question, ReadQuestion):
                self._read(decision, question)
            else:
                self._write(decision, question)
        except NotReplayableError as reason:
            tally.coverage.not_replayed[str(reason)] += 1
            return
        except EngineFailureError as failure:
            tally.coverage.not_replayed[failure.reason] += 1
            return
        except DAMAGES as error:
            raise damaged(decision, type(error).__name__) from error
        if len(self.changes) == before:
            tally.unchanged += 1

    def _read(self, decision: LoggedDecision, question: ReadQuestion) -> None:
        coverage = self.tally.coverage
        coverage.reads += 1
        if question.of_gate:
            return
        rebuilt = None if self._past is None else self._past.at(question)
        considered, logged = question.considered, len(question.records)
        if rebuilt is not None:
            question, logged = rebuilt.question, considered
            coverage.reads_rebuilt += 1
            coverage.reads_with_erased += rebuilt.has_erased
        outcome = self._hindsight.read(question.document, question.records, ranked=question.ranked)
        coverage.considered += considered
        coverage.considered_logged += logged
        if question.denied and not outcome.denied and not question.records and rebuilt is None:
            coverage.reads_unknown += 1
            self._whole_read(decision, question, "newly_exposed", "denied", "allowed", question.denied)
        elif outcome.denied and not question.denied and not question.returned:
            self._whole_read(decision, question, "newly_hidden", "allowed", "denied", outcome.denied)
        else:
            self._records(decision, question, outcome)

    def _records(self, decision: LoggedDecision, question: ReadQuestion, outcome: ReadOutcome) -> None:
        """Keep each record that is returned now and was not, or the other way round."""
        if outcome.returned == question.returned:
            return
        for index in sorted(outcome.returned - question.returned):
            why = question.denied or question.kept_out.get(index, ())
            was = "denied" if question.denied else "kept_out" if why else _unknown(question)
            self._record(decision, question, index, "newly_exposed", was, "returned", why)
        for index in sorted(question.returned - outcome.returned):
            why = outcome.why_not(index, question.records[index])
            now = "denied" if outcome.denied else "kept_out" if why else "outranked"
            self._record(decision, question, index, "newly_hidden", "returned", now, why)

    def _record(
        self,
        decision: LoggedDecision,
        question: ReadQuestion,
        index: int,
        kind: str,
        was: str,
        now: str,
        why: Sequence[Row],
    ) -> None:
        record = question.records[index]
        self._keep(decision, kind, record["record_id"], record["tenant_id"], was, now, why)

    def _whole_read(
        self,
        decision: LoggedDecision,
        question: ReadQuestion,
        kind: str,
        was: str,
        now: str,
        why: Sequence[Row],
    ) -> None:
        self._keep(decision, kind, None, question.document["caller"]["tenant_id"], was, now, why)

    def _write(self, decision: LoggedDecision, question: WriteQuestion) -> None:
        document = question.document
        candidates, outcomes = document["candidates"], self._hindsight.write(document)
        if question.together:
            candidates, outcomes = candidates[:1], [all_or_none(outcomes)]
        for candidate, was, now in zip(candidates, question.outcomes, outcomes, strict=True):
            if was.effect == now.effect:
                # A removal is given nothing, and its line says nothing of it.
                self.tally.reassigned += was.assigned is not None and was.assigned != now.assigned
                continue
            why = was.rows if now.effect == "allow" else now.rows
            kind = _KIND_BY_EFFECT[now.effect]
            self._keep(decision, kind, None, candidate["tenant_id"], was.effect, now.effect, why)

    def _keep(
        self,
        decision: LoggedDecision,
        kind: str,
        record_id: str | None,
        tenant_id: str | None,
        was: str,
        now: str,
        why: Sequence[Row],
    ) -> None:
        reasons = tuple(sorted({_text(row["reason"]) for row in why}))
        rule_ids = tuple(map(_text, self._names.of(decision.gate, why)))
        principal = _text(decision.input["caller"]["principal_id"])
        record_id = None if record_id is None else _text(record_id)
        tenant_id = None if tenant_id is None else _text(tenant_id)
        decision_id = _text(decision.decision_id)
        self.changes.add(
            Change(kind, decision_id, record_id, tenant_id, principal, was, now, rule_ids, reasons)
        )


def _text(value: object) -> str:
    """Return a name out of a log, which can be kept and printed.

    Raises:
        TypeError, ValueError: it is no Unicode text.
    """
    if not isinstance(value, str):
        raise TypeError
    value.encode()
    return value


def _unknown(question: ReadQuestion) -> str:
    """Return what a record was that the log does not say was kept out: of a rebuilt read, nobody knows."""
    return "not_returned" if question.rebuilt else "outranked"
