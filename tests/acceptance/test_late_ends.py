"""What is asked of the log about a turn that another process left costs the same however long the log is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_runtime_ref import AgentRuntime, GovernedMemory
from agent_runtime_ref.background import PendingFile, Turn
from agent_runtime_ref.background.curated import CuratedTurns
from agent_runtime_ref.background.places import pending_folder
from agent_runtime_ref.enforcement.runs import LateEnd, Run
from agent_runtime_ref.stores.sqlite.store import SqliteStore
from agent_runtime_ref.testing import CountedIds
from tests.support import caller

BEFORE = ['{"type":"decision"}'] * 3_000


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Every line that is read of a log of a SQLite store: whether it is of the log of reads."""
    read_rows: list[bool] = []
    raw_log, log = SqliteStore.raw_log, SqliteStore.log

    def raw_counted(self: SqliteStore, read: bool, after: int = 0) -> Iterator[bytes]:
        for line in raw_log(self, read, after):
            read_rows.append(read)
            yield line

    def counted(self: SqliteStore, read: bool) -> Iterator[str]:
        for line in log(self, read):
            read_rows.append(read)
            yield line

    monkeypatch.setattr(SqliteStore, "raw_log", raw_counted)
    monkeypatch.setattr(SqliteStore, "log", counted)
    return read_rows


@pytest.fixture
def long_memory(tmp_path: Path) -> Iterator[GovernedMemory]:
    """A memory whose two logs are long."""
    with GovernedMemory.open(f"sqlite:{tmp_path / 'memory.db'}") as memory:
        for read in (True, False):
            memory._store.append_lines(BEFORE, read=read)
        yield memory


def begun(memory: GovernedMemory) -> Run:
    """Return a turn that was admitted."""
    return memory.begin_run("the queue", caller=caller(), purpose="answer_generation", limit=5)


def left(run: Run, number: int, mark: str = "") -> Turn:
    """Return a turn as its process left it."""
    return Turn(
        turn_id=f"turn-{number}",
        caller=run.caller,
        purpose="answer_generation",
        message=f"message {number}",
        reply="",
        status="interrupted",
        at_us=run.at_us,
        decision_id=run.decision.decision_id,
        mark=mark,
        log_seq=run.log_seq,
    )


def test_only_what_stands_behind_its_beginning_is_read(long_memory: GovernedMemory, rows: list[bool]) -> None:
    """The log of writes tells of no turn, and nothing before a turn tells how it ended."""
    run = begun(long_memory)
    assert long_memory.end_run(LateEnd(run.caller, run.decision.decision_id, None, run.log_seq))
    assert rows == []

    assert not long_memory.end_run(LateEnd(run.caller, run.decision.decision_id, None, run.log_seq))
    assert rows == [True]


def test_each_of_many_turns_is_read_to_its_own_end(long_memory: GovernedMemory, rows: list[bool]) -> None:
    """Those that a process had answered before it died cost as much as they wrote themselves."""
    runs = [begun(long_memory) for _ in range(20)]
    for run in runs:
        run.completed({})
    ends = [LateEnd(run.caller, run.decision.decision_id, None, run.log_seq) for run in runs]
    told = [long_memory.end_run(end) for end in reversed(ends)]

    assert not any(told)
    assert len(rows) < 20 * 60


def test_a_runtime_takes_turns_over_without_the_log_of_writes(
    long_memory: GovernedMemory, rows: list[bool]
) -> None:
    """The beginning of a turn is written down with it, so it is known to the process that takes it over."""
    folder = pending_folder(long_memory)
    assert folder is not None
    file = PendingFile.in_folder(folder, CountedIds())
    mark = long_memory.subject_mark(caller=caller())
    for number in range(3):
        file.put(left(begun(long_memory), number, mark), None)
    file.close()
    rows.clear()
    with AgentRuntime.open(long_memory) as runtime:
        assert runtime.drain()

    assert len(rows) < 100
    tail = [line for line in long_memory.raw_log(read=True) if b'"run_failed"' in line]
    assert len(tail) == 3


def test_turns_that_were_curated_are_looked_up_in_one_pass(
    long_memory: GovernedMemory, rows: list[bool]
) -> None:
    """Each line of the log is read once, however many turns ask, and what comes later is seen too."""
    run, curated = begun(long_memory), CuratedTurns()
    found = [curated.holds(left(run, number), [long_memory]) for number in range(20)]
    once = len(rows)
    line = '{"type":"event","event_type":"preferences_curated","payload":{"turn_id":"turn-7"}}'
    long_memory._store.append_lines([line], read=False)

    assert (found, once) == ([False] * 20, len(BEFORE))
    assert curated.holds(left(run, 7), [long_memory])
    assert not curated.holds(left(run, 8), [long_memory])
    assert len(rows) == once + 1


@pytest.mark.parametrize("kind", ["sqlite", "jsonl", "memory"])
def test_a_turn_knows_where_it_began(kind: str, tmp_path: Path) -> None:
    """Whatever the store: in the log of reads, or in the one log that there is."""
    url = "memory:" if kind == "memory" else f"{kind}:{tmp_path / 'memory'}"
    with GovernedMemory.open(url) as memory:
        before = [line for read in (True, False) for line in memory.raw_log(read=read)]
        run = begun(memory)
        seen = [line for read in (True, False) for line in memory.raw_log(read=read)]
        end = LateEnd(run.caller, run.decision.decision_id, None, run.log_seq)

        assert f'"seq":{run.log_seq},'.encode() in seen[-1]
        assert b'"policy_precheck"' in seen[-1]
        assert len(seen) == len(before) + 2
        assert memory.end_run(end)
        assert not memory.end_run(end)
