"""The verdict of the hot path and the explanation of a refusal are held to each other."""

from __future__ import annotations

import copy
import json
import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_runtime_ref import validation
from agent_runtime_ref.contracts import MemoryCandidate, MemoryRecord, Origin, RetrievalQuery
from agent_runtime_ref.resources import schemas_path
from agent_runtime_ref.validation.explain import explain
from agent_runtime_ref.validation.schemas import compiled

NAMES = (
    "decision",
    "event",
    "memory_candidate",
    "memory_record",
    "memory_store_config",
    "policy_read_input",
    "policy_write_input",
    "retrieval_query",
    "retrieval_result",
    "runtime_config",
)
STARTS = [
    (name, validation.load_document(path, schema=name))
    for name in NAMES
    for path in sorted((schemas_path() / "examples" / name / "valid").iterdir())
]

odd_texts = st.sampled_from(
    [
        "",
        " ",
        "\x1c",
        "\x85",
        "\u200b",
        "\u3000",
        "a\n",
        "\na",
        "a\x00b",
        "\ud800",
        "\U000e0001",
        "a\u202eb",
        "low",
        "2026-04-07T12:00:00Z",
        "2026-04-07T12:00:00Z\n",
        "2026-04-07T24:00:00Z",
        "2026-06-30T23:59:60Z",
        "2026-02-29T00:00:00Z",
        "2024-02-29T00:00:00+23:59",
        "2026-04-07T12:00:00.1234567Z",
        "2026-04-07t12:00:00z",
        "0000-01-01T00:00:00Z",
        "2026-04-07T12:00:00-00:00",
        "\u0662026-04-07T12:00:00Z",
        "sha256:" + "0" * 64 + "\n",
        "sha256:" + "0" * 64,
        "embedded\n",
        "x" * 257,
        "😀" * 256,
    ]
)
odd_numbers = st.sampled_from(
    [
        0,
        1,
        -1,
        1.0,
        0.5,
        -0.0,
        True,
        2**53,
        2**63,
        2**64,
        2**70,
        -(2**70),
        1e308,
        math.nan,
        math.inf,
        Decimal(1),
    ]
)
leaves = (
    odd_texts
    | odd_numbers
    | st.text(max_size=8)
    | st.integers()
    | st.floats()
    | st.none()
    | st.booleans()
    | st.just(b"x")
    | st.just(datetime(2026, 4, 7, tzinfo=UTC))
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.just(1), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every part of a document."""
    found = [path]
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for name, child in children:
        found += places(child, (*path, name))
    return found


@st.composite
def changed_documents(draw: st.DrawFn) -> tuple[str, Any]:
    """Draw a valid example with up to two parts changed, dropped or added."""
    name, start = draw(st.sampled_from(STARTS))
    document: Any = copy.deepcopy(start)
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.sampled_from(places(document)))
        if not place:
            if isinstance(document, dict) and draw(st.booleans()):
                document[draw(st.text(max_size=5))] = draw(values)
            continue
        parent = document
        for step in place[:-1]:
            parent = parent[step]
        if draw(st.booleans()):
            parent[place[-1]] = draw(values)
        else:
            del parent[place[-1]]
    return name, document


@given(changed_documents())
def test_both_validators_give_one_verdict(case: tuple[str, Any]) -> None:
    """A document is accepted on the hot path exactly if nothing can be said against it."""
    name, document = case
    schema = compiled(name)

    found = explain(schema, document, fields={}, positions=None, source=None)

    assert (found == ()) == schema.accepts(document), (found, document)


@given(st.sampled_from(NAMES), values)
def test_any_value_is_accepted_or_explained(name: str, value: Any) -> None:
    """A value that has nothing of a document is refused with a reason, never with another error."""
    schema = compiled(name)

    found = explain(schema, value, fields={}, positions=None, source=None)

    assert (found == ()) == schema.accepts(value)


@pytest.mark.parametrize(("name", "document"), STARTS)
def test_integral_floats_are_no_integers(name: str, document: dict[str, Any]) -> None:
    """Every integer of every example, written as a float, is refused by both."""
    for place in places(document):
        bent: Any = copy.deepcopy(document)
        parent = bent
        for step in place[:-1]:
            parent = parent[step]
        if not place or type(parent[place[-1]]) is not int or place[-1] == "confidence" or "payload" in place:
            continue
        parent[place[-1]] = float(parent[place[-1]])

        assert not validation.is_valid(name, bent), place
        assert validation.findings(name, bent)[0].wrong_type, place


# What an id may hold: anything but control, format, surrogate and blank characters.
ids = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=12)
texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=20).map(
    lambda text: text + "."
)
moments = st.datetimes(datetime(1900, 1, 2), datetime(2199, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001
origins = st.builds(Origin, ids, ids, ids, moments)
confidences = st.floats(0, 1) | st.integers(0, 1)
labels = st.lists(ids, max_size=3).map(tuple)
records = st.builds(
    MemoryRecord,
    memory_id=ids,
    tenant_id=ids,
    memory_class=ids | st.sampled_from(["profile", "long_term", "short_term"]),
    kind=ids | st.sampled_from(["preference", "validated_fact", "working_note"]),
    content=texts,
    source=ids,
    confidence=confidences,
    provenance=ids,
    revision=st.integers(1, 2**53 - 1),
    subject=st.none() | ids,
    key=st.none() | ids,
    summary=st.none() | texts,
    origin=st.none() | origins,
    trust_level=st.sampled_from(["low", "medium", "high"]),
    created_at=st.none() | moments,
    retention=st.none() | ids,
    expires_at=st.none() | moments,
    status=st.sampled_from(["active", "quarantined", "superseded", "tombstone"]),
    derived_from=labels,
    scope=labels,
)
candidates = st.builds(
    MemoryCandidate,
    ids,
    ids,
    ids,
    texts,
    ids,
    confidences,
    ids,
    st.sampled_from(["append", "replace"]),
    key=st.none() | ids,
    subject=st.none() | ids,
    summary=st.none() | texts,
    origin=st.none() | origins,
    derived_from=labels,
    scope=labels,
)
queries = st.builds(
    RetrievalQuery,
    ids,
    ids,
    ids,
    ids,
    ids,
    st.lists(ids, max_size=4, unique=True).map(tuple),
    st.integers(0, 1000),
    trust_min=st.none() | st.sampled_from(["low", "medium", "high"]),
    max_age_days=st.none() | st.integers(0, 36500),
    require_provenance=st.booleans(),
    subject=st.none() | ids,
    kinds=labels,
    sources=labels,
    keys=labels,
    record_ids=labels,
)


@given(records | candidates | queries)
def test_value_and_document_are_the_same(value: MemoryRecord | MemoryCandidate | RetrievalQuery) -> None:
    """A value comes back from its document, and from that document as JSON text."""
    document = value.to_document()
    again = json.loads(json.dumps(document))

    assert type(value).from_document(document) == value
    assert type(value).from_document(again) == value
    assert again == document
