"""Kinds of fault that users of memory systems reported: what is damaged, and what cannot be written."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import structlog

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.errors import DecisionLogError, StoreDamagedError
from agent_runtime_ref.preferences import PreferenceStore
from agent_runtime_ref.testing import CountedIds, FrozenClock
from tests.preferring import finding
from tests.reviewing import ATTACK, REVIEWER, held, shown
from tests.support import caller, note, query


@pytest.mark.parametrize("kind", ["file", "jsonl", "sqlite"])
@pytest.mark.parametrize("value", ["soon", "2026-13-45T99:00:00Z"])
def test_an_end_that_nobody_understands_does_not_mean_never(kind: str, value: str, tmp_path: Path) -> None:
    """A stored end that somebody damaged shows nothing of its record, and raises an alarm."""
    path = tmp_path / "memory"
    with GovernedMemory.open(f"{kind}:{path}", clock=FrozenClock(), ids=CountedIds()) as memory:
        memory.write(note("apricot"), caller=caller())
    if kind == "sqlite":
        with closing(sqlite3.connect(path)) as raw, raw:
            raw.execute("update records set expires_us = ?", (value,))
    else:
        sound = path.read_text(encoding="utf-8")
        damaged = re.sub(r'("expires_at":\s*)"[^"]*"', rf'\1"{value}"', sound)
        assert damaged != sound
        path.write_text(damaged, encoding="utf-8")

    seen, alarms = [], []
    with structlog.testing.capture_logs() as told:
        try:
            with GovernedMemory.open(f"{kind}:{path}", clock=FrozenClock(), ids=CountedIds()) as memory:
                seen = memory.read(query(), caller=caller(), text="apricot").hits
        except StoreDamagedError as error:
            alarms.append(str(error))
    alarms += [line["event"] for line in told if line["log_level"] == "error"]
    assert list(seen) == []
    assert alarms


def test_a_ledger_that_cannot_be_written_keeps_every_change_back(tmp_path: Path) -> None:
    """Compaction, release, forgetting one thing and forgetting a person happen with their lines or not."""
    path = tmp_path / "memory.db"
    with GovernedMemory.open(f"sqlite:{path}", clock=FrozenClock(), ids=CountedIds()) as memory:
        waiting = held(memory)
        for number in (1, 2):
            memory.write(note("same words", provenance=f"turn-{number}"), caller=caller())
        store = PreferenceStore(memory=memory)
        store.write(finding(), caller=caller())
        with closing(sqlite3.connect(path)) as raw, raw:
            named = "select name from sqlite_master where name like '%log%' and type = 'table'"
            (table,) = raw.execute(named).fetchone()
            raw.execute(
                f"create trigger no_log before insert on {table} begin select raise(abort, 'ro'); end"
            )
        for change in (
            lambda: memory.compact(caller=caller()),
            lambda: memory.release(waiting, caller=REVIEWER, reason="SEC-1"),
            lambda: store.forget("dislike:material:general:plastic", caller=caller()),
            lambda: memory.forget(subject="user-42", caller=caller()),
        ):
            with pytest.raises(DecisionLogError):
                change()
        with closing(sqlite3.connect(path)) as raw, raw:
            raw.execute("drop trigger no_log")

        left = sorted((one.content, one.status) for one in shown(memory))
        assert left == [
            ("I always hate plastic", "active"),
            (ATTACK, "quarantined"),
            ("same words", "active"),
            ("same words", "active"),
        ]
