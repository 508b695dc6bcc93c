"""Amounts of money as people and shops write them, and whether one can be compared with another.

`$300`, `300 USD`, `300元`, `300块`, `3百`, `三百五`, `¥1,299.00`, `1.299,00 €`, `1.5k`. An amount without a
currency keeps none: what it is compared with decides, and the verdict says so. Two currencies are never
compared without a rate.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

__all__ = ["Money", "Rates", "amounts_in", "converted", "money_of", "number_of"]

# From a currency into another, the factor; None where nobody knows it.
Rates = Callable[[str, str], Decimal | None]

_NAMES = {
    "USD": "us$ usd dollar dollars bucks 美元 美金 美刀 $",
    "CNY": "cn¥ cny rmb yuan renminbi 人民币 人民幣 元 块钱 块 塊 圆 ¥",
    "EUR": "eur euro euros 欧元 歐元 €",
    "GBP": "gbp quid 英镑 英鎊 £",
    "JPY": "jp¥ jpy yen 日元 日圆 日圓 円",
    "HKD": "hk$ hkd 港币 港幣 港元",
    "TWD": "nt$ twd 台币 台幣 新台币",
    "SGD": "s$ sgd 新币",
    "AUD": "a$ au$ aud 澳元",
    "CAD": "c$ ca$ cad 加元",
    "KRW": "krw won 韩元 ₩",
    "INR": "inr rs rupees ₹",
    "CHF": "chf 瑞郎",
}
_CURRENCY = {name: code for code, names in _NAMES.items() for name in names.split()}
# A bare sign is the first of these unless the item itself names another of them.
_SHARED_SIGNS = {"USD": frozenset({"AUD", "CAD", "HKD", "SGD", "TWD"}), "CNY": frozenset({"JPY"})}
_DIGITS = {
    "〇": 0,
    "零": 0,
    "一": 1,
    "二": 2,
    "两": 2,
    "兩": 2,
    "三": 3,
    "四": 4,
    "五": 5,
    "六": 6,
    "七": 7,
    "八": 8,
    "九": 9,
}
_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "萬": 10_000}
_TIMES = {"k": 1000, "m": 1_000_000, "w": 10_000, "亿": 10**8, "億": 10**8, **_UNITS}
_SCALES = {
    "hundred": 100,
    "thousand": 1000,
    "grand": 1000,
    "lakh": 10**5,
    "million": 10**6,
    "mio": 10**6,
    "mn": 10**6,
    "crore": 10**7,
    "billion": 10**9,
    "mrd": 10**9,
    "bn": 10**9,
}
# Characters for numbers as they stand on receipts, and those for two of them.
_PLAIN_CHARACTERS = str.maketrans(
    dict(zip("壹贰貳叁參肆伍陆陸柒捌玖拾佰仟", "一二二三三四五六六七八九十百千", strict=True))
    | {"廿": "二十", "卅": "三十", "￥": "¥", "\N{RIGHT SINGLE QUOTATION MARK}": "'"}
)
_GROUPED = re.compile(r"(?<=\d)['_](?=\d{3}(?!\d))")  # 1'000
_INDIAN = re.compile(r"(?<![\d.,])\d{1,2}(?:,\d{2})+,\d{3}(?![\d,])")  # 1,00,000
_RANGE = re.compile(r"\s*(?:-|–|—|~|to|and|到|至)\s*")
_WORDS = "|".join(re.escape(name) for name in sorted(_CURRENCY, key=lambda name: (-len(name), name)))
_NUMBER = (
    r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+,\d{1,2}"
    r"|\d{1,3}(?: \d{3})+(?:[.,]\d{1,2})?|\d+(?:[.,]\d+)?"
)
_AMOUNT = re.compile(
    rf"(?P<before>(?<![a-z])(?:{_WORDS}))?\s?"
    # Of a number that goes on in a way that nobody knows, no part is the price.
    rf"(?:(?P<number>(?<![\d.,'_])(?<!\de)(?:{_NUMBER})(?![.,'_]*\d))"
    rf"\s?(?P<times>[十百千万萬亿億]|(?:[kwm]|{'|'.join(_SCALES)})(?![a-z]))?(?P<rest>\d(?!\d))?"
    rf"|(?P<words>(?<![\d亿億{''.join((*_DIGITS, *_UNITS))}])[{''.join((*_DIGITS, *_UNITS))}]+(?![亿億])))"
    rf"\s?(?P<after>(?:{_WORDS})(?![a-z]))?(?:(?<=[块塊元])(?P<tenths>[\d{''.join(_DIGITS)}])(?=[毛角]|$))?"
)
# What says before or behind an amount that it is the least of what is asked.
_LEAST_BEFORE = re.compile(
    r"(?:(?<![a-z])(?:from|start(?:s|ing)?(?: at)?|at least|min(?:imum|\.)?|over|above|more than|upwards? of)"
    r"|起价|起價|最低|至少|低至|>=?|≥)[\s:：]*$"
)
_LEAST_AFTER = re.compile(
    r"\s*(?:\+|(?:(?:and|&) (?:up|above|over|more)|or (?:more|above)|upwards?)(?![a-z])|起|以上)"
)
_VALUE_MAX = Decimal(10) ** 15
_TEXT_CHARACTERS_MAX = 200


@dataclass(frozen=True, slots=True)
class Money:
    """An amount in whole units of a currency, none where nobody said which."""

    value: Decimal
    currency: str | None  # ISO 4217
    is_least: bool = False  # "from $45": it may be more


def amounts_in(text: str) -> list[Money]:
    """Return the amounts that a text names, in their order; a bare number is one if it is the whole text."""
    plain = _plain(text[:_TEXT_CHARACTERS_MAX])
    matches = list(_AMOUNT.finditer(plain))
    currencies = [_CURRENCY.get(match["after"] or match["before"] or "") for match in matches]
    ranges = {at for at in range(1, len(matches)) if _is_range(plain, matches[at - 1], matches[at])}
    for at in ranges:  # what is said of one end is said of both: $50-100
        currencies[at] = currencies[at] or currencies[at - 1]
        currencies[at - 1] = currencies[at - 1] or currencies[at]
    is_bare = len(matches) == 1 and matches[0][0].strip() == plain
    is_bare = is_bare or (len(matches) == 2 and bool(ranges) and _spans(matches) == plain)
    values = [(_value(match), currency) for match, currency in zip(matches, currencies, strict=True)]
    least = [at not in ranges and _is_least(plain, match) for at, match in enumerate(matches)]
    return [
        Money(value, currency, is_least=is_least and (at + 1) not in ranges)
        for at, ((value, currency), is_least) in enumerate(zip(values, least, strict=True))
        if value is not None and (currency is not None or is_bare)
    ]


def _is_least(text: str, match: re.Match[str]) -> bool:
    before, after = text[: match.start()], text[match.end() :]
    return _LEAST_BEFORE.search(before) is not None or _LEAST_AFTER.match(after) is not None


def _plain(text: str) -> str:
    """Return a text with numbers as `_AMOUNT` knows them."""
    plain = unicodedata.normalize("NFKC", text).casefold().translate(_PLAIN_CHARACTERS).strip()
    return _INDIAN.sub(lambda match: match[0].replace(",", ""), _GROUPED.sub("", plain))


def _is_range(text: str, one: re.Match[str], other: re.Match[str]) -> bool:
    # A blank before or behind a match is part of it.
    between = text[one.end() : other.start()] + (other[0][: len(other[0]) - len(other[0].lstrip())])
    return _RANGE.fullmatch(between) is not None


def _spans(matches: list[re.Match[str]]) -> str:
    return matches[0].string[matches[0].start() : matches[-1].end()].strip()


def money_of(value: Any, currency: Any = None) -> list[Money]:
    """Return what an item says of its price: a number or a text, and perhaps a currency; empty if nothing.

    A text may hold a range, which is two amounts. What is no finite number from 0 is no price.
    """
    code = _code(currency)
    if isinstance(value, str):
        return [replace(one, currency=_own(one.currency, code)) for one in amounts_in(value)]
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return []
    try:
        number = Decimal(str(value))
    except InvalidOperation:  # pragma: no cover - a number's own text is one
        return []
    return [Money(number, code)] if number.is_finite() and 0 <= number < _VALUE_MAX else []


def converted(money: Money, currency: str | None, rates: Rates | None) -> Decimal | None:
    """Return `money` in another currency, None where no rate is known; no currency is the other's own."""
    if money.currency is None or currency is None or money.currency == currency:
        return money.value
    rate = None if rates is None else rates(money.currency, currency)
    # A rate that is none must not make an item free.
    return money.value * rate if rate is not None and rate.is_finite() and rate > 0 else None


def _own(found: str | None, code: str | None) -> str | None:
    """Return the currency of an amount whose item names one too."""
    return code if found is None or code in _SHARED_SIGNS.get(found, ()) else found


def _code(currency: Any) -> str | None:
    """Return the ISO code of what an item calls its currency; an unknown word is a code of its own."""
    if not isinstance(currency, str) or not currency.strip():
        return None
    word = unicodedata.normalize("NFKC", currency).strip().casefold()
    return _CURRENCY.get(word, word.upper()[:16])


def _value(match: re.Match[str]) -> Decimal | None:
    if match["words"] is not None:
        spelled = _spelled(match["words"])
        return None if spelled is None else spelled + _tenths(match)
    number = number_of(match["number"])
    times = (_TIMES | _SCALES).get(match["times"] or "", 1)
    if match["rest"] is not None:
        if match["times"] not in _UNITS:
            return None
        number += Decimal(match["rest"]) / 10  # 3千5 is 3500
    value = number * times + _tenths(match)
    return value if value < _VALUE_MAX else None


def _tenths(match: re.Match[str]) -> Decimal:
    """Return what stands behind the unit: 3块5 is 3.5."""
    tenths = match["tenths"] or "0"
    return Decimal(_DIGITS.get(tenths, tenths)) / 10


def number_of(number: str) -> Decimal:
    """Return the value of digits with either way of dividing them."""
    number = number.replace(" ", "")
    if "," in number and "." in number:
        decimal = max(number.rfind(","), number.rfind("."))
        return Decimal(number[:decimal].replace(",", "").replace(".", "") + "." + number[decimal + 1 :])
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+|\d{1,3}\.\d{3}", number):  # no price has three decimals
        return Decimal(number.replace(",", "").replace(".", ""))
    return Decimal(number.replace(",", "."))


def _spelled(words: str) -> Decimal | None:
    """Return the value of a Chinese number; a last digit counts one place less: 三百五 is 350."""
    total = section = digit = 0
    last = 1
    for kind, number in _read(words):
        if kind == "digit":
            digit = number
        elif number == 10_000:
            total, section, digit, last = (total + section + digit) * number, 0, 0, number
        else:
            section, digit, last = section + (digit or 1) * number, 0, number
    if all(one in _DIGITS for one in words):
        return Decimal("".join(str(_DIGITS[one]) for one in words))
    trailing = digit * last // 10 if digit and words[-2] in _UNITS and last > 10 else digit
    return Decimal(total + section + trailing)


def _read(words: str) -> Iterator[tuple[str, int]]:
    for one in words:
        yield ("digit", _DIGITS[one]) if one in _DIGITS else ("unit", _UNITS[one])
