"""Findings of a session, as short as tests want them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.contracts.finding import Amount, Bound, Finding


@dataclass(frozen=True, slots=True)
class Preference:
    """A long-term preference as some store may have it; a hard dislike of a material."""

    slug: str
    polarity: str = "dislike"
    strength: str = "hard"
    category: str = "material"
    domain: str = "general"


def finding(slug: str = "plastic", **changes: Any) -> Finding:
    """Return a hard dislike of a material in this session."""
    base: dict[str, Any] = {
        "scope": "session",
        "polarity": "dislike",
        "strength": "hard",
        "category": "material",
        "domain": "general",
        "slug": slug,
        "content": f"about {slug}",
    }
    return Finding(**(base | changes))


def like(slug: str, **changes: Any) -> Finding:
    """Return a soft wish of this session."""
    return finding(slug, **({"polarity": "like", "strength": "soft"} | changes))


def budget(value: str, currency: str | None = "USD", *, bound: Bound = "max", **changes: Any) -> Finding:
    """Return a hard bound of the budget."""
    amount = Amount(value, currency, bound)
    base: dict[str, Any] = {"polarity": "like", "category": "budget", "anchor": "budget", "amount": amount}
    return finding("budget", **(base | {"content": f"budget {value}"} | changes))


def about(slug: str, **changes: Any) -> Finding:
    """Return what the conversation is about."""
    return like(slug, **({"category": "category", "anchor": "category"} | changes))
