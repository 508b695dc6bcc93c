"""One tenant's part of the in-memory store: records, their terms, and who is active under which key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.recall.analysis import label_terms, record_terms
from agent_runtime_ref.stores.attributes import record_attributes
from agent_runtime_ref.stores.base import Head, Parent, Slot, Waiting

Undo = list[Callable[[], object]]


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored record with its attributes, but for `outranked`, which others decide."""

    record: MemoryRecord
    attributes: dict[str, Any]
    text_terms: frozenset[str]
    labels: frozenset[str]
    dedup: bytes | None
    original: bytes | None  # tombstone digest of what was written, where it was redacted
    waiting: Waiting | None  # in quarantine only

    @classmethod
    def of(
        cls,
        record: MemoryRecord,
        dedup: bytes | None,
        original: bytes | None,
        waiting: Waiting | None = None,
    ) -> Entry:
        """The entry of a record; a word in both text and labels counts as text."""
        text = record_terms(record.summary, record.content)
        labels = label_terms(record.kind, record.key) - text
        attributes = record_attributes(record, outranked=False)
        kept = waiting if record.status == "quarantined" else None
        return cls(record, attributes, text, labels, dedup, original, kept)

    def matched(self, terms: tuple[str, ...]) -> tuple[str, ...]:
        """The terms by which the record is found: those in its text, or, where none is, in its labels."""
        return tuple(term for term in terms if term in self.text_terms) or tuple(
            term for term in terms if term in self.labels
        )


class Tenant:
    """The records of one tenant; every change says how to undo it."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.dedup: dict[bytes, str] = {}
        self.tombstones: dict[bytes, int] = {}
        self.subject_keys: dict[str, bytes] = {}
        self._by_term: dict[str, set[str]] = {}
        self._by_key: dict[tuple[str | None, str], set[str]] = {}
        self._revisions: dict[tuple[str, str], int] = {}

    def found(self, terms: tuple[str, ...] | None, *, labels: bool = True) -> Iterator[Entry]:
        """The entries that hold one of `terms`, or all of them; without `labels` in their text only."""
        if terms is None:
            yield from self.entries.values()
            return
        ids = set().union(*(self._by_term.get(term, ()) for term in terms))
        held = (self.entries[memory_id] for memory_id in ids)
        yield from held if labels else (one for one in held if not one.text_terms.isdisjoint(terms))

    def attributes(self, entry: Entry, now_us: int) -> dict[str, Any]:
        """The candidate document of an entry at one instant."""
        if entry.record.key is None:
            return entry.attributes
        return {**entry.attributes, "outranked": self._is_outranked(entry, now_us)}

    def _is_outranked(self, entry: Entry, now_us: int) -> bool:
        own = entry.attributes
        for memory_id in self._by_key.get((own["subject"], own["key"]), ()):
            other = self.entries[memory_id].attributes
            if _alive(other, now_us) and other["trust_rank"] > own["trust_rank"]:
                return True
        return False

    def active(self, slot: Slot, now_us: int) -> list[Entry]:
        """The active entries of a slot with a key, the head first and what has expired last."""
        subject, memory_class, kind, key = slot
        assert key is not None
        held = [self.entries[memory_id] for memory_id in self._by_key.get((subject, key), ())]
        same = [one for one in held if (one.record.memory_class, one.record.kind) == (memory_class, kind)]
        return sorted(same, key=lambda one: (not _alive(one.attributes, now_us), *_head_order(one)))

    def head(self, slot: Slot, now_us: int) -> Head | None:
        """What is active in a slot at `now_us`, or the highest revision where the slot has no key."""
        if slot.key is None:
            revision = self._revisions.get((slot.memory_class, slot.kind))
            return None if revision is None else Head(None, 0, revision, "active")
        held = self.active(slot, now_us)
        if not held:
            return None
        # Whoever replaces several records at once must be trusted as much as the most trusted of them.
        ranks = [one.attributes["trust_rank"] for one in held if _alive(one.attributes, now_us)]
        revision = max(one.record.revision for one in held)
        return Head(
            held[0].record.memory_id, max(ranks, default=0), revision, "active" if ranks else "expired"
        )

    def holder(self, digest: bytes, now_us: int) -> str | None:
        """The record that a dedup key leads to, unless it has expired."""
        memory_id = self.dedup.get(digest)
        if memory_id is None or not _alive(self.entries[memory_id].attributes, now_us):
            return None
        return memory_id

    def release(self, digest: bytes, undo: Undo) -> None:
        """Take a dedup key from an expired record."""
        memory_id = self.dedup.pop(digest, None)
        if memory_id is not None:
            undo.append(lambda: self.dedup.setdefault(digest, memory_id))

    def add(self, entry: Entry, undo: Undo) -> None:
        """Put an entry whose id is free."""
        record = entry.record
        self.entries[record.memory_id] = entry
        self._index(entry)
        slot = (record.memory_class, record.kind)
        before = self._revisions.get(slot)
        self._revisions[slot] = max(before or 0, record.revision)
        undo.append(lambda: self._take_back(entry, slot, before))

    def retire(self, entry: Entry, undo: Undo) -> None:
        """Mark an entry superseded; its dedup key is free again."""
        retired = replace(
            entry,
            record=replace(entry.record, status="superseded"),
            attributes={**entry.attributes, "status": "superseded"},
        )
        self._exchange(entry, retired)
        undo.append(lambda: self._exchange(retired, entry))

    def take_out(self, entry: Entry, undo: Undo) -> None:
        """Remove an entry that may have to come back."""
        self.remove(entry)
        undo.append(lambda: self._put_back(entry))

    def mark(self, digests: Iterable[bytes], now_us: int, undo: Undo) -> None:
        """Leave tombstones."""
        for digest in digests:
            if digest not in self.tombstones:
                self.tombstones[digest] = now_us
                undo.append(partial(self.tombstones.pop, digest))

    def remove(self, entry: Entry) -> None:
        """Take an entry out of everything that knows of it."""
        del self.entries[entry.record.memory_id]
        self._unindex(entry)

    def derived_from(self, ids: Iterable[str]) -> set[str]:
        """Ids of all entries derived from `ids`, over any number of steps, without `ids` themselves."""
        children: dict[str, list[str]] = {}
        for memory_id, entry in self.entries.items():
            for parent in entry.record.derived_from:
                children.setdefault(parent, []).append(memory_id)
        first = set(ids)
        reached, open_ids = set(first), list(first)
        while open_ids:
            fresh = [child for child in children.get(open_ids.pop(), ()) if child not in reached]
            reached.update(fresh)
            open_ids.extend(fresh)
        return reached - first

    def revisions(self) -> Iterator[tuple[str, str, int]]:
        """Class, kind and highest revision that was ever given, of records that are gone too."""
        return ((*slot, revision) for slot, revision in self._revisions.items())

    def count_from(self, memory_class: str, kind: str, revision: int) -> None:
        """Let the revisions of a class and kind go on from `revision` at least."""
        slot = (memory_class, kind)
        self._revisions[slot] = max(self._revisions.get(slot, 0), revision)

    def holds_dedup(self, entry: Entry) -> bool:
        """Whether the entry is the one that its dedup key leads to."""
        return entry.dedup is not None and self.dedup.get(entry.dedup) == entry.record.memory_id

    def _take_back(self, entry: Entry, slot: tuple[str, str], before: int | None) -> None:
        self.remove(entry)
        if before is None:
            del self._revisions[slot]
        else:
            self._revisions[slot] = before

    def _exchange(self, old: Entry, new: Entry) -> None:
        self._unindex(old)
        self._put_back(new)

    def _put_back(self, entry: Entry) -> None:
        self.entries[entry.record.memory_id] = entry
        self._index(entry)

    def _index(self, entry: Entry) -> None:
        record = entry.record
        for term in entry.text_terms | entry.labels:
            self._by_term.setdefault(term, set()).add(record.memory_id)
        if record.status == "active":
            if record.key is not None:
                self._by_key.setdefault((record.subject, record.key), set()).add(record.memory_id)
            if entry.dedup is not None:
                # Never taken from another: one that had expired gave its key away before.
                self.dedup.setdefault(entry.dedup, record.memory_id)

    def _unindex(self, entry: Entry) -> None:
        record = entry.record
        for term in entry.text_terms | entry.labels:
            _drop(self._by_term, term, record.memory_id)
        if record.key is not None:
            _drop(self._by_key, (record.subject, record.key), record.memory_id)
        if entry.dedup is not None and self.holds_dedup(entry):
            del self.dedup[entry.dedup]


def _drop(index: dict[Any, set[str]], key: object, memory_id: str) -> None:
    held = index.get(key)
    if held is not None:
        held.discard(memory_id)
        if not held:
            del index[key]


def parent_of(attributes: Mapping[str, Any], now_us: int) -> Parent:
    """Return what a record passes on at `now_us` to those derived from it."""
    ended = attributes["status"] == "active" and not _alive(attributes, now_us)
    status = "expired" if ended else attributes["status"]
    return Parent(attributes["trust_rank"], attributes["subject"], status)


def _alive(attributes: Mapping[str, Any], now_us: int) -> bool:
    expires_ns = attributes["expires_ns"]
    return expires_ns is None or expires_ns > now_us * 1000


def _head_order(entry: Entry) -> tuple[int, int, int, str]:
    own = entry.attributes
    return -own["revision"], -own["trust_rank"], -own["created_ns"], own["record_id"]
