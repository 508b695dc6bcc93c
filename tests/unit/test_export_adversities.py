"""What a receiver or another process does that is in the way of an export: nothing is lost unnoticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_runtime_ref.errors import CursorError
from agent_runtime_ref.export import Answer, Cursor
from agent_runtime_ref.export.cursor import Reached
from tests.exporting import Recipient, export_of, log_of

TAKEN = Answer("taken")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of six events."""
    return log_of(tmp_path / "log.jsonl", 6)


def test_who_rejects_every_event_has_refused_the_batch(log: Path) -> None:
    """Whatever number he says, and though he says that he accepted it: the log is not passed over."""
    with export_of(log, Recipient(lambda _: Answer("taken", rejected=10**9, reason="quota"))) as export:
        assert not export.drain()
        assert (export.report.sent, export.report.failed, export.pending()) == (0, 0, 6)

    assert export.delivery.report.unavailable is not None
    assert "it refuses every event" in export.delivery.report.unavailable


def test_an_event_that_is_rejected_alone_is_given_up_when_others_are_taken(log: Path) -> None:
    """It is named then, as one that is refused by status is."""
    recipient = Recipient(lambda asked: Answer("taken", rejected=len(asked)) if "evt-001" in asked else TAKEN)
    with export_of(log, recipient, events_max=1) as export:
        assert export.drain()

    assert (export.report.sent, export.report.failed) == (5, 1)
    assert any("evt-001 was refused for good: it rejects every event" in one for one in export.said)


def test_following_leaves_a_receiver_alone_as_long_as_it_asks_for(log: Path) -> None:
    """Up to five minutes; a shorter time than it would be left alone anyway changes nothing."""
    asked = [Answer("unavailable", reason="busy", wait_seconds=one) for one in (60.0, 9_999.0, 0.5)]
    answers, waited = iter(asked), list[float]()

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        return len(waited) == 4

    with export_of(log, Recipient(lambda _: next(answers, TAKEN))) as export:
        export.delivery.follow(export.chains, wait=wait, every=0.25)

    assert waited == [60.0, 300.0, 4.0, 0.25]
    assert export.said[0] == "not delivered: busy; trying again in 60 s"


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_cursor_that_is_no_longer_held_ends_the_export(log: Path, is_replaced: bool) -> None:
    """Another export may have begun over the file of that name: neither takes the other's place unnoticed."""
    path = log.with_name(f"{log.name}.export")
    with Cursor(path) as cursor:
        cursor.move("log", Reached(1, "0" * 64))
        cursor.save()
        path.unlink()
        if is_replaced:
            path.write_text("", encoding="utf-8")
        cursor.move("log", Reached(2, "0" * 64))
        with pytest.raises(CursorError, match="removed or replaced"):
            cursor.save()

    assert path.exists() == is_replaced
    assert not is_replaced or path.read_text(encoding="utf-8") == ""
