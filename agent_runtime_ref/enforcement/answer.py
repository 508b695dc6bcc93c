"""What a search found, after the second check: pure functions from pages to an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.contracts import Decision, Hit, Plan, ScoreBreakdown
from agent_runtime_ref.enforcement.recorder import Call
from agent_runtime_ref.enforcement.ruling import Ruling
from agent_runtime_ref.recall.score import age_us, breakdown
from agent_runtime_ref.stores.base import Match, SearchPage, SearchRequest, Store
from agent_runtime_ref.telemetry.words import Words

# Records put to the policy at once; even with the longest names they stay within an engine's bound on bytes.
SCAN_BATCH = 200
_REASON_ORDER = (
    "profile_match",
    "tenant_match",
    "class_match",
    "trust_filter_passed",
    "age_filter_passed",
    "provenance_present",
    "subject_match",
    "text_match",
)
Refused = Mapping[int, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Answer:
    """The records to return and the account of those that are not."""

    selected: tuple[Match, ...]
    kept_out: tuple[tuple[Match, str], ...]
    exclusions: dict[str, int]
    considered: int
    store_revision: int
    underfilled: bool
    mismatches: tuple[tuple[Match, tuple[Mapping[str, Any], ...]], ...]
    check_ns: int
    empty_reason: str | None = None  # why nothing was looked for

    @classmethod
    def nothing(cls, reason: str, store_revision: int) -> Answer:
        """Return the answer to a search for which nothing was looked at, and why."""
        return cls((), (), {}, 0, store_revision, False, (), 0, reason)

    def duration(self, ruling: Ruling) -> int:
        """Return the nanoseconds that both engine calls took."""
        return ruling.duration_ns + self.check_ns

    @classmethod
    def of(
        cls,
        page: SearchPage,
        refused: Refused,
        *,
        limit: int,
        check_ns: int,
        walls: frozenset[str],
    ) -> Answer:
        """Return the answer from a page of a complete plan and the second check of its matches.

        What a wall keeps out is dropped and told to the operator, and counted nowhere: `walls` are the ids of
        the rules that are walls.
        """
        matches = page.matches
        kept = tuple(match for index, match in enumerate(matches) if index not in refused)
        mismatches = tuple((matches[index], tuple(rows)) for index, rows in sorted(refused.items()))
        exclusions = Counter(page.exclusions)
        behind_walls = 0
        for _, rows in mismatches:
            if any(row["rule_id"] in walls for row in rows):
                behind_walls += 1
            else:
                exclusions[first_reason(rows)] += 1
        admitted = page.considered - sum(page.exclusions.values())
        selected = kept[:limit]
        return cls(
            selected=selected,
            kept_out=tuple(page.kept_out),
            exclusions=dict(sorted(exclusions.items())),
            considered=max(page.considered - behind_walls, 0),
            store_revision=page.revision,
            underfilled=bool(mismatches) and len(selected) < min(limit, admitted - len(mismatches)),
            mismatches=mismatches,
            check_ns=check_ns,
        )


def exact_answer(
    store: Store,
    request: SearchRequest,
    limit: int,
    verdicts: Callable[[Sequence[Match]], tuple[dict[int, list[Any]], int]],
) -> Answer:
    """Return the answer for a plan that does not say everything: each match is put to the policy.

    Matches come in rank order and in batches, so memory is bounded by a batch; every one of them is
    asked about, because the counts are exact. Counts and matches are of one snapshot.
    """
    selected: list[Match] = []
    check_ns = 0
    with store.examine(request, SCAN_BATCH) as (page, batches):
        exclusions = Counter(page.exclusions)
        kept_out = list(page.kept_out)
        for batch in batches:
            refused, duration = verdicts(batch)
            check_ns += duration
            for index, match in enumerate(batch):
                if index in refused:
                    reason = first_reason(refused[index])
                    exclusions[reason] += 1
                    if len(kept_out) < request.excluded_take:
                        kept_out.append((match, reason))
                elif len(selected) < limit:
                    selected.append(match)
    return Answer(
        selected=tuple(selected),
        kept_out=tuple(kept_out),
        exclusions=dict(sorted(exclusions.items())),
        considered=page.considered,
        store_revision=page.revision,
        underfilled=False,
        mismatches=(),
        check_ns=check_ns,
    )


def first_reason(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the reason of the lowest rule id: the one a record is counted under."""
    if not rows:
        return "not_admitted"
    return str(min(rows, key=lambda row: row["rule_id"])["reason"])


def hits_of(answer: Answer, terms: tuple[str, ...] | None, now_us: int) -> tuple[Hit, ...]:
    """Return the selected records as ranked hits, each with the score that put it there."""
    hits = []
    for rank, match in enumerate(answer.selected, start=1):
        record = match.record()
        score = None if terms is None else _score(match, terms, now_us)
        hits.append(Hit(record=record, rank=rank, score_breakdown=score, provenance=record.provenance))
    return tuple(hits)


def _score(match: Match, terms: tuple[str, ...], now_us: int) -> ScoreBreakdown:
    return breakdown(match.matched_terms, len(terms), age_us(now_us=now_us, created_us=match.created_us))


def result_document(
    call: Call,
    decision: Decision,
    answer: Answer,
    hits: Sequence[Hit],
    words: Words,
    plan: Plan,
    *,
    has_text: bool,
) -> dict[str, Any]:
    """Return the retrieval_result document; its words are those of the events, so both can be compared."""
    document: dict[str, Any] = {
        "kind": "retrieval_result",
        "trace_id": call.trace_id,
        "session_id": call.session_id or call.trace_id,
        "selected_records": [
            {
                "record_id": words.safe(hit.record.memory_id),
                "memory_class": words.safe(hit.record.memory_class),
                "trust_level": hit.record.trust_level,
                "provenance": words.safe(hit.provenance),
            }
            for hit in hits
        ],
        "selection_reason": (
            selection_reasons(plan, answer.selected, has_text=has_text)
            if answer.empty_reason is None
            else [answer.empty_reason]
        ),
        "excluded_records": sum(answer.exclusions.values()),
        "decision_id": decision.decision_id,
        "policy_digest": decision.policy_digest,
        "exclusions": answer.exclusions,
    }
    if answer.underfilled:
        document["underfilled"] = True
    return document


def selection_reasons(plan: Plan, selected: Sequence[Match], *, has_text: bool) -> list[str]:
    """Return the filters that applied to every selected record, in the documented order."""
    if not selected:
        return []
    attributes = [match.attributes for match in selected]
    passed = {
        reason
        for reason in {clause.passed for clause in plan.clauses if clause.passed}
        if all(_applies(plan, reason, row["memory_class"]) for row in attributes)
    }
    if not any(row["subject"] is not None for row in attributes):
        passed.discard("subject_match")
    if any(row["memory_class"] == "profile" for row in attributes):
        passed.add("profile_match")
    if has_text:
        passed.add("text_match")
    return [reason for reason in _REASON_ORDER if reason in passed]


def _applies(plan: Plan, reason: str, memory_class: str) -> bool:
    """Tell whether a filter of this name looked at records of this class; one clause of several is enough."""
    return any(
        clause.classes is None or memory_class in clause.classes
        for clause in plan.clauses
        if clause.passed == reason
    )
