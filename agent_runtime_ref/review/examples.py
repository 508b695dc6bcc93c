"""Examples of what a rule lets in and keeps out, found by asking the policies about variants of seeds.

Nothing here knows what a rule says. One attribute after the other is changed, then two and three at once, and
what the engine answers decides which of the trials show the rule at work: a trial that it keeps out although
nothing simpler is, and beside it the nearest one that is let in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product
from typing import Any

from agent_runtime_ref.review.evaluation import Evaluation, Outcome
from agent_runtime_ref.review.model import Change, Example
from agent_runtime_ref.review.references import Look
from agent_runtime_ref.review.sentences import outcome_of, result_of, sentence_of
from agent_runtime_ref.review.situations import Situation, Writer
from agent_runtime_ref.review.variants import MISSING, QUESTION_PARTS, Variant, variants_of

__all__ = ["Found", "Search"]

SHOWN_MAX = 3  # examples on either side
FIELDS_MAX = 6  # that are changed together
TRIALS_MAX = 1_500  # of one rule with the same number of changes
CHANGES_MAX = 3


@dataclass(frozen=True, slots=True)
class Trial:
    """A document that was tried and what came of it."""

    situation: Situation
    variants: tuple[Variant, ...]
    outcome: Outcome
    order: int

    @property
    def changes(self) -> tuple[Change, ...]:
        """What it changes of the situation."""
        return tuple(variant.change for variant in self.variants)

    @property
    def fields(self) -> tuple[str, ...]:
        """The attributes that it changes."""
        return tuple(change.attribute for change in self.changes)


@dataclass(frozen=True, slots=True)
class Found:
    """The examples of one rule."""

    admits: tuple[Example, ...]
    keeps_out: tuple[Example, ...]


class Search:
    """Finds examples in one bundle."""

    def __init__(self, evaluation: Evaluation, settings: Mapping[str, Any], writer: Writer) -> None:
        self._evaluation = evaluation
        self._settings = settings
        self._writer = writer
        self._variants: dict[tuple[str, str, str, str], list[Variant]] = {}

    def examples(
        self, rule_id: str, look: Look, used: Mapping[str, Any], situations: Sequence[Situation]
    ) -> Found:
        """Return examples of a rule; none where no trial showed it at work."""
        offers = [
            (
                one,
                {
                    field: variants_of(field, one, look, used, self._settings, self._writer)
                    for field in look.fields
                },
            )
            for one in situations
        ]
        trials = self._tried(_plans(offers, 0), [])
        for size in range(1, CHANGES_MAX + 1):
            fired = any(rule_id in trial.outcome.rule_ids for trial in trials)
            if size > 1 and fired and (size > 2 or len(look.fields) < 2):
                break
            trials = self._tried(_plans(offers, size), trials)
        out = self._confirmed(_shown_out(rule_id, trials), rule_id, fires=True)
        inside = self._confirmed(_shown_in(out, trials), rule_id, fires=False)
        return Found(
            tuple(_example(rule_id, trial) for trial in inside[:SHOWN_MAX]),
            tuple(_example(rule_id, trial) for trial in out[:SHOWN_MAX]),
        )

    def _tried(
        self, plans: Iterator[tuple[Situation, tuple[Variant, ...]]], before: list[Trial]
    ) -> list[Trial]:
        """Return `before` and the trials of `plans`; those that share a question are asked about together."""
        grouped: dict[str, list[tuple[Situation, tuple[Variant, ...], int]]] = {}
        for order, (situation, variants) in enumerate(islice(plans, TRIALS_MAX), start=len(before)):
            key = repr((situation.gate, _question(situation, variants)))
            grouped.setdefault(key, []).append((situation, variants, order))
        found = list(before)
        for group in grouped.values():
            first, variants, _ = group[0]
            candidates = [_candidate(one, changes) for one, changes, _ in group]
            outcomes = self._evaluation.many(first.gate, _question(first, variants), candidates)
            found += [Trial(one, made, out, at) for (one, made, at), out in zip(group, outcomes, strict=True)]
        return sorted(found, key=lambda trial: trial.order)

    def _confirmed(self, trials: Sequence[Trial], rule_id: str, *, fires: bool) -> list[Trial]:
        """Return the trials of which the engine says the same when it is asked about each alone."""
        kept = []
        for trial in trials:
            outcome = self._evaluation.one(
                trial.situation.gate,
                _question(trial.situation, trial.variants),
                _candidate(trial.situation, trial.variants),
            )
            if (rule_id in outcome.rule_ids) if fires else outcome.is_clear_allow:
                kept.append(Trial(trial.situation, trial.variants, outcome, trial.order))
            if len(kept) == SHOWN_MAX:
                break
        return kept


def _plans(
    offers: Sequence[tuple[Situation, Mapping[str, Sequence[Variant]]]], size: int
) -> Iterator[tuple[Situation, tuple[Variant, ...]]]:
    """Yield every choice of `size` changes, field by field, each in every situation before the next."""
    names = list(dict.fromkeys(name for _, offered in offers for name in offered))
    for chosen in combinations(names if size < 2 else names[:FIELDS_MAX], size):
        for situation, offered in offers:
            for variants in product(*(offered.get(name, ()) for name in chosen)):
                yield situation, variants


def _question(situation: Situation, variants: Sequence[Variant]) -> dict[str, Any]:
    question = dict(situation.question)
    for variant in variants:
        if variant.part == "operation":
            question.update(variant.patch)
        elif variant.part in QUESTION_PARTS:
            question[variant.part] = _patched(question.get(variant.part, {}), variant.patch)
    return question


def _candidate(situation: Situation, variants: Sequence[Variant]) -> dict[str, Any]:
    candidate = dict(situation.candidate)
    for variant in variants:
        if variant.part == "candidate":
            candidate = _patched(candidate, variant.patch)
        elif variant.part in candidate:
            candidate[variant.part] = _patched(candidate[variant.part], variant.patch)
    return candidate


def _patched(value: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in {**value, **patch}.items() if one is not MISSING}


def _shown_out(rule_id: str, trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials that the rule keeps out, the most telling first, one a set of attributes at first."""
    firing = [trial for trial in trials if rule_id in trial.outcome.rule_ids]
    minimal = [trial for trial in firing if not any(_is_simpler(one, trial) for one in firing)]
    alone = min((len(trial.outcome.rule_ids) for trial in minimal), default=0)
    clearest = [trial for trial in minimal if len(trial.outcome.rule_ids) == alone]
    ordered = sorted(clearest, key=lambda trial: _rank(trial, trials))
    firsts: dict[tuple[str, ...], Trial] = {}
    for trial in ordered:
        firsts.setdefault(trial.fields, trial)
    first = list(firsts.values())
    rest = [trial for trial in ordered if trial not in first and not any(c.removed for c in trial.changes)]
    return [*first, *_different(rest, first)]


def _different(trials: Sequence[Trial], shown: Sequence[Trial]) -> list[Trial]:
    """Return the trials that do not say of another record what is shown of one."""
    said = {repr([(c.attribute, c.now) for c in trial.changes]) for trial in shown}
    found = []
    for trial in trials:
        key = repr([(c.attribute, c.now) for c in trial.changes])
        if key not in said:
            said.add(key)
            found.append(trial)
    return found


def _is_simpler(one: Trial, other: Trial) -> bool:
    """Tell whether `one` does a part of what `other` does, in the same situation."""
    return (
        len(one.variants) < len(other.variants)
        and one.situation is other.situation
        and all(any(part is whole for whole in other.variants) for part in one.variants)
    )


def _rank(trial: Trial, trials: Sequence[Trial]) -> tuple[Any, ...]:
    """Order trials: nothing taken away, this rule alone, few changes, close to what is let in."""
    gap = _gap(trial, _nearest(trial, trials))
    removed = any(change.removed for change in trial.changes)
    return removed, len(trial.outcome.rule_ids), len(trial.variants), gap is None, gap or 0, trial.order


def _nearest(trial: Trial, trials: Sequence[Trial]) -> Trial | None:
    """Return the nearest trial that is let in, of the same situation and attributes."""
    peers = [
        one
        for one in trials
        if one.outcome.is_clear_allow and one.situation is trial.situation and one.fields == trial.fields
    ]
    return min(
        peers, key=lambda one: (_gap(trial, one) is None, _gap(trial, one) or 0, one.order), default=None
    )


def _gap(one: Trial, other: Trial | None) -> int | None:
    """Return how far apart the numbers of two trials are; None where there are none to compare."""
    if other is None or not one.changes:
        return None
    total = 0
    for mine, theirs in zip(one.changes, other.changes, strict=True):
        if type(mine.now) is int and type(theirs.now) is int:
            total += abs(mine.now - theirs.now)
        elif mine.now != theirs.now:
            return None
    return total


def _shown_in(out: Sequence[Trial], trials: Sequence[Trial]) -> list[Trial]:
    """Return trials that are let in: the neighbours of what is shown kept out, then the seeds as they are."""
    names = {trial.situation.name for trial in out}
    inside = [one for one in trials if one.outcome.is_clear_allow and one.situation.name in names]
    found: list[Trial] = []
    for trial in out:
        plain = [one for one in inside if one.situation is trial.situation and not one.variants]
        near = _nearest(trial, trials)
        found += [one for one in ([near] if near else plain) if one not in found]
    unchanged = [one for one in inside if not one.variants and one not in found]
    fields = {field for trial in out for field in trial.fields}
    touching = [one for one in inside if fields.intersection(one.fields) and one not in found]
    touching = _different(sorted(touching, key=lambda one: (len(one.variants), one.order)), found)
    return [*found, *touching[:1], *unchanged, *touching[1:]]


def _example(rule_id: str, trial: Trial) -> Example:
    rows = [row for row in trial.outcome.rows if row[1] == rule_id] or list(trial.outcome.rows)
    outcome = outcome_of(trial.outcome, rule_id)
    return Example(
        base=trial.situation.base,
        situation=trial.situation.name,
        changes=trial.changes,
        outcome=outcome,
        reasons=tuple(dict.fromkeys(reason for _, _, reason in rows)),
        rule_ids=trial.outcome.rule_ids,
        sentence=sentence_of(trial.situation, trial.changes),
        result=result_of(trial.situation.name, outcome, trial.outcome, rule_id),
    )
