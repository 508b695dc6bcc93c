"""Budgets: which numbers of a clause are money, in which currency, and on which side they bind."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from agent_runtime_ref.contracts.finding import Amount, Bound
from agent_runtime_ref.curator.rules.marker import document

__all__ = ["Budget", "budgets"]

_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d{1,9})(?:\.\d{1,2})?"
_HAN_NUMBER = r"[一二两三四五六七八九十百千万]+"
_HAN_DIGITS = {"一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9}
_HAN_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10000}
_FACTORS = {"k": 1000, "thousand": 1000, "grand": 1000, "千": 1000, "万": 10000, "百": 100}


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of money.toml, put into patterns."""

    currencies: dict[str, str]  # by sign and by unit
    numbers: dict[str, int]
    money: re.Pattern[str]
    ranged: re.Pattern[str]
    hint: re.Pattern[str]
    speaks_of_money: re.Pattern[str]
    counted: re.Pattern[str]


@cache
def _words() -> _Words:
    read = document("money")
    of_units = {unit: currency for currency, units in read["units"].items() for unit in units}
    sign, unit, number = _any(read["signs"]), f"(?:{_any(of_units)})(?![a-z])", _any(read["numbers"])
    money = (
        rf"(?P<sign>{sign})?\s?(?<![\d.])(?P<number>{_NUMBER}|{_HAN_NUMBER}|\b(?:{number})\b)"
        rf"(?P<scale>k|thousand|grand|千|万|百)?(?![a-z\d%°:])\s?(?P<unit>{unit})?"
        rf"|(?P<sign2>{sign})?\s?(?<![\d.])(?P<number2>{_NUMBER})(?P<scale2>k|grand)?\s?(?P<unit2>{unit})"
    )
    ranged = (
        rf"({sign})?\s?(?<![\d.])({_NUMBER})\s?(?:{unit})?\s?(?:-|–|~|and|to|到|至)\s?(?:{sign})?\s?({_NUMBER})"
        rf"(?![\d.])\s?({unit})?"
    )
    hints = read["hints"]
    return _Words(
        of_units | read["signs"],
        read["numbers"],
        re.compile(money),
        re.compile(ranged),
        re.compile(f"(?P<max>{'|'.join(hints['max'])})|(?P<min>{'|'.join(hints['min'])})"),
        re.compile("|".join(hints["money"])),
        re.compile(rf"\s?(?:{'|'.join(hints['counted'])})"),
    )


def _any(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


@dataclass(frozen=True, slots=True)
class Budget:
    """One bound, and where in the clause it stands."""

    amount: Amount
    start: int
    end: int


def budgets(text: str) -> list[Budget]:
    """Return the bounds that folded `text` sets: none, one, or the two ends of a range."""
    ranged = _words().ranged.search(text)
    if ranged is not None and not _words().counted.match(text[ranged.end() :]):
        currency = _words().currencies.get(ranged[1] or ranged[4] or "")
        if currency is not None or _words().speaks_of_money.search(text):
            low, high = sorted((_value(ranged[2], None), _value(ranged[3], None)))
            bounds: tuple[tuple[Decimal, Bound], ...] = ((low, "min"), (high, "max"))
            return [Budget(Amount(_text(value), currency, side), *ranged.span()) for value, side in bounds]
    for match in _words().money.finditer(text):
        found = _single(text, match)
        if found is not None:
            return [found]
    return []


def _single(text: str, match: re.Match[str]) -> Budget | None:
    parts = match.groupdict()
    number = parts["number"] or parts["number2"]
    unit = parts["unit"] or parts["unit2"] or parts["sign"] or parts["sign2"]
    if _words().counted.match(text[match.end() :]):
        return None
    hint = _words().hint.search(text) or _is_all(text, match, unit)
    is_han = number[0] in _HAN_DIGITS or number[0] in _HAN_SCALES
    if hint is None or (unit is None and is_han and _value(number, None) < 10):
        return None
    if unit is None and not _near(text, match, hint):
        return None
    value = _value(number, parts["scale"] or parts["scale2"])
    side: Bound = "min" if hint.groupdict().get("min") else "max"
    return Budget(Amount(_text(value), _words().currencies.get(unit or ""), side), *match.span())


def _is_all(text: str, match: re.Match[str], unit: str | None) -> re.Match[str] | None:
    """Return the match of the amount itself where the clause is nothing but money: "$1,000"."""
    rest = text[: match.start()] + text[match.end() :]
    return match if unit is not None and not any(character.isalnum() for character in rest) else None


def _near(text: str, match: re.Match[str], hint: re.Match[str]) -> bool:
    """Say whether a bare number stands right beside what makes it a bound, or the clause speaks of money."""
    if _words().speaks_of_money.search(text):
        return True
    gap = match.start() - hint.end() if hint.end() <= match.start() else hint.start() - match.end()
    return gap <= 2


def _value(number: str, scale: str | None) -> Decimal:
    factor = _FACTORS.get(scale or "", 1)
    if number in _words().numbers:
        return Decimal(_words().numbers[number]) * factor
    if number[0].isdigit():
        return Decimal(number.replace(",", "")) * factor
    return Decimal(_han_value(number)) * factor


def _han_value(number: str) -> int:
    """Return the value of a Chinese number; a digit behind a scale counts tenths of it: 一千二 is 1200."""
    total, digit, scale = 0, 0, 1
    for character in number:
        if character in _HAN_DIGITS:
            digit = _HAN_DIGITS[character]
        else:
            scale = _HAN_SCALES[character]
            total = (total + digit) * scale if scale == 10000 else total + (digit or 1) * scale
            digit = 0
    return total + digit * (scale // 10 if scale > 10 else 1)


def _text(value: Decimal) -> str:
    plain = f"{value:f}"
    return plain.rstrip("0").rstrip(".") if "." in plain else plain
