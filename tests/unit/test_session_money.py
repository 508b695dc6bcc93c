"""Amounts as people and shops write them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from agent_runtime_ref.session_state.money import Money, amounts_in, converted, money_of

WRITTEN = {
    "$300": ("300", "USD"),
    "300 USD": ("300", "USD"),
    "usd300": ("300", "USD"),
    "under 300 dollars": ("300", "USD"),
    "300元": ("300", "CNY"),
    "300块钱": ("300", "CNY"),
    "预算300元以内": ("300", "CNY"),
    "¥300": ("300", "CNY"),
    "￥300": ("300", "CNY"),
    "300円": ("300", "JPY"),
    "3百": ("300", None),
    "3百元": ("300", "CNY"),
    "3千5": ("3500", None),
    "1万2": ("12000", None),
    "三百": ("300", None),
    "三百五": ("350", None),
    "一百零五元": ("105", "CNY"),
    "一千二百元": ("1200", "CNY"),
    "两万元": ("20000", "CNY"),
    "十五块": ("15", "CNY"),
    "2k": ("2000", None),
    "1.5k USD": ("1500", "USD"),
    "€1,299.00": ("1299", "EUR"),
    "1.299,00 €": ("1299", "EUR"),
    "1.299 €": ("1299", "EUR"),
    "1 299 €": ("1299", "EUR"),
    "12,5 €": ("12.5", "EUR"),
    "HK$20": ("20", "HKD"),
    "US$20.50": ("20.5", "USD"),
    "£3": ("3", "GBP"),
    "1'000 CHF": ("1000", "CHF"),
    "CHF 1’299.50": ("1299.5", "CHF"),
    "$1_000": ("1000", "USD"),
    "₹1,00,000": ("100000", "INR"),
    "12,34,567 rupees": ("1234567", "INR"),
    "$1.5 million": ("1500000", "USD"),
    "2 thousand dollars": ("2000", "USD"),
    "€1.5bn": ("1500000000", "EUR"),
    "1亿元": ("100000000", "CNY"),
    "贰佰五十元": ("250", "CNY"),
    "廿五元": ("25", "CNY"),
    "3块5": ("3.5", "CNY"),
    "12元5角": ("12.5", "CNY"),
    "三块五毛": ("3.5", "CNY"),
    "300": ("300", None),
    "0": ("0", None),
}


@pytest.mark.parametrize(("text", "amount"), WRITTEN.items())
def test_an_amount_is_read(text: str, amount: tuple[str, str | None]) -> None:
    """Signs, words and units, before and behind, in digits and in characters."""
    value, currency = amount
    assert amounts_in(text) == [Money(Decimal(value), currency)]


@pytest.mark.parametrize(
    "text", ["$300.00.00", "1e3 USD", "$1,00,0", "$1__000", "2百5十元", "两亿三千元", "$1'00", "1.2.3 €"]
)
def test_of_a_number_that_cannot_be_read_no_part_is_the_price(text: str) -> None:
    """What is dearer than it looks would be within a budget by its last digits."""
    assert amounts_in(text) == []


@pytest.mark.parametrize("text", ["size 42 shoes", "12oz bottle", "NaN", "-5", "", "三只松鼠坚果"])
def test_what_is_no_amount_is_none(text: str) -> None:
    """A number in a text is an amount only beside a currency."""
    assert amounts_in(text) == []


def test_a_range_is_two_amounts() -> None:
    """Both ends are read, in their order."""
    assert [str(one.value) for one in amounts_in("$10-$20")] == ["10", "20"]


@pytest.mark.parametrize(
    ("text", "currency"),
    [
        ("$50-100", "USD"),
        ("50-100 USD", "USD"),
        ("50 ~ 100元", "CNY"),
        ("from 50 to 100 dollars", "USD"),
        ("50到100元", "CNY"),
        ("50-100", None),
    ],
)
def test_a_currency_of_one_end_is_that_of_both(text: str, currency: str | None) -> None:
    """A dress for "$50-100" is not within 60."""
    assert amounts_in(text) == [Money(Decimal(50), currency), Money(Decimal(100), currency)]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, True, None, [], "1e9", 10**16])
def test_what_is_no_price_is_none(value: Any) -> None:
    """Nothing that is not a finite number from zero can pass for a cheap price."""
    assert money_of(value, "USD") == []


@pytest.mark.parametrize(
    ("value", "currency", "expected"),
    [
        (42, "usd", "USD"),
        ("42", "€", "EUR"),
        ("¥42", "JPY", "JPY"),
        ("$42", "HKD", "HKD"),
        ("$42", "EUR", "USD"),
        (42, "Galleons", "GALLEONS"),
        (42, None, None),
    ],
)
def test_the_currency_of_a_price(value: Any, currency: str | None, expected: str | None) -> None:
    """A sign that several currencies share is what the item says; a name that nobody knows stays one."""
    assert money_of(value, currency) == [Money(Decimal(42), expected)]


def test_currencies_are_compared_by_a_rate_only() -> None:
    """Without a rate, or with one that is no rate, there is no answer."""
    euros = Money(Decimal(10), "EUR")

    assert converted(euros, "EUR", None) == 10
    assert converted(euros, "USD", None) is None
    assert converted(euros, "USD", lambda one, other: Decimal("1.1")) == Decimal("11.0")
    for rate in (None, Decimal(0), Decimal(-1), Decimal("NaN")):
        assert converted(euros, "USD", lambda one, other, rate=rate: rate) is None
