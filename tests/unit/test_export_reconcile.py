"""What arrived is held to the log: every loss, repetition, change and disorder is found and named."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_runtime_ref.errors import DocumentUnreadableError
from agent_runtime_ref.export import Reconciler, Reconciliation, arrived_in
from agent_runtime_ref.export.otlp import otlp_sender
from agent_runtime_ref.runtime import Chain
from tests.exporting import chain_of, event_body, export_of, ids, sealed
from tests.otlp_receiver import Receiver

Document = dict[str, Any]
FIELDS = {"record_id": "mem-1", "revision": 3, "supersedes": ["mem-0"], "duplicate_of": None, "kind": "note"}
LINES = sealed(*[event_body(number, **FIELDS) for number in range(1, 7)])
CHAIN = chain_of(LINES)


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> list[Document]:
    """What a collector writes of the six events, one to a line."""
    return _sent(tmp_path_factory.mktemp("log"))


def _sent(folder: Path, only: frozenset[str] | None = None) -> list[Document]:
    log = folder / "log.jsonl"
    log.write_bytes(b"".join(line + b"\n" for line in LINES))
    with Receiver() as receiver, closing(otlp_sender(receiver.url)) as sender:
        with export_of(log, sender, only=only, events_max=1) as export:
            assert export.drain()
        return [json.loads(line) for line in receiver.lines]


def reconciled(folder: Path, documents: list[Document], chain: Chain = CHAIN) -> Reconciliation:
    """What a comparison finds."""
    file = folder / "collected.jsonl"
    file.write_text("".join(f"{json.dumps(one)}\n" for one in documents), encoding="utf-8")
    with closing(Reconciler()) as reconciler:
        reconciler.expect([chain])
        reconciler.arrive(arrived_in(file))
        return reconciler.result()


def changed(document: Document, change: Callable[[Document], object]) -> Document:
    """A copy of a line whose record was changed."""
    copy: Document = json.loads(json.dumps(document))
    change(copy["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0])
    return copy


def put(name: str, value: Document, record: Document) -> None:
    """Give a record another value of an attribute."""
    record["attributes"] = [one for one in record["attributes"] if one["key"] != name]
    record["attributes"].append({"key": name, "value": value})


def take(name: str, record: Document) -> None:
    """Take an attribute out of a record."""
    record["attributes"] = [one for one in record["attributes"] if one["key"] != name]


def test_what_arrived_whole_and_in_order_is_complete(delivered: list[Document], tmp_path: Path) -> None:
    """Every kind of value survives the way: text, number, list, nothing, and the place in the log."""
    found = reconciled(tmp_path, delivered)

    assert (found.expected, found.received, found.completeness) == (6, 6, 1.0)
    assert (found.missing, found.duplicated, found.altered, found.unexpected) == ([], [], {}, [])
    assert (found.reordered, found.hours) == (0, [("2026-11-30T09:00:00Z", 6, 6)])


def test_losses_and_repetitions_are_named_in_the_order_of_the_log(
    delivered: list[Document], tmp_path: Path
) -> None:
    """The figure of completeness counts each event once."""
    found = reconciled(tmp_path, [delivered[5], delivered[1], delivered[5], delivered[1], delivered[1]])

    assert (found.missing, found.duplicated) == (ids(1, 3, 4, 5), ids(2, 6))
    assert (found.received, found.completeness, found.reordered) == (2, 0.333333, 1)


def test_a_repetition_is_no_disorder(delivered: list[Document], tmp_path: Path) -> None:
    """Delivery is at least once: what comes again comes late, and was there in time."""
    found = reconciled(tmp_path, [*delivered, delivered[0], delivered[2]])

    assert (found.reordered, found.duplicated, found.altered) == (0, ids(1, 3), {})


def test_completeness_is_told_for_each_hour(tmp_path: Path) -> None:
    """By the time of the event, not of its arrival."""
    bodies = [event_body(number) for number in range(1, 4)]
    bodies[2] = bodies[2].replace("T09:00", "T11:59")
    found = reconciled(tmp_path, [], chain_of(sealed(*bodies)))

    assert found.hours == [("2026-11-30T09:00:00Z", 2, 0), ("2026-11-30T11:00:00Z", 1, 0)]
    assert found.completeness == 0.0


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (partial(put, "agent_memory.kind", {"stringValue": "other"}), ["agent_memory.kind"]),
        (partial(put, "agent_memory.revision", {"doubleValue": 3.5}), ["agent_memory.revision"]),
        (partial(put, "agent_memory.revision", {"boolValue": True}), ["agent_memory.revision"]),
        (partial(put, "agent_memory.content", {"stringValue": "more"}), ["agent_memory.content"]),
        (partial(put, "gen_ai.memory.record.id", {"stringValue": "mem-9"}), ["gen_ai.memory.record.id"]),
        (partial(put, "agent_memory.log_hash", {"stringValue": "0" * 64}), ["agent_memory.log_hash"]),
        (partial(take, "agent_memory.kind"), ["agent_memory.kind"]),
        (lambda record: record.update(timeUnixNano="1"), ["timestamp"]),
        (lambda record: record.update(severityText="DEBUG"), ["severity"]),
        (lambda record: record.update(body={"stringValue": "x"}), ["body"]),
        (lambda record: record.update(eventName="agent_memory.memory_rejected"), ["event_name"]),
    ],
)
def test_an_alteration_is_found_and_the_fields_are_named(
    delivered: list[Document], tmp_path: Path, change: Callable[[Document], object], names: list[str]
) -> None:
    """Names only: a value may be what somebody wanted in there."""
    found = reconciled(tmp_path, [*delivered[:2], changed(delivered[2], change), *delivered[3:]])

    assert found.altered == {"evt-003": names}
    assert (found.missing, found.completeness) == ([], 1.0)


def test_what_a_collector_adds_of_its_own_is_no_alteration(delivered: list[Document], tmp_path: Path) -> None:
    """Processors add attributes outside our names."""
    found = reconciled(
        tmp_path, [changed(one, partial(put, "k8s.pod.name", {"stringValue": "a"})) for one in delivered]
    )

    assert found.altered == {}


def test_fields_that_were_left_out_by_name_are_counted_and_no_alteration(tmp_path: Path) -> None:
    """An export with an allow-list says what it left out; what derives from such a field is gone as well."""
    documents = _sent(tmp_path, frozenset({"kind", "revision"}))
    found = reconciled(tmp_path, documents)

    assert found.altered == {}
    assert found.redacted == {"record_id": 6, "supersedes": 6, "tenant_id": 6, "duplicate_of": 6}


def test_a_field_that_is_called_left_out_and_is_there_is_an_alteration(
    delivered: list[Document], tmp_path: Path
) -> None:
    """The list of what was left out cannot cover a changed value, nor the ids of an event."""
    names = {"arrayValue": {"values": [{"stringValue": "kind"}, {"stringValue": "event_id"}]}}
    found = reconciled(
        tmp_path, [changed(delivered[0], partial(put, "agent_memory.redacted_fields", names)), *delivered[1:]]
    )

    assert found.altered == {"evt-001": ["agent_memory.kind", "agent_memory.redacted_fields"]}


def test_what_the_log_does_not_have_is_told_apart(delivered: list[Document], tmp_path: Path) -> None:
    """Made up or of another log; cut from this one; or told beside it, as that policies were loaded."""
    forged = changed(delivered[0], partial(put, "agent_memory.event_id", {"stringValue": "evt-999"}))
    loaded = changed(forged, lambda record: record.update(eventName="agent_memory.policy_loaded"))
    for name in ("log_chain", "log_seq", "log_hash"):
        loaded = changed(loaded, partial(take, f"agent_memory.{name}"))
    strange = changed(delivered[0], lambda record: record.update(eventName="other.event"))

    whole = reconciled(tmp_path, [*delivered, forged, loaded, strange])
    cut = reconciled(tmp_path, delivered, chain_of(LINES[2:]))

    assert (whole.unexpected, whole.altered, whole.duplicated) == (["evt-999"], {}, [])
    assert (cut.cut, cut.unexpected, cut.expected, cut.completeness) == (2, [], 4, 1.0)


@pytest.mark.parametrize("value", [{"stringValue": "\ud800"}, {"intValue": "7"}, {}, None])
def test_an_id_that_could_not_be_one_is_nobodys(
    delivered: list[Document], tmp_path: Path, value: Document
) -> None:
    """The event that it may have been is missing, and the record is unexpected."""
    forged = changed(delivered[0], partial(put, "agent_memory.event_id", value))
    found = reconciled(tmp_path, [forged, *delivered[1:]])

    assert (found.missing, found.unexpected) == (ids(1), [""])


def test_a_line_of_the_log_that_was_changed_is_nothing_to_compare_with(
    delivered: list[Document], tmp_path: Path
) -> None:
    """It is counted; what arrived of it is then unexpected."""
    lines = [*LINES[:1], LINES[1].replace(b"mem-1", b"mem-2"), *LINES[2:]]
    found = reconciled(tmp_path, delivered, chain_of(lines))

    assert (found.expected, found.unreadable, found.unexpected) == (5, 1, ["evt-002"])


@pytest.mark.parametrize(
    "text", ["rubbish\n", "[]\n", "{}\n", '{"event_type": "retrieval"}\n', "[" * 9_999 + "\n"]
)
def test_a_file_that_no_collector_wrote_is_refused_with_its_place(tmp_path: Path, text: str) -> None:
    """Nothing arrived would be a wrong answer about it."""
    file = tmp_path / "collected.jsonl"
    file.write_text(text)

    with pytest.raises(DocumentUnreadableError) as raised:
        list(arrived_in(file))

    assert raised.value.place.startswith(f"{file}:1")


def test_the_line_that_a_collector_is_writing_is_left_out(delivered: list[Document], tmp_path: Path) -> None:
    """Other signals in the file, and empty lines, are passed over."""
    file = tmp_path / "collected.jsonl"
    file.write_text(f'{json.dumps(delivered[0])}\n\n{{"resourceSpans": []}}\n{json.dumps(delivered[1])[:99]}')

    assert [record.named("event_id") for record in arrived_in(file)] == ids(1)


@pytest.fixture(scope="module")
def junk_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place for the file of each example."""
    return tmp_path_factory.mktemp("junk")


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["", "a", "7", "-1", "\ud800", "多", "agent_memory.kind"])
    | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["key", "value", "values", "stringValue", "intValue", "arrayValue", "kvlistValue", "x"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)
NAMES = st.sampled_from(
    ["attributes", "body", "timeUnixNano", "severityText", "eventName", "agent_memory.event_id", "log_seq"]
)


@settings(max_examples=25)
@given(changes=st.lists(st.tuples(st.integers(0, 5), NAMES, JUNK), max_size=8))
def test_junk_in_a_record_is_no_error_and_hides_no_other_one(
    delivered: list[Document], junk_folder: Path, changes: list[tuple[int, str, Any]]
) -> None:
    """Whoever can write the file can write anything into it; what was left alone is found as it was."""
    documents = list(delivered)
    for index, name, value in sorted(changes, key=lambda one: one[1] == "attributes"):
        if "_" in name:
            documents[index] = changed(documents[index], partial(put, name, value))
        else:
            documents[index] = changed(
                documents[index], lambda record, n=name, v=value: record.update({n: v})
            )  # type: ignore[misc]

    found = reconciled(junk_folder, documents)

    assert found.expected == 6
    assert found.received == 6 - len(found.missing)
    for number, (before, after) in enumerate(zip(delivered, documents, strict=True), start=1):
        (name,) = ids(number)
        if before == after:
            assert name not in found.missing
            assert name not in found.altered
