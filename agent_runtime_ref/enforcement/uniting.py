"""Which records say the same, which of them stays, and what it says of the others.

The earliest record stays, with its own id, instant, source and provenance. It takes over where the others
came from, the latest end, since a repetition says the same again until its own, and the highest confidence
among those that last until then, so that what ends sooner lends its confidence to nothing later. A summary is
that of the earliest which has one. Records of another retention are not the same: one record cannot be kept
under two promises. Where the sources of all do not fit into one record, several stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from agent_runtime_ref.clock import microseconds
from agent_runtime_ref.contracts import MemoryRecord

__all__ = ["LABELS_MAX", "PARENTS_MAX", "groups_of", "united"]

# Bounds of a record's schema; what would not fit is not merged, because its source would be lost.
LABELS_MAX, LABEL_CHARACTERS_MAX, PARENTS_MAX = 64, 256, 256
# Two secrets that were redacted look the same and are not.
_REDACTED = "[redacted:"


def groups_of(records: Sequence[MemoryRecord]) -> list[list[int]]:
    """Return the places of records that say the same, in groups of at least two, the earliest first."""
    same: dict[tuple[str | None, ...], list[int]] = {}
    for place, record in enumerate(records):
        if _REDACTED not in record.content and _REDACTED not in (record.summary or ""):
            same.setdefault(_sameness(record), []).append(place)
    groups = (group for places in same.values() if len(places) > 1 for group in _fitting(records, places))
    return [group for group in groups if len(group) > 1]


def united(records: Sequence[MemoryRecord]) -> MemoryRecord:
    """Return the first of a group of `groups_of` with what it takes over from the others."""
    kept, *others = records
    sources = _Sources(kept)
    for record in others:
        sources.take(record)
    own = {record.memory_id for record in records}
    last = max(records, key=lambda one: (_ends(one), one.confidence))
    return replace(
        kept,
        summary=next((one.summary for one in records if one.summary is not None), None),
        expires_at=last.expires_at,
        scope=tuple(sources.labels),
        derived_from=tuple(one for one in sources.parents if one not in own),
        confidence=last.confidence,
    )


class _Sources:
    """Where the records of one group came from, as the one that stays says it."""

    def __init__(self, kept: MemoryRecord) -> None:
        self._kept = kept
        self.labels = dict.fromkeys(kept.scope)
        self.parents = dict.fromkeys(kept.derived_from)

    def take(self, record: MemoryRecord) -> bool:
        """Take in the sources of another record; False, and nothing taken, where they do not fit."""
        labels = dict.fromkeys((*record.scope, *self._told(record)))
        fresh = [one for one in labels if one not in self.labels]
        parents = [one for one in record.derived_from if one not in self.parents]
        if (
            any(len(one) > LABEL_CHARACTERS_MAX for one in fresh)
            or len(self.labels) + len(fresh) > LABELS_MAX
            or len(self.parents) + len(parents) > PARENTS_MAX
        ):
            return False
        self.labels |= dict.fromkeys(fresh)
        self.parents |= dict.fromkeys(parents)
        return True

    def _told(self, record: MemoryRecord) -> Iterator[str]:
        """Yield labels for the source, provenance and origin that the record that stays has not."""
        kept = self._kept
        for name in ("source", "provenance"):
            value = getattr(record, name)
            if value != getattr(kept, name):
                yield f"{name}:{value}"
        own = None if kept.origin is None else kept.origin.source_id
        if record.origin is not None and record.origin.source_id != own:
            yield f"origin:{record.origin.source_id}"


def _fitting(records: Sequence[MemoryRecord], places: Sequence[int]) -> Iterator[list[int]]:
    """Yield groups whose sources fit into one record each; what does not fit any more begins another."""
    group: list[int] = []
    sources: _Sources | None = None
    for place in sorted(places, key=lambda one: _age(records[one])):
        if sources is not None and sources.take(records[place]):
            group.append(place)
            continue
        if group:
            yield group
        group, sources = [place], _Sources(records[place])
    if group:
        yield group


def _sameness(record: MemoryRecord) -> tuple[str | None, ...]:
    """Return what exact repetitions share. A key is a place of its own, which a replacement looks for."""
    about = (record.tenant_id, record.subject, record.memory_class, record.kind, record.key)
    return (*about, record.trust_level, record.retention, record.content)


def _age(record: MemoryRecord) -> tuple[int, str]:
    assert record.created_at is not None, "a record is given its instant before it is stored"
    return microseconds(record.created_at), record.memory_id


def _ends(record: MemoryRecord) -> float:
    return float("inf") if record.expires_at is None else microseconds(record.expires_at)
