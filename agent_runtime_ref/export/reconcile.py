"""The log against what arrived: which events are missing, altered, there twice, or in another order.

The events lie in a private temporary database on disk, since a log may hold millions of them.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from agent_runtime_ref.clock import timestamp
from agent_runtime_ref.export.collected import Arrived
from agent_runtime_ref.export.outgoing import KEPT, REDACTED, AllowList, Outgoing, is_event, outgoing
from agent_runtime_ref.runtime import Chain
from agent_runtime_ref.telemetry.chain import Position, opened
from agent_runtime_ref.telemetry.events import EVENT_NAME_PREFIX
from agent_runtime_ref.telemetry.places import position_of

_HOUR_US = 3_600_000_000
# What is told to whoever listens, and is not, or perhaps not, in the log: that the log cannot be written.
_BESIDE_THE_LOG = frozenset({"policy_loaded", "policy_engine_failure", "store_failure"})
_OURS = ("agent_memory.", "gen_ai.", "error.type")
_TABLE = """
CREATE TABLE events(
    event_id TEXT PRIMARY KEY, chain TEXT, seq INTEGER, hash TEXT, hour INTEGER, line BLOB,
    arrivals INTEGER NOT NULL DEFAULT 0, altered INTEGER NOT NULL DEFAULT 0
)"""


@dataclass(slots=True)
class Reconciliation:
    """What came of it; lists are in the order of the log."""

    expected: int = 0
    received: int = 0  # of the expected ones, each counted once
    missing: list[str] = field(default_factory=list)
    duplicated: list[str] = field(default_factory=list)
    altered: dict[str, list[str]] = field(default_factory=dict)  # event id -> what of it differs
    reordered: int = 0  # first arrivals behind one that comes later in their chain
    unexpected: list[str] = field(default_factory=list)  # claim to be of ours, and the log does not have them
    unreadable: int = 0  # lines of events in the log that are not what was written
    cut: int = 0  # arrived, and their lines are no longer in the log
    redacted: Counter[str] = field(
        default_factory=Counter
    )  # field -> events that came without it, and say so
    hours: list[tuple[str, int, int]] = field(default_factory=list)  # begin, expected, received

    @property
    def completeness(self) -> float:
        """The share of the expected events that arrived; 1 where nothing was expected."""
        return share(self.received, self.expected)


def share(received: int, expected: int) -> float:
    """Return a share; rounded down, so that 1 means all of them."""
    return 1.0 if received == expected else int(received / expected * 1_000_000) / 1_000_000


class Reconciler:
    """Takes in a log, then what arrived, and tells how they differ; to be closed."""

    def __init__(self) -> None:
        # An empty name is a database on disk that is nobody else's and ends with the connection.
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute(_TABLE)
        self._database.execute("BEGIN")
        self._result = Reconciliation()
        self._first: dict[str, int] = {}  # chain -> number of its first line
        self._furthest: dict[str, int] = {}  # chain -> highest number that arrived so far

    def expect(self, chains: Iterable[Chain]) -> None:
        """Take in the events of a log."""
        for chain in chains:
            self._database.executemany(
                "INSERT OR IGNORE INTO events(event_id,chain,seq,hash,hour,line) VALUES(?,?,?,?,?,?)",
                self._rows(chain),
            )

    def arrive(self, records: Iterable[Arrived]) -> None:
        """Take in what a collector wrote down, in its order."""
        for record in records:
            self._arrived(record)

    def result(self) -> Reconciliation:
        """Say how they differ."""
        result, ask = self._result, self._database.execute
        result.expected, result.received = ask(
            "SELECT count(*),count(nullif(arrivals,0)) FROM events"
        ).fetchone()
        ids = "SELECT event_id FROM events WHERE {} ORDER BY rowid"
        result.missing = [row[0] for row in ask(ids.format("arrivals=0"))]
        result.duplicated = [row[0] for row in ask(ids.format("arrivals>1"))]
        found = result.altered
        result.altered = {row[0]: found[row[0]] for row in ask(ids.format("altered"))}
        hours = ask("SELECT hour,count(*),count(nullif(arrivals,0)) FROM events GROUP BY hour ORDER BY hour")
        result.hours = [(timestamp(hour * _HOUR_US), *counts) for hour, *counts in hours]
        return result

    def close(self) -> None:
        """Give up the temporary file."""
        self._database.close()

    def _rows(self, chain: Chain) -> Iterator[tuple[Any, ...]]:
        for line in chain.raw():
            sealed = opened(line)
            if sealed is not None:
                self._first.setdefault(chain.name, sealed.seq)
            if not is_event(line):
                continue
            try:
                if sealed is None or not sealed.sound:
                    raise ValueError("it is not what was sealed")
                event = outgoing(line, Position(chain.name, sealed.seq, sealed.hash), AllowList())
            except ValueError:
                self._result.unreadable += 1
                continue
            hour = event.at_us // _HOUR_US
            yield event.event_id, chain.name, sealed.seq, sealed.hash, hour, line

    def _arrived(self, record: Arrived) -> None:
        event_id = record.event_id
        asked = "SELECT chain,seq,hash,line,arrivals FROM events WHERE event_id=?"
        row = self._database.execute(asked, (event_id,)).fetchone()
        if row is None:
            self._not_expected(record)
            return
        chain, seq, hash_, line, arrivals = row
        if not arrivals:
            self._result.reordered += seq < self._furthest.get(chain, 0)
            self._furthest[chain] = max(seq, self._furthest.get(chain, 0))
        redacted = _redacted(record)
        event = outgoing(line, Position(chain, seq, hash_), _Without(redacted))
        differs = _differences(event, record)
        if differs:
            known = self._result.altered.setdefault(str(event_id), [])
            known += [name for name in differs if name not in known]
        if not arrivals:
            self._result.redacted.update(redacted)
        self._database.execute(
            "UPDATE events SET arrivals=arrivals+1, altered=altered OR ? WHERE event_id=?",
            (bool(differs), event_id),
        )

    def _not_expected(self, record: Arrived) -> None:
        """Count a record that is not in the log: cut there, told beside it, or made up."""
        place = {name: record.named(name) for name in ("log_chain", "log_seq", "log_hash")}
        position = position_of(place)
        if position is not None and position.seq < self._first.get(position.chain, 0):
            self._result.cut += 1
        elif position is not None or record.event_name.removeprefix(EVENT_NAME_PREFIX) not in _BESIDE_THE_LOG:
            self._result.unexpected.append(record.event_id or "")


class _Without(AllowList):
    """All fields of the catalogue but some."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__()
        self._names = names

    def of(self, event_type: str) -> frozenset[str]:
        """What may be there of an event."""
        return (super().of(event_type) - self._names) | KEPT


def _redacted(record: Arrived) -> frozenset[str]:
    """The fields that a record says were left out of it."""
    names = record.attributes.get(REDACTED)
    return frozenset(one for one in names if isinstance(one, str)) if isinstance(names, list) else frozenset()


def _differences(event: Outgoing, record: Arrived) -> list[str]:
    """Name what of a record is not what the log says, less what it says was left out."""
    expected = event.attributes()
    found = {name: value for name, value in record.attributes.items() if name.startswith(_OURS)}
    names = [name for name in {**expected, **found} if not _same(expected.get(name), found.get(name))]
    beside = {
        "event_name": (EVENT_NAME_PREFIX + event.event_type, record.event_name),
        "timestamp": (event.at_us * 1000, record.time_ns),
        "severity": (event.severity, record.severity),
        "body": (event.body, record.body),
    }
    return sorted(names) + [name for name, (one, other) in beside.items() if one != other]


def _same(expected: Any, found: Any) -> bool:
    """Tell whether two values are equal and of one kind: in Python, 1 is true, and 1.0 too."""
    return expected == found and isinstance(expected, bool) is isinstance(found, bool)
