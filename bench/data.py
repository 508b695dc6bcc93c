"""The records and queries of every measurement: made from seeds, the same on every machine.

A corpus is cut into slices, each one batch of one tenant that was kept at one instant. A record is made from
a seed of its own, so that any of them can be made again without keeping the others.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import NamedTuple
from zlib import crc32

from agent_runtime_ref import MemoryCandidate

SEED = 20_261_130
VERSION = 2  # goes into the name of a kept build; raise it when records change

DAY_US = 86_400_000_000
NOW_US = 1_796_000_000_000_000  # the instant of every read
AGE_DAYS_MAX = 729  # within the retention of the durable classes

VOCABULARY_WORDS = 20_000
COMMON_WORDS = 5  # the second row of reads has one of these in each query
STOP_WORDS = 50  # never a term of a query otherwise
IDEOGRAPHS = 2_000
TEXT_WORDS = 20
CHINESE_PERCENT = 25

SLICE_MAX = 1_000
_SLICES_MIN = 12  # the records of a tenant are spread over at least so many instants
_KEYED_PERCENT = 30
_TOPICS = 1_000

_ONSETS = "b c d f g h j k l m n p r s t v w z br cl dr fl gr pl st tr".split()
_VOWELS = "a e i o u ai ea io ou".split()
_CODAS = ["", "n", "r", "s", "l", "t", "nd", "st"]


class Shape(NamedTuple):
    """A class, a kind and a source that the bundled policy admits together."""

    memory_class: str
    kind: str
    source: str
    provenance: str
    confidence: float
    weight: int


# Five kinds, three classes, and every level of trust: it follows from the source.
SHAPES = (
    Shape("short_term", "working_note", "session_state", "session_note", 0.6, 12),
    Shape("short_term", "working_note", "trusted_service", "service_export", 0.8, 8),
    Shape("short_term", "conversation", "user_input", "chat_turn", 0.7, 10),
    Shape("long_term", "validated_fact", "trusted_service", "validated_service_rule", 0.9, 20),
    Shape("long_term", "validated_fact", "trusted_profile", "profile_import", 0.95, 8),
    Shape("long_term", "session_summary", "approved_summarizer", "nightly_summary", 0.75, 12),
    Shape("long_term", "conversation", "agent_authored", "agent_notebook", 0.65, 10),
    Shape("profile", "preference", "user_confirmed_preference", "settings_page", 0.95, 12),
    Shape("profile", "preference", "trusted_profile", "profile_import", 0.9, 8),
)
_SHAPE_WEIGHTS = list(accumulate(shape.weight for shape in SHAPES))


@dataclass(frozen=True, slots=True)
class Slice:
    """Records of one tenant that are written together."""

    tenant_id: str
    number: int
    size: int
    at_us: int


@dataclass(frozen=True, slots=True)
class Corpus:
    """A number of records over a number of tenants; Zipf sizes, or all alike in full slices."""

    records: int
    tenants: int = 100
    prefix: str = "tenant"
    zipf: bool = True

    def tenant_sizes(self) -> dict[str, int]:
        """Return how many records each tenant has; they sum to `records`."""
        weights = [1 / rank if self.zipf else 1.0 for rank in range(1, self.tenants + 1)]
        total = sum(weights)
        sizes = [max(1, int(self.records * weight / total)) for weight in weights]
        sizes[0] += self.records - sum(sizes)
        return {f"{self.prefix}-{number:03}": size for number, size in enumerate(sizes)}

    def slices(self) -> list[Slice]:
        """Return all slices, oldest first: the order in which they are written."""
        found = []
        for tenant_id, size in self.tenant_sizes().items():
            cuts = _cut(size, SLICE_MAX if not self.zipf else min(SLICE_MAX, -(-size // _SLICES_MIN)))
            spread = random.Random(f"{SEED} {tenant_id} instants")
            for number, part in enumerate(cuts):
                age = AGE_DAYS_MAX * DAY_US * (len(cuts) - number - spread.random()) / len(cuts)
                found.append(Slice(tenant_id, number, part, NOW_US - int(age)))
        return sorted(found, key=lambda one: (one.at_us, one.tenant_id))


@dataclass(frozen=True, slots=True)
class Question:
    """A read: who asks for what, within which limits. `text=None` asks for all."""

    tenant_id: str
    text: str | None
    classes: tuple[str, ...]
    trust_min: str
    max_age_days: int


def candidates(part: Slice) -> Iterator[MemoryCandidate]:
    """Make the records of a slice."""
    return (candidate(part, number) for number in range(part.size))


def candidate(part: Slice, number: int) -> MemoryCandidate:
    """Make one record of a slice, the same whenever it is asked for."""
    rng = random.Random(crc32(f"{SEED} {part.tenant_id} {part.number}".encode()) << 16 | number)
    shape = rng.choices(SHAPES, cum_weights=_SHAPE_WEIGHTS)[0]
    keyed, topic = rng.randrange(100) < _KEYED_PERCENT, rng.randrange(_TOPICS)
    return MemoryCandidate(
        tenant_id=part.tenant_id,
        memory_class=shape.memory_class,
        kind=shape.kind,
        content=_text(rng),
        source=shape.source,
        confidence=shape.confidence,
        provenance=shape.provenance,
        # A keyed summary could be outranked by another record; both baselines know nothing of that.
        key=f"topic.{topic:03}" if keyed and shape.kind != "session_summary" else None,
    )


def questions(corpus: Corpus, count: int, *, salt: str, row: str = "rare") -> list[Question]:
    """Return queries about random stored records: `rare` terms, one `common` among them, or `none` at all."""
    rng = random.Random(f"{SEED} questions {row} {salt}")
    parts = corpus.slices()
    weights = list(accumulate(part.size for part in parts))
    return [_question(rng, rng.choices(parts, cum_weights=weights)[0], row) for _ in range(count)]


@cache
def vocabulary() -> tuple[str, ...]:
    """Return the English-like words, commonest first."""
    rng = random.Random(f"{SEED} vocabulary")
    words: dict[str, None] = {}
    while len(words) < VOCABULARY_WORDS:
        # Common words are short, as in a language; a syllable more makes a rare one.
        syllables = 1 + (len(words) > 100) + (rng.random() < 0.4)
        stem = "".join(rng.choice(_ONSETS) + rng.choice(_VOWELS) for _ in range(syllables))
        words[stem + rng.choice(_CODAS)] = None
    return tuple(words)


@cache
def _word_weights() -> list[float]:
    return list(accumulate(1 / rank for rank in range(1, VOCABULARY_WORDS + 1)))


@cache
def _ideograph_weights() -> list[float]:
    return list(accumulate(1 / rank for rank in range(1, IDEOGRAPHS + 1)))


@cache
def _ideographs() -> tuple[str, ...]:
    found = [chr(0x4E00 + number) for number in range(IDEOGRAPHS)]
    random.Random(f"{SEED} ideographs").shuffle(found)
    return tuple(found)


def _text(rng: random.Random) -> str:
    if rng.randrange(100) < CHINESE_PERCENT:
        return "".join(rng.choices(_ideographs(), cum_weights=_ideograph_weights(), k=TEXT_WORDS))
    return " ".join(rng.choices(vocabulary(), cum_weights=_word_weights(), k=TEXT_WORDS))


def _question(rng: random.Random, part: Slice, row: str) -> Question:
    record = candidate(part, rng.randrange(part.size))
    return Question(
        tenant_id=part.tenant_id,
        text=None if row == "none" else " ".join(_terms(rng, record.content, common=row == "common")),
        classes=tuple(rng.sample(("short_term", "long_term", "profile"), rng.randint(1, 3))),
        trust_min=rng.choice(("low", "medium", "high")),
        max_age_days=rng.choice((30, 180, 365)),
    )


def _terms(rng: random.Random, content: str, *, common: bool) -> Sequence[str]:
    """Return three terms of a text: words, or pairs of ideographs; a common word takes the place of one."""
    if content.isascii():
        found = sorted(set(content.split()) - set(vocabulary()[:STOP_WORDS]))
    else:
        stop = set(_ideographs()[:STOP_WORDS])
        pairs = {content[place : place + 2] for place in range(len(content) - 1)}
        found = sorted(pair for pair in pairs if not stop.issuperset(pair))
    terms = rng.sample(found, min(3, len(found)))
    return [rng.choice(vocabulary()[:COMMON_WORDS]), *terms[:2]] if common or not terms else terms


def _cut(size: int, most: int) -> list[int]:
    """Return `size` as the fewest parts of at most `most`, as even as they can be."""
    count = -(-size // most)
    return [size // count + (number < size % count) for number in range(count)]
