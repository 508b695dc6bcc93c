"""What the enforcer sees of an item: its words, its own claims about itself, and its price.

An item comes from a shop, a search or a model, so nothing of it is believed to be of a certain form. A
mapping is read as shops write them; whatever else an application has it turns into an `ItemView` itself.
"""

from __future__ import annotations

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
_DEPTH_MAX = 6


@dataclass(frozen=True, slots=True)
class ItemView:
    """An item as the enforcer looks at it."""

    texts: tuple[str, ...]  # everything that is said of it
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # name in lower case -> values
    price: tuple[Money, ...] = ()  # several where it is a range; empty where it says none

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
                    attributes.setdefault(str(name).lower(), tuple(_texts(value, 1)))
    return ItemView(
        texts=tuple(_texts(item, 0)),
        attributes=attributes,
        price=tuple(_price(item)),
    )


def _texts(value: Any, depth: int) -> Iterator[str]:
    """Yield every text below a value, the names of its parts left out: `plastic_free: true` is no plastic."""
    if isinstance(value, str):
        yield value
    elif depth >= _DEPTH_MAX:
        return
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if str(name).lower() not in _NO_WORDS:
                yield from _texts(inner, depth + 1)
    elif isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes | bytearray):
        for inner in value:
            yield from _texts(inner, depth + 1)


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
