"""What the writer of preferences is shown of what is there passes the read gate like every other look."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from agent_runtime_ref import MemoryRecord, PolicyDeniedError
from agent_runtime_ref.enforcement.revise import Revisions
from tests.preferring import USER, finding, opened

KEY = "dislike:material:general:plastic"


class Looking:
    """Changes nothing, and keeps what it was shown."""

    def __init__(self) -> None:
        self.seen: list[Mapping[str, MemoryRecord]] = []

    def __call__(self, found: Mapping[str, MemoryRecord], now_us: int) -> Revisions:
        """Return nothing to do."""
        self.seen.append(found)
        return Revisions((), {}, ())


def test_a_look_that_changes_nothing_is_a_decision_of_its_own() -> None:
    """It stands in the log of reads, with the record that was shown."""
    store, memory = opened()
    store.write(finding(), caller=USER)
    before = len(list(memory.log_lines(read=True)))
    looking = Looking()

    assert memory.revise("profile", (KEY,), looking, caller=USER, purpose="personalization") == []

    (seen,) = looking.seen
    lines = [json.loads(line) for line in list(memory.log_lines(read=True))[before:]]
    (decided,) = [line for line in lines if line["type"] == "decision"]
    assert (decided["path"], decided["input"]["operation"]) == ("memory/read/decision", "get")
    assert decided["input"]["query"]["record_ids"] == [seen[KEY].memory_id]


def test_who_may_not_read_for_a_purpose_is_shown_nothing() -> None:
    """The refusal is raised and on record, and the writer is not asked."""
    store, memory = opened()
    store.write(finding(), caller=USER)
    looking = Looking()

    with pytest.raises(PolicyDeniedError) as raised:
        memory.revise("profile", (KEY,), looking, caller=USER, purpose="gossip")
    assert raised.value.decision.reasons == ("purpose_unknown",)
    assert looking.seen == []


def test_where_nothing_is_there_nothing_is_read() -> None:
    """A first preference costs no look."""
    store, memory = opened()
    before = list(memory.log_lines(read=True))
    store.write(finding(), caller=USER)

    assert list(memory.log_lines(read=True)) == before
