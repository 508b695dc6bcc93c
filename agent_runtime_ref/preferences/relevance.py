"""Which preferences a question is about: by the nearness of their words, and never of another domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_runtime_ref.contracts.key_part import part
from agent_runtime_ref.preferences.keys import ANY_DOMAIN
from agent_runtime_ref.preferences.preference import Preference
from agent_runtime_ref.recall.embedding import Vectors, similarity

__all__ = ["NEAR", "Scored", "in_domain", "in_force", "nearest", "relevant"]

_DECIMALS = 6
# Below it texts share a few letters by chance.
NEAR = 0.1


@dataclass(frozen=True, slots=True)
class Scored:
    """A preference, its place among those that were given, and how near it is, from 0 to 1."""

    place: int
    preference: Preference
    score: float


def in_domain(preference: Preference, domain: str | None) -> bool:
    """Tell whether a preference holds in a domain: it is of that one or of all; with None, of any."""
    return domain is None or preference.domain in (ANY_DOMAIN, part(domain))


def in_force(preferences: Sequence[Preference]) -> list[Preference]:
    """Return those of `preferences` that count, in their order: of two opposites of one thing one alone.

    Where both are kept, as when a reviewer lets the one go past which the other was said, it is that which
    was said rather than inferred; else the later one; at one instant the dislike, which keeps things out.
    """
    ranks = {one.key: (one.stated, one.updated_at, one.polarity == "dislike") for one in preferences}
    return [one for one in preferences if ranks[one.key] >= ranks.get(one.key.opposite, ranks[one.key])]


def nearest(text: str, preferences: Sequence[Preference], vectors: Vectors) -> list[Scored]:
    """Return all of `preferences`, the nearest to `text` first; of equal ones the surer, then by key."""
    if not preferences:
        return []
    (asked,) = vectors.of([text], query=True)
    known = vectors.of([_text(one) for one in preferences], query=False)
    scored = [
        Scored(place, one, max(0.0, round(similarity(asked, vector), _DECIMALS)))
        for place, (one, vector) in enumerate(zip(preferences, known, strict=True))
    ]
    return sorted(scored, key=_order)


def relevant(text: str, preferences: Sequence[Preference], vectors: Vectors) -> list[Scored]:
    """Return those that `text` is about, nearest first, and behind them the hard ones that it does not name.

    What a person will on no account have is no less so because the question puts it in other words.
    """
    return [
        one
        for one in nearest(text, preferences, vectors)
        if one.score >= NEAR or one.preference.strength == "hard"
    ]


def _order(one: Scored) -> tuple[float, bool, float, str]:
    preference = one.preference
    return -one.score, preference.strength != "hard", -preference.confidence, str(preference.key)


def _text(preference: Preference) -> str:
    key = preference.key
    return f"{preference.content} {key.slug} {key.category}".replace("-", " ")
