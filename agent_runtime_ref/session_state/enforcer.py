"""The second channel of P_t: code that keeps to the constraints, whatever a model passed on.

A prompt asks; this decides. The constraints come from the context of the turn, never from the arguments of
the call, which can only add to them. An item that hits a hard negative is dropped, and so is one whose price
is above a hard budget or cannot be told to be within it; soft ones cost points, wishes earn them. Every item
that is dropped comes back with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from agent_runtime_ref.contracts.arguments import require, require_callable
from agent_runtime_ref.contracts.finding import Amount
from agent_runtime_ref.contracts.key_part import part
from agent_runtime_ref.errors import DocumentTypeError
from agent_runtime_ref.session_state.budget import Bound, beyond, bound_of
from agent_runtime_ref.session_state.current import Standing, current
from agent_runtime_ref.session_state.items import ItemView, view_of
from agent_runtime_ref.session_state.kinds import speaks_of_kind
from agent_runtime_ref.session_state.money import Money, Rates
from agent_runtime_ref.session_state.state import GENERAL, SessionState
from agent_runtime_ref.session_state.values import is_decisive
from agent_runtime_ref.session_state.words import TEXT_CHARACTERS_MAX, reads_backwards, same_thing, speaks_of

__all__ = ["Enforced", "Enforcer", "Verdict"]

# What a hit adds to an item's score, which ranges from 0 to 1 in most pickers.
POINTS = {
    ("like", "hard"): 1.0,
    ("like", "soft"): 0.5,
    ("dislike", "soft"): -0.5,
}
_BUDGET_POINTS = -0.5  # above a soft budget


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was made of one item, and why."""

    item: Any
    score: float  # the picker's, with the points of the constraints
    reasons: tuple[str, ...]  # `dislike:material:plastic`, `budget:max`, `price_unknown`, ...


@dataclass(frozen=True, slots=True)
class Enforced:
    """The items that may be shown, best first, and those that may not, in the order given."""

    kept: tuple[Verdict, ...]
    dropped: tuple[Verdict, ...]

    @property
    def items(self) -> tuple[Any, ...]:
        """The items that may be shown, best first."""
        return tuple(verdict.item for verdict in self.kept)


@dataclass(frozen=True, slots=True)
class _Rule:
    """A constraint of whatever origin, as items are held to it."""

    polarity: str
    strength: str
    category: str
    domain: str
    slug: str
    stated: bool = True  # False: a model inferred it

    @property
    def thing(self) -> tuple[str, str]:
        return self.category, same_thing(self.slug)

    @property
    def is_wall(self) -> bool:
        return (self.polarity, self.strength) == ("dislike", "hard")

    @property
    def reason(self) -> str:
        return f"{self.polarity}:{self.category}:{self.slug}"


class Enforcer:
    """Holds lists of items to the constraints of the turn that runs here."""

    def __init__(
        self,
        *,
        view: Callable[[Any], ItemView] = view_of,
        score: Callable[[Any], float] = lambda item: 0.0,
        rates: Rates | None = None,
        domain: str | None = None,
    ) -> None:
        """Say how an item is read and scored, and what a currency is worth in another, if that is known.

        `domain` is that of everything that is picked from: constraints of other domains then do not count.
        It is the application's to say; an item that could name its own could choose what it is held to.

        Raises:
            DocumentTypeError: `view`, `score` or `rates` cannot be called.
        """
        require_callable("view", view)
        require_callable("score", score)
        self._view = view
        self._score = score
        self._rates = None if rates is None else _checked(rates)
        self._domain = part(domain or "") or None

    def apply(
        self,
        items: Iterable[Any],
        *,
        exclude: Iterable[str] | None = (),
        budget: Amount | Money | str | float | None = None,
    ) -> Enforced:
        """Return which of `items` may be shown, in which order, and why the others may not.

        `exclude` and `budget` are what the caller of the tool, a model, passed on: they are enforced besides
        what the turn holds, and take nothing from it. Items of equal score stay in their order.

        Raises:
            NoTurnError: no turn runs in this context.
            DocumentError: an item or an argument cannot be read, or `view`, `score` or `rates` returned
                something else than they promise.
        """
        constraints = current()
        said = _in_force(
            [rule for rule in _session_rules(constraints.state) if self._counts(rule)], self._domain
        )
        rules = said + [rule for rule in _standing_rules(constraints.standing, said) if self._counts(rule)]
        rules += [_Rule("dislike", "hard", "passed", GENERAL, word) for word in _words(exclude)]
        bounds = [*map(bound_of, constraints.state.budget)]
        if budget is not None:
            bounds.append(bound_of(budget))
        verdicts = [self._verdict(item, rules, bounds) for item in items]
        kept = [verdict for verdict, is_out in verdicts if not is_out]
        return Enforced(
            kept=tuple(sorted(kept, key=lambda verdict: -verdict.score)),
            dropped=tuple(verdict for verdict, is_out in verdicts if is_out),
        )

    def _scored(self, item: Any) -> float:
        score = self._score(item)
        require("score", score, int, float, Decimal, wanted="a function that returns a number")
        return float(score)

    def _counts(self, rule: _Rule) -> bool:
        return self._domain is None or rule.domain in (GENERAL, self._domain)

    def _verdict(self, item: Any, rules: Sequence[_Rule], bounds: Sequence[Bound]) -> tuple[Verdict, bool]:
        """Return the verdict on an item, and whether it is out."""
        view = self._view(item)
        require("view", view, ItemView, wanted="a function that returns an `ItemView`")
        reasons: list[str] = []
        score, is_out = self._scored(item), False
        for rule in rules:
            if not _hits(view, rule):
                continue
            reasons.append(rule.reason)
            is_out = is_out or rule.is_wall
            score += POINTS.get((rule.polarity, rule.strength), 0.0)
        if not _is_readable(view) and any(rule.is_wall for rule in rules):
            reasons.append("not_readable")
            is_out = True
        for bound in bounds:
            found = beyond(bound, view.price, self._rates)
            reasons += found.reasons
            if found.is_beyond:
                is_out = is_out or bound.is_hard
                score += _BUDGET_POINTS
        return Verdict(item, score, tuple(reasons)), is_out


def _checked(rates: Rates) -> Rates:
    """Return `rates` held to what it promises: a float is no exact factor, and a text none at all."""
    require_callable("rates", rates)

    def rate(source: str, target: str) -> Decimal | None:
        found = rates(source, target)
        if found is not None:
            require("rates", found, Decimal, wanted="a function that returns a `Decimal` or None")
        return found

    return rate


def _words(exclude: Iterable[str] | None) -> tuple[str, ...]:
    """Return the words that are not wanted; a model may pass one word where a list is due, or nothing.

    Raises:
        DocumentTypeError: it is something else. To leave it out would look as if it had been enforced.
    """
    given: object = exclude
    words: object = () if given is None else (given,) if isinstance(given, str) else given
    if not isinstance(words, Iterable):
        raise DocumentTypeError("exclude: must be a list of words", path="exclude")
    found = tuple(words)
    if not all(isinstance(word, str) for word in found):
        raise DocumentTypeError("exclude: must be a list of words", path="exclude")
    return found


def _session_rules(state: SessionState) -> list[_Rule]:
    return [_rule(finding, stated=finding.stated) for finding in state.findings if finding.amount is None]


def _standing_rules(standing: Iterable[Standing], said: Iterable[_Rule]) -> list[_Rule]:
    """Return the standing preferences of which the user said nothing else in this session.

    His later word to the contrary sets one aside for the session; a softer one of the same kind comes to it,
    and what was inferred of him does nothing to it.
    """
    stated = {(rule.thing, rule.domain, rule.polarity) for rule in said if rule.stated}
    rules = [_rule(one, stated=True) for one in standing]
    return [rule for rule in rules if not any(one in stated for one in _contrary(rule))]


def _contrary(rule: _Rule) -> Iterator[tuple[tuple[str, str], str, str]]:
    opposite = "dislike" if rule.polarity == "like" else "like"
    return ((rule.thing, domain, opposite) for domain in (GENERAL, rule.domain))


def _rule(one: Standing, *, stated: bool) -> _Rule:
    domain = part(one.domain) or GENERAL
    return _Rule(one.polarity, one.strength, one.category, domain, one.slug, stated)


def _in_force(rules: Sequence[_Rule], domain: str | None) -> list[_Rule]:
    """Return the rules of a session that count in `domain`: of two about one thing there, the later.

    Where nobody said which domain it is, what was said of one takes nothing from what was said of another.
    """
    counted: dict[tuple[tuple[str, str], str], _Rule] = {}
    for rule in rules:
        place = rule.thing, rule.domain if domain is None else domain
        earlier = counted.get(place)
        if rule.stated or earlier is None or not earlier.stated:
            counted[place] = rule
    return list(counted.values())


def _is_readable(view: ItemView) -> bool:
    """Tell whether all of an item was looked at; what is too long, too deep or turned round hides words."""
    return view.is_whole and not any(
        len(text) > TEXT_CHARACTERS_MAX or reads_backwards(text) for text in view.texts
    )


def _hits(view: ItemView, rule: _Rule) -> bool:
    own = view.says_of(rule.category)
    # What the description says besides is then about something else.
    texts = own if is_decisive(rule.category, own) else view.texts
    # Whoever will not have a kind will have none of it; who wants one has asked for the thing itself.
    says = speaks_of_kind if rule.polarity == "dislike" else speaks_of
    return any(says(text, rule.slug) for text in texts)
