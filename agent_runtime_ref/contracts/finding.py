"""What a judge found in an utterance: one constraint of this session, or one standing preference."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from agent_runtime_ref.contracts.caller import require_text
from agent_runtime_ref.contracts.key_part import PART_CHARACTERS_MAX, WORD
from agent_runtime_ref.errors import DocumentTypeError, DocumentValueError

__all__ = ["Amount", "Anchor", "Bound", "Finding", "Polarity", "Scope", "Strength"]

Scope = Literal["session", "standing"]
Polarity = Literal["like", "dislike"]
Strength = Literal["hard", "soft"]
Anchor = Literal["none", "budget", "category"]
Bound = Literal["max", "min"]

_CHOICES = {
    "scope": ("session", "standing"),
    "polarity": ("like", "dislike"),
    "strength": ("hard", "soft"),
    "anchor": ("none", "budget", "category"),
}
CONTENT_CHARACTERS_MAX = 500
KEYS_MAX = 16
# A part of a derived key: letters and digits of any script, joined by hyphens or underscores; never a colon,
# which divides the parts, nor anything that a terminal or a markup reads as its own.
_PART = re.compile(rf"{WORD}(?:[-_.]{WORD})*")
_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,4})?")
_CURRENCY = re.compile(r"[A-Z]{3}")


@dataclass(frozen=True, slots=True)
class Amount:
    """A bound of a budget; a range is two findings.

    Raises:
        DocumentTypeError, DocumentValueError: a part is of the wrong type or form.
    """

    value: str  # a decimal number as it would be written in JSON, in whole units of the currency: "300"
    currency: str | None = None  # ISO 4217; None where the utterance names none
    bound: Bound = "max"

    def __post_init__(self) -> None:
        _matching("amount $.value", self.value, _NUMBER, "must be a decimal number")
        if self.currency is not None:
            _matching("amount $.currency", self.currency, _CURRENCY, "must be three capital letters")
        _one_of("amount", "bound", self.bound, ("max", "min"))

    def to_document(self) -> dict[str, Any]:
        """Return the amount as JSON knows it."""
        return {"value": self.value, "currency": self.currency, "bound": self.bound}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that an utterance says of what its speaker wants, now or always.

    `category` says what kind of thing it is (`material`, `color`, `food`), `domain` where (`general` if
    everywhere), `slug` which thing; the key `polarity:category:domain:slug` is derived from them by code.

    Raises:
        DocumentTypeError, DocumentValueError: a part is of the wrong type or form, or parts contradict.
    """

    scope: Scope
    polarity: Polarity
    strength: Strength
    category: str
    domain: str
    slug: str
    content: str  # the words of the utterance that say it
    stated: bool = True  # False: a model inferred it
    anchor: Anchor = "none"
    amount: Amount | None = None  # of a budget anchor, and of nothing else; none of one that takes it back
    keys_to_supersede: tuple[str, ...] = ()  # derived keys of preferences that this one contradicts

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            _one_of("finding", name, getattr(self, name), choices)
        for name in ("category", "domain", "slug"):
            value = getattr(self, name)
            _matching(
                f"finding $.{name}", value, _PART, "must be words joined by hyphens", PART_CHARACTERS_MAX
            )
        _checked_content(self.content)
        if not isinstance(self.stated, bool):
            raise DocumentTypeError("finding $.stated: must be a boolean", path="$.stated")
        object.__setattr__(self, "keys_to_supersede", _keys(self.keys_to_supersede))
        self._check_anchor()

    @property
    def lifts_budget(self) -> bool:
        """Whether it takes the budget back: a budget that is disliked, and so has no amount."""
        return self.anchor == "budget" and self.polarity == "dislike" and self.amount is None

    def _check_anchor(self) -> None:
        """Refuse an anchor that outlives its session, and a budget without its amount."""
        if self.anchor != "none" and self.scope != "session":
            raise DocumentValueError(
                "finding $.anchor: must be `none` for a standing preference", path="$.anchor"
            )
        if not isinstance(self.amount, Amount | None):
            raise DocumentTypeError("finding $.amount: must be an amount", path="$.amount")
        if (self.amount is not None) != (self.anchor == "budget") and not self.lifts_budget:
            raise DocumentValueError(
                "finding $.amount: must stand in a budget and nowhere else", path="$.amount"
            )

    def to_document(self) -> dict[str, Any]:
        """Return the finding as JSON knows it, every part present."""
        return {
            "scope": self.scope,
            "polarity": self.polarity,
            "strength": self.strength,
            "category": self.category,
            "domain": self.domain,
            "slug": self.slug,
            "content": self.content,
            "stated": self.stated,
            "anchor": self.anchor,
            "amount": None if self.amount is None else self.amount.to_document(),
            "keys_to_supersede": list(self.keys_to_supersede),
        }


def _one_of(what: str, name: str, value: object, choices: tuple[str, ...]) -> None:
    if not isinstance(value, str):
        raise DocumentTypeError(f"{what} $.{name}: must be a string", path=f"$.{name}")
    if value not in choices:
        raise DocumentValueError(f"{what} $.{name}: must be one of {', '.join(choices)}", path=f"$.{name}")


def _matching(
    place: str,
    value: object,
    form: re.Pattern[str],
    sentence: str,
    characters_max: int = CONTENT_CHARACTERS_MAX,
) -> None:
    path = place.partition(" ")[2]
    if not isinstance(value, str):
        raise DocumentTypeError(f"{place}: must be a string", path=path)
    if form.fullmatch(value) is None:
        raise DocumentValueError(f"{place}: {sentence}", path=path)
    if len(value) > characters_max:
        raise DocumentValueError(f"{place}: must be at most {characters_max} characters", path=path)


def _checked_content(content: object) -> None:
    if not isinstance(content, str):
        raise DocumentTypeError("finding $.content: must be a string", path="$.content")
    require_text("finding $.content", content)
    if not content.strip():
        raise DocumentValueError("finding $.content: must not be empty", path="$.content")
    if len(content) > CONTENT_CHARACTERS_MAX:
        sentence = f"finding $.content: must be at most {CONTENT_CHARACTERS_MAX} characters"
        raise DocumentValueError(sentence, path="$.content")


def _keys(keys: object) -> tuple[str, ...]:
    path = "$.keys_to_supersede"
    if not isinstance(keys, tuple | list):
        raise DocumentTypeError("finding $.keys_to_supersede: must be a list of strings", path=path)
    if not all(isinstance(key, str) for key in keys):
        raise DocumentTypeError("finding $.keys_to_supersede: must be a list of strings", path=path)
    if len(keys) > KEYS_MAX:
        raise DocumentValueError(f"finding $.keys_to_supersede: must be at most {KEYS_MAX} keys", path=path)
    return tuple(keys)
