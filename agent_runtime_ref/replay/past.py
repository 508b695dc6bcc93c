"""Records as they were when a read was decided, rebuilt from those that are there now and the log of writes.

A record that was superseded, released or rejected since stands in the store with its status of today. The log
says at which line each of these happened, and a read's line names the last line that its snapshot held.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from agent_runtime_ref.clock import microseconds
from agent_runtime_ref.errors import DocumentUnreadableError
from agent_runtime_ref.replay.log import event_of
from agent_runtime_ref.replay.question import ReadQuestion
from agent_runtime_ref.replay.run import Rebuilt

__all__ = ["History", "StorePast"]

Key = tuple[str, str]  # tenant and record
Record = Mapping[str, Any]
_PSEUDONYM = "subject:"
SOURCE = "write log"  # as errors call it
_BORN = {"memory_persisted": "active", "memory_quarantined": "quarantined"}
_ENDED = "memory_rejected"
_RELEASED = "memory_released"
_FORGOTTEN = "memory_forgotten"
_TAKEN_BACK = "memory_not_persisted"
_SLOT = ("tenant_id", "subject", "memory_class", "kind", "key")


@dataclass(slots=True)
class _Life:
    """When what happened to a record, in numbers of lines of the log of writes; 0 where it did not."""

    born: int
    status: str  # it began with
    turns: tuple[tuple[int, str], ...] = ()  # out of quarantine and into it, by reviewers: line and status
    rejected: int = 0
    replaces: int = 0  # since when it has the place of another

    def status_at(self, revision: int) -> str:
        """Return whether it was active or in quarantine when the log had `revision` lines."""
        return next((status for seq, status in reversed(self.turns) if seq <= revision), self.status)


class History:
    """What the log of writes says of each record; one small value a record is kept."""

    def __init__(self, lines: Iterable[str], *, by_tenant: bool = False) -> None:
        """Read `lines`; `by_tenant` says that each tenant's are numbered by themselves."""
        self.by_tenant = by_tenant
        self.lives: dict[Key, _Life] = {}
        self.removed: dict[str, int] = {}  # tenant -> the last line that says something was removed
        self.forgotten: dict[str, int] = {}  # tenant -> the last line that says a subject was forgotten
        # Of each chain: when each of its lines was written, and its number.
        self._written: dict[str | None, tuple[list[int], list[int]]] = {}
        for number, line in enumerate(lines, start=1):
            if '"event_type":"memory_' in line:
                self._read(line, number)

    def revision_at(self, now_ns: int, tenant_id: str | None = None) -> int:
        """Return the number of the last line of a tenant's chain that was written at an instant or before."""
        at_us, seqs = self._written.get(tenant_id if self.by_tenant else None, ([], []))
        place = bisect_right(at_us, now_ns // 1000)
        return seqs[place - 1] if place else 0

    def _read(self, line: str, number: int) -> None:
        try:
            self._take(event_of(line, SOURCE, number))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise DocumentUnreadableError(
                f"event not readable: {type(error).__name__}", source=SOURCE, line=number
            ) from error

    def _take(self, line: Mapping[str, Any]) -> None:
        event, payload, seq = line.get("event_type"), line["payload"], line["seq"]
        if not str(event).startswith("memory_"):
            return  # a decision whose words only look like those of an event
        tenant_id, record_id = payload.get("tenant_id"), payload.get("record_id")
        self._note_time(tenant_id, line["timestamp"], seq)
        forgotten = event == _FORGOTTEN and payload.get("effect") == "allow" and not payload.get("dry_run")
        if forgotten and record_id is None:  # a subject; a single record is named
            self.forgotten[tenant_id] = seq
        if forgotten or event == _ENDED:
            self.removed[tenant_id] = seq
        if record_id is None:
            return
        key = (tenant_id, record_id)
        if event == _TAKEN_BACK:
            self._take_back(key, payload.get("event"))
        else:
            self._turn(key, event, payload, seq, ended=forgotten or event == _ENDED)

    def _note_time(self, tenant_id: str, written_at: str, seq: int) -> None:
        """Keep when a line was written; a clock that went back does not put a chain out of order."""
        at_us, seqs = self._written.setdefault(tenant_id if self.by_tenant else None, ([], []))
        at = microseconds(datetime.fromisoformat(written_at))
        at_us.append(max(at, at_us[-1] if at_us else 0))
        seqs.append(seq)

    def _turn(self, key: Key, event: object, payload: Mapping[str, Any], seq: int, *, ended: bool) -> None:
        """Take what happened to one record; of one whose birth is not in the log nothing is known."""
        born = _BORN.get(str(event)) if "duplicate_of" not in payload else None
        if born is not None:
            life = self.lives.setdefault(key, _Life(seq, born))
            if life.born != seq:
                life.turns += ((seq, born),)
        else:
            found = self.lives.get(key)
            if found is None:
                return
            life = found
            if event == _RELEASED:
                life.turns += ((seq, "active"),)
            life.rejected = seq if ended else life.rejected
        if payload.get("supersedes") is not None:
            life.replaces = seq

    def _take_back(self, key: Key, event: object) -> None:
        """Let go of what was announced of a record and did not come about."""
        life = self.lives.get(key)
        if life is None:
            return
        if life.turns and event in (*_BORN, _RELEASED):
            life.turns = life.turns[:-1]
        elif event in _BORN:
            del self.lives[key]
        elif event == _ENDED:
            life.rejected = 0


class StorePast:
    """Rebuilds reads without a text; what a text matched nobody can tell afterwards, for it is not kept."""

    def __init__(self, records: Iterable[Record], history: History) -> None:
        self._history = history
        self._ordered = sorted(records, key=_order)
        self._by_tenant: dict[str, list[Record]] = {}
        self._replacers: dict[tuple[Any, ...], list[int]] = {}
        present: set[Key] = set()
        for record in self._ordered:
            self._by_tenant.setdefault(record["tenant_id"], []).append(record)
            key = _key(record)
            present.add(key)
            life = history.lives.get(key)
            if life is not None and life.replaces:
                self._replacers.setdefault(_slot(record), []).append(life.replaces)
        for numbers in self._replacers.values():
            numbers.sort()
        self._gone: dict[str, list[int]] = {}  # tenant -> lines at which records came that are gone
        for key, life in history.lives.items():
            if key not in present:
                self._gone.setdefault(key[0], []).append(life.born)
        for numbers in self._gone.values():
            numbers.sort()
        self._told: dict[str, int] = {}

    @property
    def erased(self) -> int:
        """How many records are gone that a rebuilt read could have been about."""
        return sum(self._told.values())

    def erased_at(self, tenant_id: str, revision: int) -> list[str]:
        """Return the ids of records that are gone and may have been there at a line of the log."""
        history, present = self._history, {one["record_id"] for one in self._by_tenant.get(tenant_id, ())}
        found = []
        for (tenant, record_id), life in history.lives.items():
            if tenant != tenant_id or record_id in present or life.born > revision:
                continue
            # Which records a forgetting removed no line says; after the last one none of them was there.
            last = life.rejected or history.forgotten.get(tenant_id, 0)
            if not last or last > revision:
                found.append(record_id)
        return sorted(found)

    def at(self, question: ReadQuestion) -> Rebuilt | None:
        """Return a read with every record of its tenant as it was; None where that cannot be told."""
        query = question.document["query"]
        tenant_id, now_ns = query["tenant_id"], question.document["now_ns"]
        if query["has_text"] or query["keys"] or (tenant_id or "").startswith(_PSEUDONYM):
            return None
        if not question.denied and not question.whole:
            return None
        revision = question.revision
        if self._history.by_tenant and tenant_id is None:
            return None  # a number says when only within one tenant
        if revision is None:
            revision = self._history.revision_at(now_ns, tenant_id)
        records = self.records_at(tenant_id, revision, now_ns)
        return Rebuilt(_merged(question, records), self._lacks(tenant_id, revision))

    def records_at(self, tenant_id: str | None, revision: int, now_ns: int) -> list[dict[str, Any]]:
        """Return the records of a tenant, or of all, as they were at a line of the log, in rank order."""
        there = self._ordered if tenant_id is None else self._by_tenant.get(tenant_id, [])
        then = [
            {**record, "status": self._status(record, revision)}
            for record in there
            if self._existed(record, revision, now_ns)
        ]
        return _with_outranked(then, now_ns)

    def _existed(self, record: Record, revision: int, now_ns: int) -> bool:
        life = self._history.lives.get(_key(record))
        if life is None:  # kept without a line, as a bulk load below the gates does
            return bool(record["created_ns"] <= now_ns)
        return life.born <= revision

    def _status(self, record: Record, revision: int) -> str:
        """Return the status that a record had when the log had `revision` lines."""
        today: str = record["status"]
        life = self._history.lives.get(_key(record))
        if life is None or (life.rejected and life.rejected <= revision):
            return today
        if life.status_at(revision) == "quarantined":
            return "quarantined"
        if today == "quarantined":
            return "active"  # a reviewer put it there since
        if today == "superseded":
            numbers = self._replacers.get(_slot(record), [])
            place = bisect_right(numbers, max([life.born, *(seq for seq, _ in life.turns)]))
            # Where the log does not say who took its place, it counts as out of it all along.
            superseded = numbers[place] if place < len(numbers) else 0
            return "active" if superseded > revision else today
        return today

    def _lacks(self, tenant_id: str | None, revision: int) -> bool:
        """Tell whether records that were there then are gone now, and remember how many."""
        lacks = False
        for name in self._gone if tenant_id is None else [tenant_id]:
            if revision >= self._history.removed.get(name, revision + 1):
                continue  # nothing was removed there since
            gone = bisect_right(self._gone.get(name, []), revision)
            self._told[name] = max(self._told.get(name, 0), gone)
            lacks = lacks or gone > 0
        return lacks


def _merged(question: ReadQuestion, records: list[dict[str, Any]]) -> ReadQuestion:
    """Return the question with all records; one that is gone and that the log names stays as logged."""
    named = {_key(record): index for index, record in enumerate(question.records)}
    present = {_key(record) for record in records}
    lost = [dict(question.records[index]) for key, index in named.items() if key not in present]
    merged = sorted([*records, *lost], key=_order) if lost else records
    returned, kept_out = set(), {}
    for index, record in enumerate(merged):
        was = named.get(_key(record))
        if was is not None and was in question.returned:
            returned.add(index)
        elif was is not None and was in question.kept_out:
            kept_out[index] = question.kept_out[was]
    return replace(
        question, records=merged, returned=frozenset(returned), kept_out=kept_out, ranked=True, rebuilt=True
    )


def _with_outranked(records: list[dict[str, Any]], now_ns: int) -> list[dict[str, Any]]:
    """Say anew of each record whether an active one of higher trust was about the same key."""
    highest: dict[tuple[Any, ...], int] = {}
    for record in records:
        expires = record["expires_ns"]
        if (
            record["key"] is None
            or record["status"] != "active"
            or (expires is not None and expires <= now_ns)
        ):
            continue
        place = (record["tenant_id"], record["subject"], record["key"])
        highest[place] = max(highest.get(place, 0), record["trust_rank"])
    for record in records:
        place = (record["tenant_id"], record["subject"], record["key"])
        record["outranked"] = record["key"] is not None and highest.get(place, 0) > record["trust_rank"]
    return records


def _key(record: Record) -> Key:
    return record["tenant_id"], record["record_id"]


def _slot(record: Record) -> tuple[Any, ...]:
    return tuple(record[name] for name in _SLOT)


def _order(record: Record) -> tuple[int, int, str, str]:
    """Return the key of the order of answers without a text."""
    return -record["trust_rank"], -record["created_ns"], record["record_id"], record["tenant_id"]
