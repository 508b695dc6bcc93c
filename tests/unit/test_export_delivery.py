"""The log is the outbox: what was acknowledged is behind the cursor, and everything else is sent again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_runtime_ref.errors import CursorError, LogNotContinuedError
from agent_runtime_ref.export import AllowList, Answer, Cursor, Delivery
from agent_runtime_ref.telemetry.logfile import Rotation
from agent_runtime_ref.telemetry.segments import closed_segments
from tests.exporting import Recipient, chain_of, decision_body, event_body, export_of, ids, log_of, sealed

GONE = Answer("unavailable", reason="nobody is there")
TAKEN = Answer("taken")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of six events."""
    return log_of(tmp_path / "log.jsonl", 6)


def test_events_are_delivered_once_and_in_order(log: Path) -> None:
    """A second run begins where the first one ended, and decision lines stay where they are."""
    first, second = Recipient(), Recipient()
    with export_of(log, first, events_max=4) as export:
        assert export.drain()
        assert (export.report.sent, export.pending()) == (6, 0)
    log_of(log, 2, begin=7)
    with export_of(log, second) as export:
        assert export.pending() == 2
        assert export.drain()

    assert first.asked == [ids(1, 2, 3, 4), ids(5, 6)]
    assert second.asked == [ids(7, 8)]


def test_an_event_carries_the_place_of_its_line(log: Path) -> None:
    """What left the process is an anchor of the log: chain, number and hash of the line."""
    recipient = Recipient()
    with export_of(log, recipient) as export:
        export.drain()

    line = json.loads(log.read_text().splitlines()[1])
    payload = recipient.events[0].payload
    assert (payload["log_chain"], payload["log_seq"], payload["log_hash"]) == ("log", 2, line["hash"])


def test_a_receiver_that_is_gone_keeps_the_cursor_where_it_is(log: Path) -> None:
    """What was not acknowledged is pending, and is sent in the next run."""
    answers = iter([TAKEN, GONE])
    recipient = Recipient(lambda _: next(answers))
    with export_of(log, recipient, events_max=2) as export:
        assert not export.drain()
        assert (export.report.sent, export.pending()) == (2, 4)
        assert export.report.unavailable == "nobody is there"
    again = Recipient()
    with export_of(log, again) as export:
        export.drain()

    assert recipient.ids + again.ids == ids(1, 2, 3, 4, 5, 6)


def test_a_batch_without_an_acknowledgement_is_sent_again_under_the_same_ids(log: Path) -> None:
    """A process that dies after the receiver took a batch leaves a cursor that does not say so."""

    def died(batch: list[str]) -> Answer:
        raise KeyboardInterrupt if batch[0] == "evt-003" else SystemExit

    recipient = Recipient()
    first = Recipient(lambda batch: TAKEN if batch[0] == "evt-001" else died(batch))
    with export_of(log, first, events_max=2) as export, pytest.raises(KeyboardInterrupt):
        export.drain()
    with export_of(log, recipient) as export:
        export.drain()

    assert first.asked[-1] == ids(3, 4)
    assert recipient.ids == ids(3, 4, 5, 6)


def test_records_that_the_receiver_rejects_are_counted_and_not_sent_again(log: Path) -> None:
    """Of a partial success the protocol forbids to send it again; the count stays in the cursor."""
    recipient = Recipient(lambda _: Answer("taken", rejected=2, reason="attribute too long"))
    with export_of(log, recipient) as export:
        assert export.drain()
        assert (export.report.sent, export.report.failed, export.pending()) == (4, 2, 0)
        (said,) = export.said
        assert said.startswith(
            "2 of 6 events, evt-001 to evt-006, were refused for good: attribute too long;"
        )
    with export_of(log, Recipient()) as export:
        assert export.cursor.of("log").failed == 2


def test_one_event_that_is_refused_does_not_hold_up_the_others(log: Path) -> None:
    """The batch is sent in ever smaller parts, until the one at fault stands alone."""
    refused = Answer("refused", reason="400")
    recipient = Recipient(lambda batch: refused if "evt-003" in batch else TAKEN)
    with export_of(log, recipient) as export:
        assert export.drain()

    assert recipient.ids == ids(1, 2, 4, 5, 6)
    assert (export.report.sent, export.report.failed) == (5, 1)
    assert export.said == ["event evt-003 was refused for good: 400"]


def test_what_refuses_everything_is_taken_for_a_wrong_address(log: Path) -> None:
    """Nothing is given up where nothing was ever taken: the cursor stays, and all is pending."""
    with export_of(log, Recipient(lambda _: Answer("refused", reason="400"))) as export:
        assert not export.drain()
        assert (export.report.sent, export.report.failed, export.pending()) == (0, 0, 6)


def test_what_begins_to_refuse_everything_eats_nothing_of_the_log(log: Path) -> None:
    """A success before it says nothing of a gateway that answers 400 to all by now: all is pending."""
    refused = Answer("refused", reason="400")
    with export_of(
        log, Recipient(lambda batch: TAKEN if "evt-001" in batch else refused), events_max=2
    ) as export:
        for _ in range(2):
            assert not export.drain()
            assert (export.report.sent, export.report.failed, export.pending()) == (2, 0, 4)
        assert export.report.unavailable == "it refuses every event, so it may be no receiver of events: 400"
        assert (export.cursor.of("log").seq, export.said) == (4, [])
    again = Recipient()
    with export_of(log, again) as export:
        export.drain()

    assert again.ids == ids(3, 4, 5, 6)


def test_a_batch_of_which_everything_is_refused_is_given_up_when_a_later_one_is_taken(log: Path) -> None:
    """Then the receiver is one, and what it refused would hold up everything behind it."""
    refused = Answer("refused", reason="400")
    recipient = Recipient(lambda batch: refused if {"evt-003", "evt-004"} & set(batch) else TAKEN)
    with export_of(log, recipient, events_max=2) as export:
        assert export.drain()
        assert (export.report.sent, export.report.failed, export.pending()) == (4, 2, 0)

    assert recipient.ids == ids(1, 2, 5, 6)
    assert export.said == [f"event evt-00{number} was refused for good: 400" for number in (3, 4)]


def test_the_last_event_that_is_refused_is_given_up_with_the_next_that_is_taken(log: Path) -> None:
    """Alone at the end of a log it is pending; nobody can tell yet whether all would be refused."""
    refused = Answer("refused", reason="400")
    recipient = Recipient(lambda batch: refused if "evt-006" in batch else TAKEN)
    with export_of(log, recipient, events_max=1) as export:
        assert not export.drain()
        assert (export.report.sent, export.report.failed, export.pending()) == (5, 0, 1)
        log_of(log, 1, begin=7)
        assert export.drain()
        assert (export.report.sent, export.report.failed, export.pending()) == (6, 1, 0)


def test_a_receiver_that_goes_in_the_middle_of_the_parts_gives_nothing_up(log: Path) -> None:
    """The batch is sent again as a whole."""
    answers = iter([Answer("refused"), TAKEN, GONE])
    with export_of(log, Recipient(lambda _: next(answers))) as export:
        assert not export.drain()
        assert (export.report.failed, export.pending()) == (0, 6)


def test_lines_that_were_cut_before_they_were_delivered_are_counted_and_said(tmp_path: Path) -> None:
    """Whoever moves closed files away too early is told how many lines went with them."""
    log = log_of(tmp_path / "log.jsonl", 9, rotation=Rotation(max_bytes=1500))
    closed = closed_segments(log)
    with export_of(
        log, Recipient(lambda batch: TAKEN if "evt-001" in batch else GONE), events_max=1
    ) as export:
        export.drain()
    closed[0].unlink()
    lost = sum(1 for _ in closed[1].read_text().splitlines())
    closed[1].unlink()
    recipient = Recipient()
    with export_of(log, recipient) as export:
        assert export.drain()
        assert export.report.cut == export.cursor.of("log").cut >= lost
        assert any("were gone before they were delivered" in one for one in export.said)

    assert recipient.ids == ids(*range(10 - len(recipient.ids), 10))


def test_files_that_were_delivered_can_be_moved_away(tmp_path: Path) -> None:
    """Closed files behind the cursor are not missed, and nothing is counted."""
    log = log_of(tmp_path / "log.jsonl", 9, rotation=Rotation(max_bytes=1500))
    with export_of(log, Recipient()) as export:
        export.drain()
    for closed in closed_segments(log):
        closed.unlink()
    log_of(log, 1, begin=10)
    recipient = Recipient()
    with export_of(log, recipient) as export:
        assert export.drain()

    assert (recipient.ids, export.report.cut, export.said) == (ids(10), 0, [])


def test_a_log_that_ends_before_the_cursor_is_not_delivered_from(log: Path) -> None:
    """It was cut at its end: what is appended now would take the place of lines that are known elsewhere."""
    with export_of(log, Recipient()) as export:
        export.drain()
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:6]))

    with export_of(log, Recipient()) as export, pytest.raises(LogNotContinuedError, match="ends before it"):
        export.drain()


def test_a_log_that_was_made_anew_is_not_delivered_from(log: Path) -> None:
    """Another line in the place of the last delivered one is not passed over in silence."""
    with export_of(log, Recipient()) as export:
        export.drain()
    log.unlink()
    log_of(log, 8, begin=101)

    with export_of(log, Recipient()) as export, pytest.raises(LogNotContinuedError, match="another line"):
        export.drain()


@pytest.mark.parametrize(
    ("count", "said"), [(2, "ends before it"), (8, "another line")], ids=["shorter", "longer"]
)
def test_a_log_that_is_made_anew_while_it_is_followed_ends_the_export(
    log: Path, count: int, said: str
) -> None:
    """At the next look, and not only at a fresh start: the cursor would come to fit the new log unnoticed."""
    recipient = Recipient()

    def wait(_: float) -> bool:
        if log.exists() and json.loads(log.read_text().splitlines()[1])["event_id"] == "evt-001":
            log.unlink()
            log_of(log, count, begin=101)
            return False
        return True

    with export_of(log, recipient) as export, pytest.raises(LogNotContinuedError, match=said):
        export.delivery.follow(export.chains, wait=wait, every=0.5)

    assert recipient.ids == ids(1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            lambda line: line.replace(b"tenant-acme", b"tenant-evil"),
            "line 4 was not delivered: it was altered",
        ),
        (lambda _: b"rubbish", "line 4 was not delivered: it is no log line"),
        (lambda _: b"\xff\xfe", "line 4 was not delivered: it is no log line"),
    ],
)
def test_a_line_that_is_not_what_was_written_does_not_leave_as_if_it_were(
    tmp_path: Path, damage: Callable[[bytes], bytes], said: str
) -> None:
    """It is counted as failed and said; the events around it are delivered."""
    lines = sealed(*[text for number in range(1, 5) for text in (decision_body(number), event_body(number))])
    lines[3] = damage(lines[3])
    recipient = Recipient()
    told: list[str] = []
    with Cursor(tmp_path / "c.export") as cursor:
        delivery = Delivery(cursor, recipient, say=told.append)
        assert delivery.drain([chain_of(lines)])

    assert recipient.ids == ids(1, 3, 4)
    assert delivery.report.failed == 1
    assert told == [f"chain log: {said}"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (event_body(2, revision=2**63), "more than 64 bits"),
        (event_body(2, record_id=json.loads("[" * 60 + "]" * 60)), "nested too deeply"),
        (event_body(2).replace("2026-11-30T", "1969-11-30T"), "timestamp is no instant"),
        (event_body(2).replace("2026-11-30T", "tomorrow"), "was not delivered"),
        (event_body(2).replace('"trace_id":"trace-001"', '"trace_id":7'), "trace_id or payload is missing"),
        ('{"type":"event"}', "trace_id or payload is missing"),
    ],
)
def test_a_line_that_no_collector_could_take_holds_up_nothing(tmp_path: Path, body: str, said: str) -> None:
    """Whoever can write the log can seal anything into it."""
    recipient = Recipient()
    told: list[str] = []
    with Cursor(tmp_path / "c.export") as cursor:
        delivery = Delivery(cursor, recipient, say=told.append)
        assert delivery.drain([chain_of(sealed(event_body(1), body, event_body(3)))])

    assert (recipient.ids, delivery.report.failed) == (ids(1, 3), 1)
    assert said in told[0]


def test_only_fields_of_the_catalogue_leave_and_the_others_are_named(tmp_path: Path) -> None:
    """A field that the catalogue does not know, and an event of an unknown type, give their ids alone."""
    lines = sealed(event_body(1, content="secret"), event_body(2, "news_of_tomorrow", record_id="mem-1"))
    recipient = Recipient()
    with Cursor(tmp_path / "c.export") as cursor:
        Delivery(cursor, recipient, say=print).drain([chain_of(lines)])

    known, unknown = recipient.events
    assert (known.redacted, known.payload["tenant_id"]) == (("content",), "tenant-acme")
    assert "content" not in known.payload
    assert unknown.redacted == ("record_id", "tenant_id")
    assert set(unknown.payload) == {"event_id", "log_chain", "log_seq", "log_hash"}
    assert known.attributes()["agent_memory.redacted_fields"] == ["content"]


def test_an_operator_may_let_fewer_fields_leave(log: Path) -> None:
    """The ids by which an event is known and found stay; all else that is left out is named."""
    recipient = Recipient()
    with export_of(log, recipient, only=frozenset({"kind"})) as export:
        export.drain()

    assert set(recipient.events[0].payload) == {"event_id", "log_chain", "log_seq", "log_hash"}
    assert recipient.events[0].redacted == ("tenant_id",)
    assert AllowList(frozenset({"kind"})).of("memory_persisted") >= {"kind", "event_id", "decision_id"}


def test_two_exports_do_not_deliver_from_one_log_at_a_time(log: Path) -> None:
    """The second one is refused, rather than moving the cursor under the first."""
    with export_of(log, Recipient()) as export:
        export.drain()
        with pytest.raises(CursorError, match="another export is under way"):
            Cursor(export.cursor.path)
    with export_of(log, Recipient()) as export:
        assert export.pending() == 0


@pytest.mark.parametrize("text", ["rubbish", "[]", '{"version": 2}', '{"version": 1, "chains": {"log": {}}}'])
def test_a_file_that_is_no_cursor_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    """It may be somebody else's; the error says what to do."""
    path = tmp_path / "log.jsonl.export"
    path.write_text(text)

    with pytest.raises(CursorError, match="--cursor"):
        Cursor(path)

    assert path.read_text() == text


def test_looking_leaves_no_cursor_behind(tmp_path: Path) -> None:
    """A file is made with the first acknowledgement."""
    with Cursor(tmp_path / "log.jsonl.export"):
        pass

    assert list(tmp_path.iterdir()) == []


def test_following_waits_longer_and_longer_for_a_receiver_that_is_gone(log: Path) -> None:
    """Once it is back, what is pending is delivered, and the waiting begins anew."""
    answers = iter([GONE, GONE, GONE, TAKEN, GONE])
    waited: list[float] = []

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        log_of(log, 1, begin=10 + len(waited))
        return len(waited) == 6

    with export_of(log, Recipient(lambda _: next(answers, TAKEN))) as export:
        export.delivery.follow(export.chains, wait=wait, every=0.5)

    assert waited == [1.0, 2.0, 4.0, 0.5, 1.0, 0.5]
    assert export.said[0] == "not delivered: nobody is there; trying again in 1 s"


def test_an_end_is_taken_between_two_batches(log: Path) -> None:
    """The batch under way is acknowledged first."""
    recipient = Recipient()
    with export_of(log, recipient, events_max=2, is_ending=lambda: len(recipient.asked) >= 2) as export:
        export.delivery.follow(export.chains, wait=lambda _: False, every=1.0)
        assert export.pending() == 2

    assert recipient.ids == ids(1, 2, 3, 4)


def test_the_cursor_is_saved_every_second_and_at_the_end(log: Path) -> None:
    """Who is killed in between sends the batches of a second again, and none is lost."""
    ticks = iter(range(100))
    saved: list[str] = []
    path = log.with_name(f"{log.name}.export")

    def look(_: list[str]) -> Answer:
        saved.append(path.read_text())
        return TAKEN

    with export_of(log, Recipient(look), events_max=1, monotonic=lambda: next(ticks) / 4) as export:
        export.drain()

    lines = [json.loads(text)["chains"]["log"]["seq"] if text else 0 for text in saved]
    assert lines == [0, 0, 0, 0, 8, 8]
    assert json.loads(path.read_text())["chains"]["log"]["seq"] == 12
