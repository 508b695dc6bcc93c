"""Whoever chooses among admitted records leaves a line of his look, also where his choice fails."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from agent_runtime_ref import GovernedMemory, MemoryRecord
from tests.support import caller, candidate, query


def test_a_choice_that_fails_is_on_record() -> None:
    """The failure is raised after the decision was written down, and nothing is returned."""
    seen: list[Sequence[MemoryRecord]] = []

    def choose(records: Sequence[MemoryRecord]) -> list[int]:
        seen.append(records)
        raise KeyError("no choice")

    with GovernedMemory.open("memory:") as memory:
        memory.write(candidate(), caller=caller())
        before = len(list(memory.log_lines(read=True)))
        with pytest.raises(KeyError, match="no choice"):
            memory.choose(query(), choose, caller=caller())
        lines = [json.loads(line) for line in list(memory.log_lines(read=True))[before:]]

    assert [len(records) for records in seen] == [1]
    (decided,) = [line for line in lines if line["type"] == "decision"]
    assert (decided["considered"]["considered"], decided["considered"]["returned"]) == (1, [])
