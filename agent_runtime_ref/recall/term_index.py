"""Candidates out of a growing list of records: a query looks only at those with one of its terms."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime
from sys import intern

from agent_runtime_ref.contracts.stored import MemoryKind, StoredMemory, captured
from agent_runtime_ref.errors import RemoteMemoryScopeError
from agent_runtime_ref.recall.analysis import record_terms
from agent_runtime_ref.recall.candidates import RecallCandidate
from agent_runtime_ref.recall.query import RecallQuery

__all__ = ["TermIndex"]

_Entry = tuple[StoredMemory, tuple[str, ...], datetime]


class TermIndex:
    """The conversation records of a list that only grows at its end; any other list is indexed anew.

    Says the same as `build_recall_candidates` over all records. Thread-safe.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._entries: list[_Entry] = []
        self._places: dict[str, list[int]] = {}
        self._conversations: set[str] = set()
        self._retracted: set[str] = set()
        self._foreign: StoredMemory | None = None
        self._size = 0
        self._last: StoredMemory | None = None

    def candidates(
        self, query: RecallQuery, records: Sequence[StoredMemory]
    ) -> tuple[tuple[RecallCandidate, ...], int]:
        """Return the candidates, in the order of `records`, and how many conversation records there are.

        Raises:
            RemoteMemoryScopeError: a record belongs to another user than the query.
        """
        with self._guard:
            self._grow(records, query.user_scope)
            if self._foreign is not None:
                raise RemoteMemoryScopeError(
                    f"record `{self._foreign.memory_id}` belongs to another user scope"
                )
            matched: dict[int, list[str]] = {}
            for term in query.terms:
                for place in self._places.get(term, ()):
                    matched.setdefault(place, []).append(term)
            gone, entries = self._retracted, self._entries
            searched = len(self._conversations) - len(self._conversations & gone)
            return tuple(
                RecallCandidate(query.query_id, record, terms, tuple(matched[place]), moment)
                for place in sorted(matched)
                for record, terms, moment in (entries[place],)
                if record.memory_id not in gone
            ), searched

    def _grow(self, records: Sequence[StoredMemory], user_scope: str) -> None:
        known = self._size
        if known > len(records) or (known and records[known - 1] is not self._last):
            self._forget()
        for record in records[self._size :]:
            self._add(record, user_scope)
        self._size = len(records)
        self._last = records[-1] if records else None

    def _add(self, record: StoredMemory, user_scope: str) -> None:
        if record.user_scope != user_scope:
            self._foreign = record
        if record.retracts is not None:
            self._retracted.add(record.retracts)
        if record.kind is not MemoryKind.CONVERSATION:
            return
        # One string for each term, however many records hold it.
        terms = tuple(sorted(intern(term) for term in record_terms(record.summary, record.content)))
        for term in terms:
            self._places.setdefault(term, []).append(len(self._entries))
        self._conversations.add(record.memory_id)
        self._entries.append((record, terms, captured("captured_at", record.source.captured_at)))

    def _forget(self) -> None:
        for held in (self._entries, self._places, self._conversations, self._retracted):
            held.clear()
        self._size, self._last, self._foreign = 0, None, None
