"""Trials: documents with a few attributes changed, put to the policies in as few questions as possible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product
from typing import Any

from agent_runtime_ref.review.evaluation import Evaluation, Outcome
from agent_runtime_ref.review.model import Change
from agent_runtime_ref.review.situations import Situation
from agent_runtime_ref.review.variants import MISSING, QUESTION_PARTS, Variant

__all__ = ["Offer", "Trial", "Trials", "plans", "plans_together"]

FIELDS_MAX = 6  # that are changed together
TRIALS_MAX = 1_500  # of one rule with the same number of changes
# Once a change alone has shown a rule at work, two at once add only what the plainest values do.
TOGETHER_FIELDS_MAX, TOGETHER_VALUES_MAX, TOGETHER_TRIALS_MAX = 4, 4, 200

Offer = tuple[Situation, Mapping[str, Sequence[Variant]]]
Plan = tuple[Situation, tuple[Variant, ...]]


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
    def parts(self) -> frozenset[int]:
        """What its changes are known by; variants of one search are values that are made once."""
        return frozenset(map(id, self.variants))

    @property
    def fields(self) -> tuple[str, ...]:
        """The attributes that it changes."""
        return tuple(change.attribute for change in self.changes)


class Trials:
    """The trials of one rule, in the order in which they were planned."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._peers: dict[tuple[int, tuple[str, ...]], list[Trial]] = {}
        self.all: list[Trial] = []

    def add(self, planned: Iterator[Plan]) -> None:
        """Try what is planned; those that share a question are asked about together."""
        grouped: dict[str, list[tuple[Situation, tuple[Variant, ...], int]]] = {}
        for order, (situation, variants) in enumerate(islice(planned, TRIALS_MAX), start=len(self.all)):
            # What lacks an attribute may be refused with everything beside it, so it is asked about alone.
            lacking = order if any(variant.change.removed for variant in variants) else None
            key = repr((situation.gate, _question(situation, variants), lacking))
            grouped.setdefault(key, []).append((situation, variants, order))
        tried: list[Trial] = []
        for group in grouped.values():
            first, variants, _ = group[0]
            candidates = [_candidate(one, changes) for one, changes, _ in group]
            outcomes = self._evaluation.many(first.gate, _question(first, variants), candidates)
            tried += [Trial(one, made, out, at) for (one, made, at), out in zip(group, outcomes, strict=True)]
        for trial in sorted(tried, key=lambda one: one.order):
            self.all.append(trial)
            if trial.outcome.is_clear_allow:
                self._peers.setdefault((id(trial.situation), trial.fields), []).append(trial)

    def show(self, rule_id: str) -> bool:
        """Tell whether a rule took part in any of them."""
        return any(rule_id in trial.outcome.rule_ids for trial in self.all)

    def peers(self, trial: Trial) -> Sequence[Trial]:
        """Return the trials of the same situation and attributes that are let in."""
        return self._peers.get((id(trial.situation), trial.fields), ())

    def unchanged(self, trial: Trial) -> Sequence[Trial]:
        """Return the trial in which nothing is changed of the situation, if it is let in and not this one."""
        return self._peers.get((id(trial.situation), ()), ()) if trial.fields else ()

    def alone(self, trial: Trial) -> Trial:
        """Return the trial with what the engine says when it is asked about nothing else."""
        question, candidate = (
            _question(trial.situation, trial.variants),
            _candidate(trial.situation, trial.variants),
        )
        outcome = self._evaluation.one(trial.situation.gate, question, candidate)
        return Trial(trial.situation, trial.variants, outcome, trial.order)


def plans(offers: Sequence[Offer], size: int) -> Iterator[Plan]:
    """Yield every choice of `size` changes, field by field, each in every situation before the next."""
    names = list(dict.fromkeys(name for _, offered in offers for name in offered))
    for chosen in combinations(names if size < 2 else names[:FIELDS_MAX], size):
        for situation, offered in offers:
            for variants in product(*(offered.get(name, ()) for name in chosen)):
                yield situation, variants


def plans_together(offers: Sequence[Offer]) -> Iterator[Plan]:
    """Yield the choices of two changes that are worth it where one alone was enough."""
    firsts = {situation.name: (situation, offered) for situation, offered in reversed(offers)}
    few: list[Offer] = [
        (
            situation,
            {name: offered[name][:TOGETHER_VALUES_MAX] for name in list(offered)[:TOGETHER_FIELDS_MAX]},
        )
        for situation, offered in reversed(firsts.values())
    ]
    return islice(plans(few, 2), TOGETHER_TRIALS_MAX)


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
