"""What a replay found, kept in a temporary file: a million changes take no more memory than ten."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

__all__ = ["KINDS", "Change", "Changes", "Share"]

KINDS = ("newly_exposed", "newly_hidden", "newly_admitted", "newly_refused", "newly_quarantined")
_BUFFERED = 500
# A log names as many rules as it likes; policies have some dozens.
_RULES_MAX = 1_000
_CACHE_KIB = 4_096


@dataclass(slots=True)
class Change:
    """One record, candidate or whole answer of which the new policies make something else."""

    kind: str
    decision_id: str
    record_id: str | None  # None: a whole read, or a candidate that was never kept
    tenant_id: str | None
    principal_id: str
    was: str
    now: str
    rule_ids: tuple[str, ...]
    reasons: tuple[str, ...]

    def to_document(self) -> dict[str, Any]:
        """Return the change as the JSON report shows it."""
        return {
            "decision_id": self.decision_id,
            "record_id": self.record_id,
            "tenant_id": self.tenant_id,
            "principal_id": self.principal_id,
            "was": self.was,
            "now": self.now,
            "rule_ids": list(self.rule_ids),
            "reasons": list(self.reasons),
            "change": self.kind,
        }


@dataclass(frozen=True, slots=True)
class Share:
    """How many changes of each kind one tenant, rule or principal has."""

    name: str | None  # None: all the others together
    names: int
    counts: Mapping[str, int]


class Changes:
    """Changes in the order in which they were found; to be used with `with`, the file goes at its end."""

    def __init__(self) -> None:
        # An empty name is a file of SQLite's own that nobody else can open and that goes with the connection.
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        self._database.execute("PRAGMA synchronous=OFF")
        self._database.execute("PRAGMA journal_mode=OFF")
        self._database.execute(
            "CREATE TABLE changes(number INTEGER PRIMARY KEY, kind, decision_id, record_id, tenant_id,"
            " principal_id, was, now, rule_ids, reasons)"
        )
        self._buffer: list[Change] = []
        self.counts: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
        self._rules: dict[str, Counter[str]] = {}
        self._rules_left_out: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()

    def __len__(self) -> int:
        return sum(self.counts.values())

    def add(self, change: Change) -> None:
        """Keep one more change."""
        self.counts[change.kind] += 1
        for rule_id in change.rule_ids or ("",):
            if rule_id in self._rules or len(self._rules) < _RULES_MAX:
                self._rules.setdefault(rule_id, Counter())[change.kind] += 1
            else:
                self._rules_left_out[change.kind] += 1
        self._buffer.append(change)
        if len(self._buffer) > 2 * _BUFFERED:
            self._spill(self._buffer[:_BUFFERED])
            del self._buffer[:_BUFFERED]

    def name(self, decision_id: str, record_id: str) -> None:
        """Give the record that the write added last led to: the log tells it right after the decision."""
        if self._buffer and self._buffer[-1].decision_id == decision_id:
            self._buffer[-1].record_id = record_id

    def __iter__(self) -> Iterator[Change]:
        self._flush()
        found = self._database.execute(
            "SELECT kind,decision_id,record_id,tenant_id,principal_id,was,now,rule_ids,reasons FROM changes"
            " ORDER BY number"
        )
        yield from map(_change, found)

    def worst_first(self, most: int) -> list[Change]:
        """Return at most `most` changes, exposures before everything else."""
        self._flush()
        order = " ".join(f"WHEN '{kind}' THEN {number}" for number, kind in enumerate(KINDS))
        found = self._database.execute(
            "SELECT kind,decision_id,record_id,tenant_id,principal_id,was,now,rule_ids,reasons FROM changes"
            f" ORDER BY CASE kind {order} END, number LIMIT ?",
            (most,),
        )
        return [_change(row) for row in found]

    def by_tenant(self, most: int) -> list[Share]:
        """Return the tenants with the most changes, then all others as one."""
        return self._shares("tenant_id", most)

    def by_principal(self, most: int) -> list[Share]:
        """Return the principals with the most changes, then all others as one."""
        return self._shares("principal_id", most)

    def by_rule(self, most: int) -> list[Share]:
        """Return the rules with the most changes, then all others as one; a change may count for several.

        A change that no rule is named for stands under the empty name.
        """
        ordered = sorted(self._rules.items(), key=lambda item: (-sum(item[1].values()), item[0]))
        shares = [Share(name, 1, _whole(counts)) for name, counts in ordered[:most]]
        rest = Counter(self._rules_left_out)
        for _, counts in ordered[most:]:
            rest.update(counts)
        return [*shares, Share(None, len(ordered[most:]), _whole(rest))] if sum(rest.values()) else shares

    def _shares(self, column: str, most: int) -> list[Share]:
        self._flush()
        sums = ",".join(f"sum(kind='{kind}')" for kind in KINDS)
        found = self._database.execute(
            f"SELECT {column},{sums} FROM changes GROUP BY {column} ORDER BY count(*) DESC,{column} LIMIT ?",
            (most,),
        ).fetchall()
        shares = [Share(name or "", 1, dict(zip(KINDS, counts, strict=True))) for name, *counts in found]
        names = self._database.execute(f"SELECT count(DISTINCT ifnull({column},'')) FROM changes").fetchone()[
            0
        ]
        if names <= len(shares):
            return shares
        rest = {kind: self.counts[kind] - sum(one.counts[kind] for one in shares) for kind in KINDS}
        return [*shares, Share(None, names - len(shares), rest)]

    def _flush(self) -> None:
        self._spill(self._buffer)
        self._buffer = []

    def _spill(self, changes: Sequence[Change]) -> None:
        self._database.executemany(
            "INSERT INTO changes(kind,decision_id,record_id,tenant_id,principal_id,was,now,rule_ids,reasons)"
            " VALUES(?,?,?,?,?,?,?,?,?)",
            [
                (
                    *(one.kind, one.decision_id, one.record_id, one.tenant_id, one.principal_id),
                    *(one.was, one.now, json.dumps(one.rule_ids), json.dumps(one.reasons)),
                )
                for one in changes
            ],
        )


def _change(row: Any) -> Change:
    *plain, rule_ids, reasons = row
    kind, decision_id, record_id, tenant_id, principal_id, was, now = plain
    rules, why = tuple(json.loads(rule_ids)), tuple(json.loads(reasons))
    return Change(kind, decision_id, record_id, tenant_id, principal_id, was, now, rules, why)


def _whole(counts: Mapping[str, int]) -> dict[str, int]:
    return {kind: counts.get(kind, 0) for kind in KINDS}
