"""Examples of what a rule lets in and keeps out, found by asking the policies about variants of seeds.

Nothing here knows what a rule says. One attribute after the other is changed, then two and three at once, and
what the engine answers decides which of the trials show the rule at work: a trial that it keeps out although
nothing simpler is, and beside it the nearest one that is let in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

from agent_runtime_ref.review.evaluation import Evaluation
from agent_runtime_ref.review.model import Example
from agent_runtime_ref.review.references import Look
from agent_runtime_ref.review.sentences import outcome_of, result_of, sentence_of
from agent_runtime_ref.review.situations import Situation, Writer
from agent_runtime_ref.review.trials import Trial, Trials, plans, plans_together
from agent_runtime_ref.review.variants import Variant, variants_of

__all__ = ["Found", "Search"]

SHOWN_MAX = 3  # examples on either side


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

    def examples(
        self, rule_id: str, look: Look, used: Mapping[str, Any], situations: Sequence[Situation]
    ) -> Found:
        """Return examples of a rule; none where no trial showed it at work."""
        offers = [(one, self._offered(one, look, used)) for one in situations]
        given = [(one, _chosen(offered, removed=False)) for one, offered in offers]
        trials = Trials(self._evaluation)
        for size in (0, 1):
            trials.add(plans(given, size))
        if not trials.show(rule_id):
            trials.add(plans([(one, _chosen(offered, removed=True)) for one, offered in offers], 1))
        if trials.show(rule_id):
            trials.add(plans_together(given))
        for size in (2, 3):
            if not trials.show(rule_id):
                trials.add(plans(given, size))
        out = _confirmed(trials, _shown_out(rule_id, trials), rule_id)
        inside = _confirmed(trials, _shown_in(out, trials), None)
        return Found(
            tuple(_example(rule_id, trial) for trial in inside),
            tuple(_example(rule_id, trial) for trial in out),
        )

    def _offered(self, situation: Situation, look: Look, used: Mapping[str, Any]) -> dict[str, Any]:
        return {
            field: variants_of(field, situation, look, used, self._settings, self._writer)
            for field in look.fields
        }


def _chosen(offered: Mapping[str, Sequence[Variant]], *, removed: bool) -> dict[str, list[Variant]]:
    """Return the variants that take an attribute away, or those that give it a value."""
    return {
        name: [one for one in variants if one.change.removed == removed] for name, variants in offered.items()
    }


def _confirmed(trials: Trials, offered: Iterable[Trial], rule_id: str | None) -> list[Trial]:
    """Return the first trials that a rule keeps out, or that all let in, when they are asked about alone."""

    def holds(trial: Trial) -> bool:
        return trial.outcome.is_clear_allow if rule_id is None else rule_id in trial.outcome.rule_ids

    return list(islice(filter(holds, map(trials.alone, offered)), SHOWN_MAX))


def _shown_out(rule_id: str, trials: Trials) -> list[Trial]:
    """Return the trials that the rule keeps out, the most telling first.

    One for each answer that it gives about a set of attributes comes before a second one of any.
    """
    firing = [trial for trial in trials.all if rule_id in trial.outcome.rule_ids]
    known = {(id(trial.situation), trial.parts) for trial in firing}
    minimal = [trial for trial in firing if not _has_simpler(trial, known)]
    alone = min((len(trial.outcome.rule_ids) for trial in minimal), default=0)
    clearest = [trial for trial in minimal if len(trial.outcome.rule_ids) == alone]
    ordered = sorted(clearest, key=lambda trial: _rank(trial, trials))
    firsts: dict[tuple[object, ...], Trial] = {}
    for trial in ordered:
        answers = frozenset(reason for _, one, reason in trial.outcome.rows if one == rule_id)
        firsts.setdefault((trial.fields, answers), trial)
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


def _has_simpler(trial: Trial, known: Set[tuple[int, frozenset[int]]]) -> bool:
    """Tell whether a part of what a trial does, in the same situation, is among those `known`."""
    parts = sorted(trial.parts)
    smaller = (frozenset(some) for size in range(len(parts)) for some in combinations(parts, size))
    return any((id(trial.situation), some) in known for some in smaller)


def _rank(trial: Trial, trials: Trials) -> tuple[Any, ...]:
    """Order trials: nothing taken away, this rule alone, few changes, close to what is let in."""
    gap = _gap(trial, _nearest(trial, trials))
    removed = any(change.removed for change in trial.changes)
    return removed, len(trial.outcome.rule_ids), len(trial.variants), gap is None, gap or 0, trial.order


def _nearest(trial: Trial, trials: Trials) -> Trial | None:
    """Return the nearest trial that is let in: of the same situation and attributes, or the seed as it is."""
    peers = [*trials.peers(trial), *trials.unchanged(trial)]
    gaps = [(_gap(trial, one), one) for one in peers]
    return min(gaps, key=lambda pair: (pair[0] is None, pair[0] or 0, pair[1].order), default=(None, None))[1]


def _gap(one: Trial, other: Trial | None) -> int | None:
    """Return how far apart the numbers of two trials are; None where there are none to compare."""
    if other is None or not one.changes:
        return None
    total = 0
    values = [change.now for change in other.changes] or [change.was for change in one.changes]
    for mine, theirs in zip(one.changes, values, strict=True):
        if type(mine.now) is int and type(theirs) is int:
            total += abs(mine.now - theirs)
        elif mine.now != theirs:
            return None
    return total


def _shown_in(out: Sequence[Trial], trials: Trials) -> list[Trial]:
    """Return trials that are let in: the neighbours of what is shown kept out, then the seeds as they are."""
    names = {trial.situation.name for trial in out}
    inside = [one for one in trials.all if one.outcome.is_clear_allow and one.situation.name in names]
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
