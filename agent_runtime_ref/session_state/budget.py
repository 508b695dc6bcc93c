"""Whether a price is within a budget, and what may be said where that cannot be told.

Unknown is not within: an item without a price, or in a currency that nobody knows the rate of, is beyond a
budget, with a reason of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from agent_runtime_ref.contracts.finding import Amount, Finding
from agent_runtime_ref.errors import DocumentValueError
from agent_runtime_ref.session_state.money import Money, Rates, converted, money_of

__all__ = ["Bound", "Found", "beyond", "bound_of"]


@dataclass(frozen=True, slots=True)
class Bound:
    """One bound of a budget."""

    money: Money
    is_least: bool
    is_hard: bool


@dataclass(frozen=True, slots=True)
class Found:
    """What came of holding a price to a bound."""

    is_beyond: bool
    reasons: tuple[str, ...] = ()


def bound_of(given: Finding | Amount | Money | str | float) -> Bound:
    """Return the bound of a finding, or of what a model passed as a budget: that is a greatest, and hard.

    Raises:
        DocumentValueError: it is no amount.
    """
    if isinstance(given, Finding):
        assert given.amount is not None
        return Bound(_money(given.amount), given.amount.bound == "min", given.strength == "hard")
    if isinstance(given, Amount):
        return Bound(_money(given), given.bound == "min", is_hard=True)
    amounts = [given] if isinstance(given, Money) else money_of(given)
    if not amounts:
        raise DocumentValueError("budget: must be an amount such as `$300`, `300元` or `300`", path="budget")
    return Bound(amounts[-1], is_least=False, is_hard=True)


def beyond(bound: Bound, price: tuple[Money, ...], rates: Rates | None) -> Found:
    """Return whether a price is beyond a bound; of a range, the end that is further out counts."""
    if not price:
        return Found(True, ("price_unknown",))
    side = "min" if bound.is_least else "max"
    values: list[Decimal] = []
    assumed = False
    for money in price:
        value = converted(money, bound.money.currency, rates)
        if value is None:
            return Found(True, ("rate_unknown",))
        # Compared all the same, since both most likely mean the shop's own, but not in silence.
        assumed = assumed or (money.currency is None) != (bound.money.currency is None)
        values.append(value)
    if not bound.is_least and max(values) <= bound.money.value and any(one.is_least for one in price):
        return Found(True, (*(["currency_assumed"] if assumed else []), "price_unknown"))  # it may be more
    is_beyond = min(values) < bound.money.value if bound.is_least else max(values) > bound.money.value
    said = ["currency_assumed"] if assumed else []
    return Found(is_beyond, (*said, *([f"budget:{side}"] if is_beyond else [])))


def _money(amount: Amount) -> Money:
    return Money(Decimal(amount.value), amount.currency)
