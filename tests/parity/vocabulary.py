"""The words and numbers that generated documents are made of, most of them out of the settings themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

DAY_NS = 86_400_000_000_000
INT64_MAX = 2**63 - 1
SAFE_INTEGER_MAX = 2**53 - 1

# What a gate shows in place of a string that must not be shown; compared like any other word.
DIGESTS = ("hmac:00112233445566778899aabbccddeeff", "subject:ffeeddccbbaa99887766554433221100")
ODD_WORDS = ("", "a", "A", "0", "null", "true", "x" * 128, "a.b:c_d-e", "1e400", *DIGESTS)
TENANTS = ("tenant-a", "tenant-b", "Tenant-A")
PRINCIPALS = ("user-1", "user-2", "User-1", "anonymous")
FINDINGS = (
    "secret.aws_key", "secret.", "secretive", "instruction.override", "instruction", "rights.grant",
    "exfiltration.send", "key.protected", "Key.protected", "size.large",
)  # fmt: skip
FIELDS = ("content", "summary", "title", "key", "provenance", "source_id", "scope")
STATUSES = ("active", "quarantined", "superseded", "tombstone", "Active")
INSTANTS_NS = (1_790_000_000_000_000_000, 1, INT64_MAX, 946_684_800_000_000_000)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words of the settings, each list with one that the settings do not know."""

    classes: tuple[str, ...]
    purposes: tuple[str, ...]
    kinds: tuple[str, ...]
    sources: tuple[str, ...]
    roles: tuple[str, ...]
    keys: tuple[str, ...]
    permitted: tuple[tuple[str, str, str], ...]  # class, kind, source
    limits: tuple[int, ...]
    ages_days: tuple[int, ...]
    sizes: tuple[int, ...]
    confidences: tuple[int, ...]
    reason_chars: tuple[int, ...]
    ranks: tuple[int, ...] = (1, 2, 3)


def vocabulary(settings: Mapping[str, Any]) -> Vocabulary:
    """Return the words of `settings`, and the numbers at its thresholds and beside them."""
    permitted = tuple(
        (memory_class, kind, source)
        for memory_class, kinds in settings["permitted"].items()
        for kind, sources in kinds.items()
        for source in sources
    )
    limits = settings["limits"]
    bounds = (limits["query_min"], limits["query_max"], limits["inspection_max"])
    floors = {one["confidence_floor_millionths"] for one in settings["classes"].values()}
    ages = {limit["days"] for limit in settings["age_limits"]} | {limits["max_age_days_max"]}
    roles = {name for key, value in settings.items() if key.endswith("_roles") for name in value} | set(
        settings["protected_keys"]["roles"]
    )
    prefixes = settings["protected_keys"]["prefixes"]
    return Vocabulary(
        classes=(*settings["classes"], "archive"),
        purposes=(*settings["purposes"], "small_talk"),
        kinds=(*sorted({kind for _, kind, _ in permitted}), "gossip"),
        sources=(*settings["sources"], "rumour"),
        roles=(*sorted(roles), "reader"),
        keys=("editor.theme", "language", *(f"{prefix}x" for prefix in prefixes), prefixes[0].upper() + "y"),
        permitted=permitted,
        limits=(-SAFE_INTEGER_MAX, *_around(*bounds, 5), SAFE_INTEGER_MAX),
        ages_days=tuple(one for one in _around(0, 1, *ages) if 0 <= one <= 100_000),
        reason_chars=(0, *_around(settings["review"]["reason_chars_max"])),
        sizes=(0, *_around(limits["size_bytes_max"]), 16_777_216),
        confidences=tuple(one for one in _around(0, 1_000_000, *floors) if 0 <= one <= 1_000_000),
    )


def _around(*values: int) -> tuple[int, ...]:
    """Return each value with its neighbours."""
    return tuple(sorted({value + step for value in values for step in (-1, 0, 1)}))


def chance(random: Random, share: float) -> bool:
    """Say yes in `share` of the cases."""
    return random.random() < share


def word(random: Random, *usual: str, odd: float = 0.05) -> str:
    """Return one of `usual`, seldom a word that nobody should use."""
    return random.choice(ODD_WORDS) if chance(random, odd) else random.choice(usual)


def some(random: Random, words: tuple[str, ...], most: int = 3) -> list[str]:
    """Return up to `most` of `words`, in any order."""
    return random.sample(words, random.randint(0, min(most, len(words))))


def count_of_candidates(random: Random) -> int:
    """Return none, one, a few or many."""
    return random.choice((0, 0, 1, 1, 2, 5, random.randint(0, 20), 20))
