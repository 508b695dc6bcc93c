"""A constraint that was held back and released by a reviewer: where it holds, since when, against what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.contracts.finding import Finding
from agent_runtime_ref.session_state import Sessions
from tests.acceptance.session_state.threads import OVERRIDE, THREAD, USER, Told, pt
from tests.constraining import budget, finding, like
from tests.support import caller

REVIEWER = caller(principal_id="reviewer-1", subject=None, roles=("operator",))
HELD = finding("plastic", content=OVERRIDE)


def held_back(sessions: Sessions, told: Told, *findings: Finding) -> list[str]:
    """Merge a turn of which something is held back, and return the records that wait."""
    before = len(told())
    receipt = sessions.merge(THREAD, findings, caller=USER)
    assert "quarantined" in [reason for _, reason in receipt.refused]
    return [
        one["payload"]["record_id"] for one in told()[before:] if one["event_type"] == "memory_quarantined"
    ]


def released(memory: GovernedMemory, record_ids: list[str]) -> None:
    """Have a reviewer let these go."""
    assert record_ids
    for one in record_ids:
        memory.release(one, caller=REVIEWER, reason="the user said so himself")


def test_it_holds_from_the_next_load(
    sessions: Sessions, memory: GovernedMemory, folder: Path, told: Told
) -> None:
    """Until then its words are in its record alone; a look writes nothing, the next turn does."""
    waiting = held_back(sessions, told, HELD)
    assert (sessions.load(THREAD, caller=USER).findings, sessions.look(THREAD, caller=USER).waiting) == (
        (),
        1,
    )
    before = pt(folder).read_bytes()
    assert b"customer" not in before

    released(memory, waiting)

    assert sessions.load(THREAD, caller=USER).negative_hard == (HELD,)
    assert sessions.look(THREAD, caller=USER).waiting == 0
    assert pt(folder).read_bytes() == before
    receipt = sessions.merge(THREAD, [finding("leather")], caller=USER)
    assert receipt.state.negative_hard == (HELD, finding("leather"))
    assert "held" not in json.loads(pt(folder).read_text(encoding="utf-8"))
    assert (
        Sessions(memory, folder=folder).load(THREAD, caller=USER).negative_hard == receipt.state.negative_hard
    )


def test_what_was_said_later_stays_the_later_word(
    sessions: Sessions, memory: GovernedMemory, told: Told
) -> None:
    """A release says that it was said, not that it is said now; against what was said before, it counts."""
    sessions.merge(THREAD, [like("plastic"), like("silk")], caller=USER)
    waiting = held_back(sessions, told, HELD, finding("wool", content=OVERRIDE + " Now."))
    sessions.merge(THREAD, [like("wool"), budget("300")], caller=USER)

    released(memory, waiting)

    state = sessions.load(THREAD, caller=USER)
    assert (state.negative_hard, state.positive_soft) == ((HELD,), (like("silk"), like("wool")))
    assert state.budget == (budget("300"),)
    assert state.record_ids([HELD]) == (waiting[0],)
    (wool,) = state.record_ids([like("wool")])
    assert wool not in waiting


@pytest.mark.parametrize("part", ["record_ids", "held"])
def test_a_file_of_before_is_read(sessions: Sessions, folder: Path, told: Told, part: str) -> None:
    """Which records the constraints are, and which wait, were not written once."""
    sessions.merge(THREAD, [like("silk")], caller=USER)
    held_back(sessions, told, HELD)
    document = json.loads(pt(folder).read_text(encoding="utf-8"))
    del document[part]
    pt(folder).write_text(json.dumps(document, indent=1), encoding="utf-8")

    found = sessions.look(THREAD, caller=USER)

    assert (found.damaged, found.state.findings) == (None, (like("silk"),))
    assert found.waiting == (0 if part == "held" else 1)


def test_what_is_rejected_never_holds(sessions: Sessions, memory: GovernedMemory, told: Told) -> None:
    """It stays out of every later load, and of every later turn."""
    for one in held_back(sessions, told, HELD):
        memory.reject(one, caller=REVIEWER, reason="somebody else's words")

    assert sessions.load(THREAD, caller=USER).findings == ()
    assert sessions.merge(THREAD, [finding("leather")], caller=USER).state.findings == (finding("leather"),)


def test_what_was_cleared_is_not_brought_back(sessions: Sessions, folder: Path, told: Told) -> None:
    """Clearing takes what waits as well."""
    held_back(sessions, told, HELD)

    assert sessions.clear(THREAD, caller=USER)

    assert list(folder.glob("*/*")) == []
    (forgotten,) = [one["payload"] for one in told() if one["event_type"] == "memory_forgotten"]
    assert forgotten["counts"] == {"short_term": 1}


@pytest.mark.parametrize(
    "damage",
    [
        {"before": 7},
        {"before": True},
        {"before": -1},
        {"record_id": 3},
        {"finding": {}},
        {"finding": HELD.to_document()},
    ],
)
def test_a_held_constraint_that_is_none_is_damage(
    sessions: Sessions, folder: Path, told: Told, damage: dict[str, object]
) -> None:
    """As any other part of the file."""
    held_back(sessions, told, HELD)
    document = json.loads(pt(folder).read_text(encoding="utf-8"))
    document["held"][0] |= damage
    pt(folder).write_text(json.dumps(document, indent=1), encoding="utf-8")

    assert sessions.look(THREAD, caller=USER).damaged == "not_a_state"
