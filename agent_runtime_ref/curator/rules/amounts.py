"""Budgets: which numbers of a clause are money, in which currency, and on which side they bind."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from agent_runtime_ref.contracts.finding import Amount, Bound
from agent_runtime_ref.curator.rules.marker import document
from agent_runtime_ref.session_state.money import number_of

__all__ = ["Budget", "budgets", "numbers"]

_NUMBER = (
    r"(?:\d{1,3}(?:\.\d{3})+(?:,\d{1,2})?(?!\d)|\d{1,3}(?: \d{3})+(?:[.,]\d{1,2})?(?!\d)"
    r"|(?:\d{1,3}(?:,\d{3})+|\d{1,9})(?:\.\d{1,2})?)"
)
_SIDES = ("min", "max", "over", "under", "about")  # of two at one place the first counts
_DENIED: dict[str, Bound] = {"over": "max", "under": "min"}
_EACH = re.compile(r"\s?(?:/|per |an? )\s?(?:night|month|day|week|person|head|year|piece)")
_NEAR = 2
_SPELT_MIN = 20  # "one of these" and "two of them" are no money
_LETTERS = re.compile(r"[a-z]+")
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
    denied: re.Pattern[str]
    speaks_of_money: re.Pattern[str]
    counted: re.Pattern[str]


@cache
def _words() -> _Words:
    read = document("money")
    of_units = {unit: currency for currency, units in read["units"].items() for unit in units}
    lettered = [one for one in read["signs"] if one[0].isascii() and one[0].isalpha()]
    # "for$200" is no Brazilian price, and "hours 5" no Indian one.
    sign = rf"(?:(?<![a-z])(?:{_any(lettered)})|{_any(read['signs'].keys() - lettered)})"
    unit, number = f"(?:{_any(of_units)})(?![a-z])", _any(read["numbers"])
    spelt = rf"\b(?:an? )?(?:{number})(?:(?: and|-| a)? ?(?:{number}))*\b"
    money = (
        rf"(?P<sign>{sign})?\s?(?<![\d.])(?<!\de)(?P<number>{_NUMBER}|{_HAN_NUMBER}|{spelt})"
        rf"(?P<scale>k|thousand|grand|[千万百](?:\d(?![\d十百千]))?)?(?![a-z\d%°:])\s?(?P<unit>{unit})?"
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
        re.compile("|".join(f"(?P<{side}>{'|'.join(hints[side])})" for side in _SIDES)),
        re.compile("|".join(hints["denied"])),
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


def numbers(text: str) -> set[Decimal]:
    """Return every number of folded `text` that could be money, whatever it is said to be."""
    found = set()
    for match in _words().money.finditer(text):
        number, scale = match["number"] or match["number2"], match["scale"] or match["scale2"]
        value = _value(number, None)
        if number[0].isdigit() or value >= _SPELT_MIN:
            found |= {value, _value(number, scale)}
    return found


def _single(text: str, match: re.Match[str]) -> Budget | None:
    parts = match.groupdict()
    number = parts["number"] or parts["number2"]
    unit = parts["unit"] or parts["unit2"] or parts["sign"] or parts["sign2"]
    if _words().counted.match(text[match.end() :]):
        return None
    hint = _hint(text, match)
    if hint is None and not _is_all(text, match, unit):
        return None
    is_spelt = not number[0].isdigit()
    if unit is None and (_value(number, None) < _SPELT_MIN if is_spelt else False):
        return None
    if unit is None and hint is not None and not _near(text, match, hint):
        return None
    value = _value(number, parts["scale"] or parts["scale2"])
    amount = Amount(_text(value), _words().currencies.get(unit or ""), _side(text, hint))
    return Budget(amount, *match.span())


def _hint(text: str, match: re.Match[str]) -> re.Match[str] | None:
    """Return what makes the number a bound: the word nearest to it that says a side, else any other."""
    found = [
        one
        for one in _words().hint.finditer(text)
        if one.end() <= match.start() or one.start() >= match.end()
    ]
    return min(found, key=lambda one: (one.lastgroup == "about", _gap(match, one)), default=None)


def _gap(match: re.Match[str], hint: re.Match[str]) -> int:
    return match.start() - hint.end() if hint.end() <= match.start() else hint.start() - match.end()


def _side(text: str, hint: re.Match[str] | None) -> Bound:
    """Return on which side a hint binds; "over" and "under" turn round where they are denied."""
    side = "about" if hint is None or hint.lastgroup is None else hint.lastgroup
    if hint is not None and side in _DENIED and _words().denied.search(text, 0, hint.start()):
        return _DENIED[side]
    return "min" if side in ("min", "over") else "max"


def _is_all(text: str, match: re.Match[str], unit: str | None) -> bool:
    """Say whether the clause is nothing but money: "$1,000"."""
    rest = text[: match.start()] + text[match.end() :]
    return unit is not None and not any(character.isalnum() for character in rest)


def _near(text: str, match: re.Match[str], hint: re.Match[str]) -> bool:
    """Say whether a bare number stands right beside what makes it a bound, or the clause speaks of money."""
    if _words().speaks_of_money.search(text):
        return True
    each = _EACH.match(text, match.end())
    return _gap(match, hint) <= _NEAR + (0 if each is None else len(each.group()))


def _value(number: str, scale: str | None) -> Decimal:
    rest = 0
    if scale is not None and scale[-1].isdigit():
        scale, rest = scale[0], int(scale[1]) * _FACTORS[scale[0]] // 10  # 1万2 is 12,000
    factor = _FACTORS.get(scale or "", 1)
    if number[0].isascii() and number[0].isalpha():
        return Decimal(_spelt_value(number)) * factor
    if number[0].isdigit():
        return number_of(number) * factor + rest
    return Decimal(_han_value(number)) * factor


def _spelt_value(number: str) -> int:
    """Return the value of an English number: "two thousand five hundred" is 2500."""
    total = current = 0
    for word in _LETTERS.findall(number):
        value = _words().numbers.get(word, 0)
        if value >= 1000:
            total, current = (total + (current or 1) * value), 0
        elif value == 100:
            current = (current or 1) * value
        else:
            current += value
    return total + current


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
