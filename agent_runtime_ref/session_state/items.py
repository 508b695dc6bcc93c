"""What the enforcer sees of an item: its words, its own claims about itself, and its price.

An item comes from a shop, a search or a model, so nothing of it is believed to be of a certain form. A
mapping is read as shops write them; whatever else an application has it turns into an `ItemView` itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_runtime_ref.errors import DocumentTypeError
from agent_runtime_ref.session_state.money import Money, money_of

__all__ = ["ItemView", "view_of"]

# Fields whose text says nothing about what the item is.
_NO_WORDS = frozenset(
    "id item_id sku url link href image images image_url thumbnail price currency seller_id rank".split()
)
_AMOUNTS = ("amount", "value", "price")
_DEPTH_MAX = 8
_PERCENT = re.compile(r"\s*\d{1,3}(?:[.,]\d{1,4})?\s*%\s*")


@dataclass(frozen=True, slots=True)
class ItemView:
    """An item as the enforcer looks at it."""

    texts: tuple[str, ...]  # everything that is said of it
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # name in lower case -> values
    price: tuple[Money, ...] = ()  # several where it is a range; empty where it says none
    is_whole: bool = True  # False: there is more of it than was looked at

    def says_of(self, category: str) -> tuple[str, ...]:
        """Return the values of the attribute that is called as a category of constraints, if there is one."""
        name = category.lower().replace("-", "_")
        names = (name, f"{name}s", {"color": "colour", "colour": "color"}.get(name, name))
        return next((self.attributes[one] for one in names if self.attributes.get(one)), ())


def view_of(item: Any) -> ItemView:
    """Return what a mapping says: every text below it, its attributes, `price` and `currency`.

    Raises:
        DocumentTypeError: it is no mapping; the application has to say how it is read.
    """
    if not isinstance(item, Mapping):
        raise DocumentTypeError("item: must be a mapping, or be read by a function of yours (`view=`)")
    attributes: dict[str, tuple[str, ...]] = {}
    for part in (item, item.get("attributes"), item.get("specs")):
        if isinstance(part, Mapping):
            for name, value in part.items():
                if str(name).lower() not in _NO_WORDS:
                    values = tuple(text for text in _texts(value, 1) if text is not None)
                    attributes.setdefault(str(name).lower(), values)
    texts = tuple(_texts(item, 0))
    return ItemView(
        texts=tuple(text for text in texts if text is not None),
        attributes=attributes,
        price=tuple(_price(item)),
        is_whole=None not in texts,
    )


def _texts(value: Any, depth: int) -> Iterator[str | None]:
    """Yield every text below a value, and None for what is nested too deep to be looked at.

    The name of a part is a text where the part only says yes or how much: `plastic: true`, `plastic: 40%`.
    """
    if isinstance(value, str):
        yield value
    elif depth >= _DEPTH_MAX and isinstance(value, Mapping | Sequence | set | frozenset):
        yield None
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if str(name).lower() not in _NO_WORDS:
                if _is_share(inner):
                    yield str(name)
                yield from _texts(inner, depth + 1)
    elif isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes | bytearray):
        for inner in value:
            yield from _texts(inner, depth + 1)


def _is_share(value: Any) -> bool:
    if isinstance(value, str):
        return _PERCENT.fullmatch(value) is not None and value.strip("0.,% ") != ""
    return isinstance(value, int | float) and value > 0


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
