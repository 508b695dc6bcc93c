"""What the enforcer sees of an item: its words, its own claims about itself, and its price.

An item comes from a shop, a search or a model, so nothing of it is believed to be of a certain form. A
mapping is read as shops write them; whatever else an application has it turns into an `ItemView` itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from agent_runtime_ref.errors import DocumentTypeError
from agent_runtime_ref.session_state.money import Money, money_of

__all__ = ["ItemView", "view_of"]

# Fields whose text says nothing about what the item is.
_NO_WORDS = frozenset(
    "id item_id sku url link href image images image_url thumbnail price currency seller_id rank".split()
)
_AMOUNTS = ("amount", "value", "price")
# One name, written in either way.
_SPELLINGS = {"color": ("color", "colour"), "colour": ("color", "colour")}
# What holds no words; of anything else nobody knows what it holds.
_WITHOUT_WORDS = int | float | Decimal | None
_YES = frozenset({"yes", "true", "y", "是", "有"})
_DEPTH_MAX = 8
_PERCENT = re.compile(r"\s*\d{1,3}(?:[.,]\d{1,4})?\s*%\s*")


@dataclass(frozen=True, slots=True)
class ItemView:
    """An item as the enforcer looks at it."""

    texts: tuple[str, ...]  # everything that is said of it
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # name in lower case -> values
    price: tuple[Money, ...] = ()  # several where it is a range; empty where it says none
    is_whole: bool = True  # False: there is more of it than could be looked at

    def says_of(self, category: str) -> tuple[str, ...]:
        """Return the values of the attribute that is called as a category of constraints; blank ones not."""
        name = category.lower().replace("-", "_")
        names = dict.fromkeys(f"{one}{end}" for one in _SPELLINGS.get(name, (name,)) for end in ("", "s"))
        return tuple(value for one in names for value in self.attributes.get(one, ()) if value.strip())


def view_of(item: Any) -> ItemView:
    """Return what a mapping says: every text below it, its attributes, `price` and `currency`.

    Raises:
        DocumentTypeError: it is no mapping; the application has to say how it is read.
    """
    if not isinstance(item, Mapping):
        raise DocumentTypeError("item: must be a mapping, or be read by a function of yours (`view=`)")
    attributes: dict[str, list[str]] = {}
    for name, value in _attributes(item, 0):
        attributes.setdefault(name.lower(), []).extend(text for text in _texts(value, 1) if text is not None)
    texts = tuple(_texts(item, 0))
    return ItemView(
        texts=tuple(text for text in texts if text is not None),
        attributes={name: tuple(dict.fromkeys(values)) for name, values in attributes.items()},
        price=tuple(_price(item)),
        is_whole=None not in texts,
    )


def _attributes(value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield name and value of what stands anywhere in an item: no part of it has the only say.

    Some shops write `{"name": "color", "value": "blue"}`.
    """
    if depth >= _DEPTH_MAX:
        return
    if isinstance(value, Mapping):
        if isinstance(value.get("name"), str):
            yield value["name"], value.get("value")
        for name, inner in value.items():
            if str(name).lower() not in _NO_WORDS:
                yield str(name), inner
                yield from _attributes(inner, depth + 1)
    elif _is_listed(value):
        for inner in value:
            yield from _attributes(inner, depth + 1)


def _texts(value: Any, depth: int) -> Iterator[str | None]:
    """Yield every text below a value, and None for what cannot be looked at: too deep, or of another kind.

    The name of a part is a text where the part only says yes or how much: `plastic: true`, `plastic: 40%`.
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping) or _is_listed(value):
        yield from [None] if depth >= _DEPTH_MAX else _texts_within(value, depth)
    elif not isinstance(value, _WITHOUT_WORDS):
        yield None


def _texts_within(value: Any, depth: int) -> Iterator[str | None]:
    if not isinstance(value, Mapping):
        for inner in value:
            yield from _texts(inner, depth + 1)
        return
    for name, inner in value.items():
        if not isinstance(name, str | _WITHOUT_WORDS):
            yield None
        elif str(name).lower() not in _NO_WORDS:
            if _is_share(inner):
                yield str(name)
            yield from _texts(inner, depth + 1)


def _is_listed(value: Any) -> bool:
    """Tell whether a value can be gone through and still be there: bytes are no list, an iterator ends."""
    return isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes | bytearray)


def _is_share(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in _YES or (
            _PERCENT.fullmatch(value) is not None and value.strip("0.,% ") != ""
        )
    return isinstance(value, int | float | Decimal) and value == value and value > 0


def _price(item: Mapping[str, Any]) -> list[Money]:
    price, currency = item.get("price"), item.get("currency")
    if isinstance(price, Mapping):
        currency = price.get("currency", currency)
        price = next((price[name] for name in _AMOUNTS if name in price), None)
    if price is not None:
        return money_of(price, currency)
    # `price_usd` and its like.
    named = [(str(name)[6:], value) for name, value in item.items() if str(name).startswith("price_")]
    return [one for code, value in named if len(code) == 3 for one in money_of(value, code)]
