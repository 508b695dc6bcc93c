"""A long-term preference as its reader sees it, and how it stands in a governed profile record."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent_runtime_ref.contracts import MemoryCandidate, MemoryRecord
from agent_runtime_ref.contracts.parts import text_of
from agent_runtime_ref.contracts.record import Origin
from agent_runtime_ref.preferences.keys import Key

__all__ = [
    "INFERRED",
    "KINDS",
    "MEMORY_CLASS",
    "PURPOSE",
    "STATED",
    "Preference",
    "candidate_of",
    "is_hard",
    "is_stated",
]

MEMORY_CLASS = "profile"
PURPOSE = "personalization"  # what they are read for, also by their writer
KINDS = ("preference", "language_preference")
# What a person said himself, and what a model concluded from it.
STATED = "user_input"
INFERRED = "inferred_preference"
_PROVENANCE = "curator"
_HARD = "hard"
_SOFT = "soft"
_INFERRING_SOURCES = frozenset({INFERRED, "agent_authored"})


@dataclass(frozen=True, slots=True)
class Preference:
    """What somebody likes or dislikes beyond one conversation."""

    key: Key
    content: str  # in the words of the last time it was said
    strength: str  # hard or soft; hard only where he said so himself
    stated: bool  # False: a model inferred it
    confidence: float  # 0 to 1
    created_at: datetime  # aware, UTC; when it was said first
    updated_at: datetime  # aware, UTC; when it was said last
    source_session: str | None  # the session in which it was said last
    record_id: str
    trust_level: str

    @property
    def polarity(self) -> str:
        """Whether it is liked: `like` or `dislike`."""
        return self.key.polarity

    @property
    def category(self) -> str:
        """What kind of thing it is about."""
        return self.key.category

    @property
    def domain(self) -> str:
        """Where it holds; `general` for everywhere."""
        return self.key.domain

    @property
    def slug(self) -> str:
        """Which thing it is about."""
        return self.key.slug

    def to_document(self) -> dict[str, Any]:
        """Return the preference as a mapping of plain values."""
        return {
            "key": str(self.key),
            **self.key._asdict(),
            "content": self.content,
            "strength": self.strength,
            "stated": self.stated,
            "confidence": self.confidence,
            "created_at": text_of(self.created_at),
            "updated_at": text_of(self.updated_at),
            "source_session": self.source_session,
            "record_id": self.record_id,
            "trust_level": self.trust_level,
        }

    @classmethod
    def of(cls, record: MemoryRecord) -> Preference | None:
        """Return the preference that a record keeps; None where its key was not derived from parts."""
        key = Key.parsed(record.key)
        if key is None or record.kind not in KINDS:
            return None
        assert record.created_at is not None, "a stored record has its instant"
        origin, stated = record.origin, is_stated(record)
        return cls(
            key=key,
            content=record.content,
            strength=_HARD if is_hard(record) else _SOFT,
            stated=stated,
            confidence=record.confidence,
            created_at=record.created_at if origin is None else origin.captured_at,
            updated_at=record.created_at,
            source_session=None if origin is None or origin.source_id == _NO_SESSION else origin.source_id,
            record_id=record.memory_id,
            trust_level=record.trust_level,
        )


_NO_SESSION = "none"


def is_stated(record: MemoryRecord) -> bool:
    """Tell whether the person said it himself."""
    return record.source not in _INFERRING_SOURCES


def is_hard(record: MemoryRecord) -> bool:
    """Tell whether it is to be enforced; only what the person said himself is."""
    return is_stated(record) and _HARD in record.scope


def kind_of(key: Key) -> str:
    """Return the kind of record that keeps a preference."""
    return "language_preference" if key.category == "language" else "preference"


def candidate_of(
    key: Key,
    content: str,
    *,
    tenant_id: str,
    subject: str,
    hard: bool,
    stated: bool,
    confidence: float,
    created_at: datetime,
    source_session: str | None,
) -> MemoryCandidate:
    """Return what the write gate is offered for a preference; it replaces what stands under its key."""
    return MemoryCandidate(
        tenant_id,
        MEMORY_CLASS,
        kind_of(key),
        content,
        STATED if stated else INFERRED,
        confidence,
        _PROVENANCE,
        "replace",
        key=str(key),
        subject=subject,
        origin=Origin(source_session or _NO_SESSION, "session", "preference", created_at),
        scope=(_HARD if hard and stated else _SOFT,),
    )
