"""How a turn's constraints enter a session: what stands is kept, what is new is added, the later word counts.

- preservation: what the turn says nothing about stays as it is;
- integration: what is new comes to it;
- resolution: a constraint about the same thing takes the place of the earlier one, whichever polarity or
  strength either has; a budget that is taken back leaves none.

No heuristic removes anything: not a new topic, not a full state, not a guess. What a model inferred never
takes the place of what the user said, and is never hard.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from agent_runtime_ref.contracts.finding import Amount, Finding
from agent_runtime_ref.session_state.state import (
    FINDINGS_MAX,
    GENERAL,
    SessionState,
    kind_of,
    require_session,
    thing_of,
)

__all__ = ["Merged", "merge", "merged", "still_before", "with_released"]


@dataclass(frozen=True, slots=True)
class Merged:
    """The state after a turn, which findings entered it and which did not."""

    state: SessionState
    entered: tuple[Finding, ...]
    refused: tuple[tuple[Finding, str], ...]  # with the reason: outranked or full


def merge(state: SessionState, findings: Iterable[Finding]) -> SessionState:
    """Return `state` with the findings of one turn, the last of them said last.

    Raises:
        DocumentValueError: a finding is a standing preference.
    """
    return merged(state, findings).state


def merged(state: SessionState, findings: Iterable[Finding]) -> Merged:
    """Return what `merge` returns, and what became of each finding."""
    turn = tuple(findings)
    require_session(turn)
    kept = list(state.findings)
    entered: list[Finding] = []
    refused: list[tuple[Finding, str]] = []
    for finding in map(_bounded, turn):
        finding = _in_currency(finding, kept)
        replaced = [one for one in kept if _replaces(finding, one, entered)]
        if finding.lifts_budget and not replaced:
            continue  # there is none to take back
        if not finding.stated and any(one.stated for one in replaced):
            refused.append((finding, "outranked"))
        elif len(kept) - len(replaced) >= FINDINGS_MAX:
            refused.append((finding, "full"))
        else:
            stays = [] if finding.lifts_budget else [finding]
            kept = [one for one in kept if one not in replaced] + stays
            entered = [one for one in entered if one not in replaced] + [finding]
    return Merged(replace(state, findings=tuple(kept)), tuple(entered), tuple(refused))


def with_released(state: SessionState, released: Iterable[tuple[int, Finding]]) -> SessionState:
    """Return the state as it were if these constraints had never waited for a review.

    Each has its place, the number of constraints of `state` that were said before it: what was said later
    stays the later word.
    """
    result, at = replace(state, findings=()), 0
    for before, finding in released:
        result = merge(merge(result, state.findings[at:before]), [finding])
        at = before
    return merge(result, state.findings[at:])


def still_before(earlier: SessionState, before: int, state: SessionState) -> int:
    """Return how many of the first `before` constraints of `earlier` still stand in the later `state`.

    The very same ones: what was said again was said later.
    """
    known = {id(finding) for finding in earlier.findings[:before]}
    return sum(id(finding) in known for finding in state.findings)


def _bounded(finding: Finding) -> Finding:
    """Return the finding, no harder than its origin allows."""
    return finding if finding.stated or finding.strength == "soft" else replace(finding, strength="soft")


def _in_currency(finding: Finding, kept: Sequence[Finding]) -> Finding:
    """Return a bound of the budget in the currency that the conversation is in, where it names none."""
    amount = finding.amount
    if amount is None or amount.currency is not None:
        return finding
    named = [one.amount.currency for one in kept if one.amount is not None and one.amount.currency]
    return replace(finding, amount=replace(amount, currency=named[-1])) if named else finding


def _replaces(new: Finding, old: Finding, entered: Sequence[Finding]) -> bool:
    """Tell whether two findings are about the same thing."""
    if thing_of(new) == thing_of(old):
        return True
    if new.lifts_budget:
        return old.amount is not None
    if new.amount is not None or old.amount is not None:
        return new.amount is not None and old.amount is not None and _contradict(new.amount, old.amount)
    if kind_of(new) == kind_of(old) == "category":
        # A conversation is about one thing, or about what one turn named together.
        return old not in entered
    # What is said of everything is said of every domain.
    return new.domain == GENERAL and (new.category, thing_of(new)[3]) == (old.category, thing_of(old)[3])


def _contradict(one: Amount, other: Amount) -> bool:
    """Tell whether no price could be within both bounds."""
    if one.currency != other.currency or one.bound == other.bound:
        return False
    least, most = (one, other) if one.bound == "min" else (other, one)
    return Decimal(least.value) > Decimal(most.value)
